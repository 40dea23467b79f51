"""The decoder of chapters 6 to 13: the same as the course's functions, and causal throughout."""

import itertools
import math

import pytest

torch = pytest.importorskip("torch")

import numpy as np  # noqa: E402

from autograde.decoder import Config, Decoder  # noqa: E402
from autograde.decoder.model import sinusoidal  # noqa: E402
from autograde.reference.ch06_decoder import decoder_logits, decoder_parameters  # noqa: E402
from autograde.reference.ch09_variants import (  # noqa: E402
    alibi_bias,
    grouped_query_attention,
    sliding_window_mask,
)

SIZES = {"vocab": 11, "d_model": 12, "n_layers": 2, "n_heads": 3, "d_ff": 20, "max_seq": 9}
CHOICES = {
    "positions": ("learned", "sinusoidal", "rotary", "alibi"),
    "norm": ("layer", "rms"),
    "gelu": ("exact", "tanh"),
    "attention_bias": (False, True),
}
KINDS = [dict(zip(CHOICES, choice, strict=True)) for choice in itertools.product(*CHOICES.values())]
# Chapter 9: who sees whom, and which heads share.
VARIANTS = [
    {"positions": positions, "window": window, "kv_heads": kv_heads}
    for positions in CHOICES["positions"]
    for window, kv_heads in ((3, None), (None, 1), (1, 3), (4, 1), (50, 1))
]


def shaken(config, seed=0):
    """A decoder in float64, with no parameter at its special first value."""
    torch.manual_seed(seed)
    model = Decoder(config).double()
    with torch.no_grad():
        for p in model.parameters():
            p.add_(torch.randn_like(p) * 0.3)
    return model


def tokens(*shape):
    return torch.randint(SIZES["vocab"], shape, generator=torch.Generator().manual_seed(1))


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: "-".join(map(str, kind.values())))
def test_no_future_token_moves_anything(kind):
    model, x = shaken(Config(**SIZES, **kind)), tokens(2, 9)
    before = model(x)
    for j in range(1, 9):
        changed = x.clone()
        changed[:, j] = (x[:, j] + 1) % SIZES["vocab"]
        moved = (model(changed) != before).any(dim=-1)
        assert not moved[:, :j].any()
        assert moved[:, j:].all()  # and every past one does
    weights = model.attention_weights(x)
    assert len(weights) == 2
    future = torch.ones(9, 9, dtype=torch.bool).triu(1)
    for layer in weights:
        assert layer.shape == (2, 3, 9, 9)
        assert not layer[..., future].any()
        torch.testing.assert_close(layer.sum(-1), torch.ones_like(layer[..., 0]))


@pytest.mark.parametrize("kind", VARIANTS, ids=lambda kind: "-".join(map(str, kind.values())))
def test_what_a_window_reaches_and_nothing_more(kind):
    """Two layers of a window w see 2 (w - 1) + 1 tokens (chapter 9)."""
    model, x = shaken(Config(**SIZES, **kind)), tokens(2, 9)
    before = model(x)
    window = kind["window"] or 9
    reach = 2 * (window - 1) + 1
    for j in range(9):
        changed = x.clone()
        changed[:, j] = (x[:, j] + 1) % SIZES["vocab"]
        moved = (model(changed) != before).any(dim=-1)
        seen = torch.arange(9)
        seen = (seen >= j) & (seen < j + reach)
        assert (moved == seen).all(), j
    band = torch.from_numpy(sliding_window_mask(9, window))
    for layer in model.attention_weights(x):
        assert layer.shape == (2, 3, 9, 9)
        assert torch.equal(layer != 0, band.expand_as(layer))
        torch.testing.assert_close(layer.sum(-1), torch.ones_like(layer[..., 0]))


def test_alibi_is_chapter_9s():
    for n_heads in (1, 3, 4):
        sizes = {**SIZES, "n_heads": n_heads}
        model, x = shaken(Config(**sizes, positions="alibi", window=4)), tokens(2, 9)
        stream, positions, bias = model.embed(x)
        allowed = torch.from_numpy(sliding_window_mask(9, 4)).expand(n_heads, 9, 9)
        assert torch.equal(bias != -torch.inf, allowed)
        want = torch.from_numpy(alibi_bias(9, n_heads))
        torch.testing.assert_close(bias[allowed], want[allowed])
        block = model.blocks[0]
        q, k, _ = block.heads(stream, positions)
        want = (q @ k.mT / model.config.d_head**0.5 + want).masked_fill(~allowed, -torch.inf)
        got = block.attention_weights(stream, positions, bias)
        torch.testing.assert_close(got, want.softmax(-1))
        assert torch.equal(stream, model.token_embedding[x])  # nothing is added to tokens


@pytest.mark.parametrize("kv_heads", [1, 2, 3, 6])
def test_consecutive_heads_share_as_in_chapter_9(kv_heads):
    sizes = {**SIZES, "n_heads": 6, "d_model": 24}
    model, x = shaken(Config(**sizes, kv_heads=kv_heads)), tokens(2, 9)
    stream, positions, allowed = model.embed(x)
    block = model.blocks[0]
    q, k, v = (part.detach() for part in block.heads(stream, positions))
    assert k.shape == v.shape == (2, kv_heads, 9, 4)
    want = torch.from_numpy(grouped_query_attention(*map(np.asarray, (q, k, v, allowed))))
    with torch.no_grad():
        block.w_down.zero_()
        block.b_down.zero_()
        out = want.transpose(1, 2).flatten(-2) @ block.w_o
        torch.testing.assert_close(block(stream, positions, allowed), stream + out)


@pytest.mark.parametrize("variant", VARIANTS, ids=lambda kind: "-".join(map(str, kind.values())))
@pytest.mark.parametrize("attention_bias", [False, True])
def test_the_number_of_parameters(variant, attention_bias):
    model = Decoder(Config(**SIZES, **variant, attention_bias=attention_bias))
    d_model, kv_width = 12, 4 * (variant["kv_heads"] or 3)
    want = decoder_parameters(SIZES) - 2 * 2 * d_model * (d_model - kv_width)
    want += 2 * (2 * d_model + 2 * kv_width) * attention_bias
    want -= 9 * d_model * (variant["positions"] != "learned")
    assert sum(p.numel() for p in model.parameters()) == want


@pytest.mark.parametrize(
    "kind", KINDS + VARIANTS, ids=lambda kind: "-".join(map(str, kind.values()))
)
def test_the_weights_are_those_that_forward_uses(kind):
    model, x = shaken(Config(**SIZES, **kind)), tokens(2, 5)
    stream, positions, allowed = model.embed(x)
    block = model.blocks[0]
    with torch.no_grad():
        block.w_down.zero_()
        block.b_down.zero_()
    _, _, v = block.heads(stream, positions)
    v = v.repeat_interleave(3 // v.shape[1], dim=1)
    out = block.attention_weights(stream, positions, allowed) @ v
    out = out.transpose(1, 2).flatten(-2) @ block.w_o
    if kind.get("attention_bias"):
        out = out + block.b_o
    torch.testing.assert_close(block(stream, positions, allowed), stream + out)


@pytest.mark.parametrize("shape", [(4,), (2, 9), (2, 3, 5)])
def test_the_functions_of_chapter_6_compute_the_same(shape):
    model, x = shaken(Config(**SIZES)), tokens(*shape)
    torch.testing.assert_close(decoder_logits(x, model.params(), 3), model(x))
    every_head = shaken(Config(**SIZES, kv_heads=3, window=9))  # says the same at length
    torch.testing.assert_close(every_head(x), model(x))
    assert decoder_parameters(SIZES) == sum(p.numel() for p in model.parameters())


def test_the_state_has_the_names_of_the_course():
    model = Decoder(Config(**SIZES))
    norms = ["norm1_gain", "norm1_bias", "norm2_gain", "norm2_bias"]
    layer = [*norms, "w_q", "w_k", "w_v", "w_o", "w_up", "b_up", "w_down", "b_down"]
    around = ["token_embedding", "position_embedding", "norm_gain", "norm_bias"]
    wanted = around + [f"blocks.{i}.{name}" for i in range(2) for name in layer]
    assert set(model.state_dict()) == set(wanted)
    again = Decoder(Config(**SIZES))
    again.load_state_dict(model.state_dict())
    assert torch.equal(again(tokens(9)), model(tokens(9)))


def test_it_starts_as_gpt2_does():
    torch.manual_seed(0)
    model = Decoder(Config(50, 128, 8, 4, 512, 40))
    for name, p in model.state_dict().items():
        last = name.rpartition(".")[2]
        if last.endswith("gain"):
            assert (p == 1).all()
        elif last.endswith("bias") or last.startswith("b_"):
            assert (p == 0).all()
        else:
            std = 0.02 / math.sqrt(16) if last in ("w_o", "w_down") else 0.02
            assert float(p.std()) == pytest.approx(std, rel=0.05), name
            assert abs(float(p.mean())) < std / 10, name
    first, second = model.blocks[0], model.blocks[1]
    assert not torch.equal(first.w_q, second.w_q)
    x = torch.randint(50, (16, 40))
    with torch.no_grad():
        loss = torch.nn.functional.cross_entropy(model(x)[:, :-1].flatten(0, 1), x[:, 1:].flatten())
    assert float(loss) == pytest.approx(math.log(50), abs=0.2)  # it knows nothing yet


def test_gpt2_small_has_the_published_size():
    """124,439,808: huggingface/transformers#14960 prints it for the published weights."""
    sizes = {
        "vocab": 50257, "d_model": 768, "n_layers": 12,
        "n_heads": 12, "d_ff": 3072, "max_seq": 1024,
    }  # fmt: skip
    with torch.device("meta"):
        gpt2 = Decoder(Config(**sizes, gelu="tanh", attention_bias=True))
    assert sum(p.numel() for p in gpt2.parameters()) == 124_439_808
    assert decoder_parameters(sizes) == 124_439_808 - 12 * 4 * 768


@pytest.mark.parametrize("positions", CHOICES["positions"])
@pytest.mark.parametrize("kv_heads", [None, 1])
def test_every_parameter_learns(positions, kv_heads):
    model = Decoder(Config(**SIZES, positions=positions, kv_heads=kv_heads, attention_bias=True))
    x = tokens(4, 9)
    loss = torch.nn.functional.cross_entropy(model(x[:, :-1]).flatten(0, 1), x[:, 1:].flatten())
    loss.backward()
    for name, p in model.named_parameters():
        assert p.grad is not None, name
        if not name.endswith("b_k"):  # adds the same to all scores of a query: no effect
            assert p.grad.abs().max() > 0, name


def test_the_sinusoidal_table_is_the_papers():
    table = sinusoidal(7, 6)
    for pos, i in itertools.product(range(7), range(3)):
        angle = pos / 10000 ** (2 * i / 6)
        assert float(table[pos, 2 * i]) == pytest.approx(math.sin(angle), abs=1e-6)
        assert float(table[pos, 2 * i + 1]) == pytest.approx(math.cos(angle), abs=1e-6)


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"vocab": 0}, "vocab=0: give an integer"),
        ({"d_ff": 2.5}, "d_ff=2.5: give an integer"),
        ({"n_layers": True}, "n_layers=True: give an integer"),
        ({"n_heads": 5}, "d_model=12 cannot be cut into 5 heads"),
        ({"n_heads": 4, "positions": "rotary"}, "d_head=3 is odd"),
        ({"d_model": 9, "positions": "sinusoidal"}, "d_model=9 is odd"),
        ({"positions": "none"}, "positions='none': choose from learned, sinusoidal, rotary, alibi"),
        ({"window": 0}, "window=0: give an integer of at least 1"),
        ({"window": 2.0}, "window=2.0: give an integer"),
        ({"kv_heads": 0}, "kv_heads=0: give an integer"),
        ({"kv_heads": 2}, "kv_heads=2: 3 query heads cannot share them evenly; give a divisor"),
        ({"kv_heads": 6}, "kv_heads=6: 3 query heads"),
        ({"norm": "batch"}, "norm='batch': choose from layer, rms"),
        ({"gelu": "relu"}, "gelu='relu': choose from exact, tanh"),
    ],
)
def test_impossible_sizes_are_refused(change, words):
    with pytest.raises(ValueError, match=words):
        Config(**{**SIZES, **change})


def test_too_long_a_sequence_is_refused():
    kinds = [{"positions": positions} for positions in CHOICES["positions"]]
    kinds += [{"positions": positions, "window": 3} for positions in ("learned", "sinusoidal")]
    for kind in kinds:
        with pytest.raises(ValueError, match="10 tokens are too many for max_seq=9"):
            Decoder(Config(**SIZES, **kind))(tokens(2, 10))


@pytest.mark.parametrize("positions", ["rotary", "alibi"])
def test_a_window_without_a_table_of_positions_has_no_end(positions):
    """The newest row depends on the newest 2 (w - 1) + 1 tokens, wherever they stand."""
    model, x = shaken(Config(**SIZES, positions=positions, window=3)), tokens(2, 40)
    torch.testing.assert_close(model(x)[:, 30:], model(x[:, 26:])[:, 4:])
    with pytest.raises(AssertionError):
        torch.testing.assert_close(model(x)[:, 30:], model(x[:, 27:])[:, 3:])
