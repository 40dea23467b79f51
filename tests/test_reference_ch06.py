"""Chapter 6's reference functions against PyTorch, against loops, against published numbers."""

import math

import pytest

torch = pytest.importorskip("torch")

from torch import nn  # noqa: E402
from torch.nn import functional as F  # noqa: E402

from autograde.reference.ch06_decoder import (  # noqa: E402
    decoder_block,
    decoder_logits,
    decoder_parameters,
    layer_norm,
    rms_norm,
    rotary,
)

DOUBLE = torch.float64
close = torch.testing.assert_close


def draw(*shape, seed=0, dtype=DOUBLE):
    return torch.randn(shape, generator=torch.Generator().manual_seed(seed), dtype=dtype)


# The norms -----------------------------------------------------------------------------


@pytest.mark.parametrize("dtype", [torch.float32, DOUBLE])
@pytest.mark.parametrize("shape", [(4,), (3, 5), (2, 3, 4), (2, 1, 3, 8)])
def test_the_norms_against_torch(shape, dtype):
    x, gain, bias = (draw(*s, dtype=dtype) for s in (shape, shape[-1:], shape[-1:]))
    for eps in (1e-5, 0.1):
        close(layer_norm(x, gain, bias, eps), F.layer_norm(x, shape[-1:], gain, bias, eps))
        close(rms_norm(x, gain, eps), F.rms_norm(x, shape[-1:], gain, eps))
    strided = draw(*shape, 2, dtype=dtype)[..., 1]
    close(layer_norm(strided, gain, bias), F.layer_norm(strided, shape[-1:], gain, bias))
    assert layer_norm(x, gain, bias).dtype == rms_norm(x, gain).dtype == dtype


def test_the_default_eps():
    x, one, zero = torch.full((3,), 1e-3, dtype=DOUBLE), torch.ones(3), torch.zeros(3)
    close(rms_norm(x, one), x / math.sqrt(1e-6 + 1e-6))
    x = torch.tensor([-1e-3, 1e-3], dtype=DOUBLE)
    close(layer_norm(x, one[:2], zero[:2]), x / math.sqrt(1e-6 + 1e-5))
    assert layer_norm(torch.ones(3), one, zero).tolist() == [0, 0, 0]
    assert rms_norm(zero, one).tolist() == [0, 0, 0]


def test_population_variance():
    """W130 of the bank's sources: a unit vector of four tells the two variances apart."""
    unit = torch.tensor([1.0, 0, 0, 0])
    assert float(layer_norm(unit, torch.ones(4), torch.zeros(4))[0]) == pytest.approx(
        1.732, abs=1e-3
    )


# Rotary positions ----------------------------------------------------------------------


def rotary_by_loops(x, positions, base):
    out, half = torch.empty_like(x), x.shape[-1] // 2
    for s, position in enumerate(positions.tolist()):
        for i in range(half):
            t = position * base ** (-2 * i / x.shape[-1])
            a, b = x[..., s, i], x[..., s, i + half]
            out[..., s, i] = a * math.cos(t) - b * math.sin(t)
            out[..., s, i + half] = a * math.sin(t) + b * math.cos(t)
    return out


@pytest.mark.parametrize("base", [10000.0, 100, 500000.0])
@pytest.mark.parametrize("shape", [(1, 1, 2), (2, 5, 4), (3, 2, 5, 6), (2, 2, 3, 5, 8)])
def test_rotary_against_loops(shape, base):
    x, positions = draw(*shape), torch.randint(0, 5000, shape[-2:-1])
    close(rotary(x, positions, base), rotary_by_loops(x, positions, base))


def test_scores_depend_on_the_distance_alone():
    q, k = draw(1, 8), draw(1, 8, seed=1)
    scores = [
        rotary(q, torch.tensor([start + 7])) @ rotary(k, torch.tensor([start])).T
        for start in (0, 1, 12, 900)
    ]
    close(torch.stack(scores), scores[0].expand(4, 1, 1))
    other = rotary(q, torch.tensor([8])) @ rotary(k, torch.tensor([0])).T
    assert abs(float(other - scores[0])) > 1e-3
    close(rotary(q, torch.tensor([123])).norm(), q.norm())


# The block -----------------------------------------------------------------------------


def block_params(d_model, d_ff, seed=0):
    shapes = {
        "norm1_gain": (d_model,), "norm1_bias": (d_model,),
        "w_q": (d_model, d_model), "w_k": (d_model, d_model),
        "w_v": (d_model, d_model), "w_o": (d_model, d_model),
        "norm2_gain": (d_model,), "norm2_bias": (d_model,),
        "w_up": (d_model, d_ff), "b_up": (d_ff,), "w_down": (d_ff, d_model), "b_down": (d_model,),
    }  # fmt: skip
    return {name: 0.5 * draw(*s, seed=seed + i) for i, (name, s) in enumerate(shapes.items())}


@pytest.mark.parametrize(("d_model", "n_heads"), [(8, 1), (8, 2), (12, 3)])
def test_the_block_against_torchs_own_layer(d_model, n_heads):
    """nn.TransformerEncoderLayer with norm_first and a causal mask is a decoder's block."""
    params = block_params(d_model, 20)
    layer = nn.TransformerEncoderLayer(
        d_model, n_heads, 20, dropout=0, activation="gelu", batch_first=True, norm_first=True
    ).double()
    qkv = torch.cat([params[name].T for name in ("w_q", "w_k", "w_v")])
    zero = torch.zeros(3 * d_model)
    state = {
        "self_attn.in_proj_weight": qkv, "self_attn.in_proj_bias": zero,
        "self_attn.out_proj.weight": params["w_o"].T, "self_attn.out_proj.bias": zero[:d_model],
        "linear1.weight": params["w_up"].T, "linear1.bias": params["b_up"],
        "linear2.weight": params["w_down"].T, "linear2.bias": params["b_down"],
        "norm1.weight": params["norm1_gain"], "norm1.bias": params["norm1_bias"],
        "norm2.weight": params["norm2_gain"], "norm2.bias": params["norm2_bias"],
    }  # fmt: skip
    layer.load_state_dict(state)
    x, allowed = draw(2, 5, d_model), torch.ones(5, 5, dtype=torch.bool).tril()
    ours = decoder_block(x, params, n_heads, allowed)
    close(ours, layer(x, src_mask=~allowed))
    close(decoder_block(x[0], params, n_heads, allowed), ours[0])
    close(decoder_block(x[None], params, n_heads, allowed), ours[None])


def test_a_mask_for_each_sequence():
    x, params = draw(2, 3, 4), block_params(4, 6)
    allowed = (
        torch.tensor([[[1, 0, 0], [1, 1, 0], [1, 0, 1]], [[1, 1, 1], [0, 1, 0], [0, 0, 1]]]) > 0
    )
    together = decoder_block(x, params, 2, allowed)
    alone = [decoder_block(one, params, 2, mask) for one, mask in zip(x, allowed, strict=True)]
    close(together, torch.stack(alone))
    keys = torch.tensor([[[1, 1, 0]], [[1, 0, 1]]]) > 0
    full = keys.expand(2, 3, 3)
    close(decoder_block(x, params, 2, keys), decoder_block(x, params, 2, full))


def test_a_query_without_keys_gets_the_mlp_alone_and_clean_gradients():
    x, params = draw(3, 4).requires_grad_(), block_params(4, 6)
    for w in params.values():
        w.requires_grad_()
    allowed = torch.tensor([[0, 0, 0], [1, 1, 0], [1, 1, 1]]) > 0
    out = decoder_block(x, params, 2, allowed)
    mlp_alone = decoder_block(x, {**params, "w_o": torch.zeros(4, 4, dtype=DOUBLE)}, 2, allowed)
    close(out[0], mlp_alone[0])
    out.sum().backward()
    assert all(w.grad.isfinite().all() for w in (x, *params.values()))


def test_without_what_it_adds_a_block_changes_nothing():
    x, params = draw(5, 4), block_params(4, 6)
    for name in ("w_o", "w_down", "b_down"):
        params[name] = torch.zeros_like(params[name])
    assert torch.equal(decoder_block(x, params, 2, torch.ones(5, 5, dtype=torch.bool)), x)


# The whole -----------------------------------------------------------------------------


def decoder_params(vocab=7, d_model=4, max_seq=6, n_layers=2):
    return {
        "token_embedding": draw(vocab, d_model, seed=50),
        "position_embedding": draw(max_seq, d_model, seed=51),
        "blocks": [block_params(d_model, 10, seed=100 * i) for i in range(n_layers)],
        "norm_gain": draw(d_model, seed=52),
        "norm_bias": draw(d_model, seed=53),
    }


def test_logits_of_prefixes():
    """Row t is what the sequence gives that ends with token t: no mask could say it plainer."""
    params, tokens = decoder_params(), torch.tensor([[3, 0, 6, 6, 1], [2, 5, 0, 1, 4]])
    logits = decoder_logits(tokens, params, 2)
    assert logits.shape == (2, 5, 7)
    for t in range(5):
        close(decoder_logits(tokens[:, : t + 1], params, 2)[:, -1], logits[:, t])
    close(decoder_logits(tokens[1], params, 2), logits[1])


def test_logits_without_blocks_are_products_of_embeddings():
    params = decoder_params(n_layers=0)
    tokens = torch.tensor([4, 2])
    x = params["token_embedding"][tokens] + params["position_embedding"][:2]
    x = F.layer_norm(x, (4,), params["norm_gain"], params["norm_bias"])
    close(decoder_logits(tokens, params, 1), x @ params["token_embedding"].mT)


def test_parameters_are_those_that_the_logits_take():
    params = decoder_params()
    count = sum(w.numel() for name, w in params.items() if name != "blocks")
    count += sum(w.numel() for block in params["blocks"] for w in block.values())
    sizes = {"vocab": 7, "d_model": 4, "n_layers": 2, "n_heads": 2, "d_ff": 10, "max_seq": 6}
    assert decoder_parameters(sizes) == count


@pytest.mark.parametrize(
    ("d_model", "n_layers", "published"),
    [(768, 12, 124), (1024, 24, 355), (1280, 36, 774), (1600, 48, 1558)],
)
def test_the_sizes_that_openai_gives_for_gpt2(d_model, n_layers, published):
    """The four models of github.com/openai/gpt-2, in millions; their attention has biases."""
    sizes = {
        "vocab": 50257, "d_model": d_model, "n_layers": n_layers,
        "n_heads": d_model // 64, "d_ff": 4 * d_model, "max_seq": 1024,
    }  # fmt: skip
    assert round((decoder_parameters(sizes) + n_layers * 4 * d_model) / 1e6) == published
