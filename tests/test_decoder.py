"""The decoder of chapters 6 to 13: the same as the course's functions, and causal throughout."""

import itertools
import math

import pytest

torch = pytest.importorskip("torch")

from autograde.decoder import Config, Decoder  # noqa: E402
from autograde.decoder.model import sinusoidal  # noqa: E402
from autograde.reference.ch06_decoder import decoder_logits, decoder_parameters  # noqa: E402

SIZES = {"vocab": 11, "d_model": 12, "n_layers": 2, "n_heads": 3, "d_ff": 20, "max_seq": 9}
KINDS = [
    dict(zip(("positions", "norm", "gelu", "attention_bias"), choice, strict=True))
    for choice in itertools.product(
        ("learned", "sinusoidal", "rotary"), ("layer", "rms"), ("exact", "tanh"), (False, True)
    )
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


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: "-".join(map(str, kind.values())))
def test_the_weights_are_those_that_forward_uses(kind):
    model, x = shaken(Config(**SIZES, **kind)), tokens(2, 5)
    stream, positions, allowed = model.embed(x)
    block = model.blocks[0]
    with torch.no_grad():
        block.w_down.zero_()
        block.b_down.zero_()
    _, _, v = block.heads(stream, positions)
    out = block.attention_weights(stream, positions, allowed) @ v
    out = out.transpose(1, 2).flatten(-2) @ block.w_o
    if kind["attention_bias"]:
        out = out + block.b_o
    torch.testing.assert_close(block(stream, positions, allowed), stream + out)


@pytest.mark.parametrize("shape", [(4,), (2, 9), (2, 3, 5)])
def test_the_functions_of_chapter_6_compute_the_same(shape):
    model, x = shaken(Config(**SIZES)), tokens(*shape)
    torch.testing.assert_close(decoder_logits(x, model.params(), 3), model(x))
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


@pytest.mark.parametrize("positions", ["learned", "sinusoidal", "rotary"])
def test_every_parameter_learns(positions):
    model = Decoder(Config(**SIZES, positions=positions, attention_bias=True))
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
        ({"positions": "alibi"}, "positions='alibi': choose from learned, sinusoidal, rotary"),
        ({"norm": "batch"}, "norm='batch': choose from layer, rms"),
        ({"gelu": "relu"}, "gelu='relu': choose from exact, tanh"),
    ],
)
def test_impossible_sizes_are_refused(change, words):
    with pytest.raises(ValueError, match=words):
        Config(**{**SIZES, **change})


def test_too_long_a_sequence_is_refused():
    with pytest.raises(ValueError, match="10 tokens are too many for max_seq=9"):
        Decoder(Config(**SIZES))(tokens(2, 10))
