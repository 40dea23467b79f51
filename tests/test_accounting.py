"""Operations and bytes of a training step, against PyTorch's own counters."""

import pytest

torch = pytest.importorskip("torch")

from torch.nn.attention import SDPBackend, sdpa_kernel  # noqa: E402
from torch.nn.functional import cross_entropy  # noqa: E402
from torch.utils.flop_counter import FlopCounterMode  # noqa: E402

from autograde.decoder import Config, Decoder  # noqa: E402
from autograde.decoder.accounting import (  # noqa: E402
    checkpoint_blocks,
    flops_per_token,
    saved_for_backward,
)

SMALL = Config(vocab=50, d_model=64, n_layers=3, n_heads=4, d_ff=256, max_seq=32)


def loss_of(model, tokens):
    return cross_entropy(model(tokens).flatten(0, 1), tokens.flatten())


@pytest.mark.parametrize("seq", [1, 7, 32])
@pytest.mark.parametrize(
    "config",
    [
        SMALL,
        Config(vocab=31, d_model=24, n_layers=2, n_heads=3, d_ff=40, max_seq=64),
        Config(vocab=31, d_model=32, n_layers=1, n_heads=4, d_ff=40, max_seq=64, kv_heads=2),
    ],
)
def test_operations_against_torchs_counter(config, seq):
    model, tokens = Decoder(config), torch.randint(config.vocab, (3, seq))
    with sdpa_kernel(SDPBackend.MATH), FlopCounterMode(display=False) as counter:
        loss_of(model, tokens).backward()
    assert counter.get_total_flops() == flops_per_token(config, seq) * tokens.numel()


def test_the_usual_formula():
    """6 N + 12 layers heads d_head seq (Chowdhery et al. 2022), N without positions and norms."""
    gpt2 = Config(vocab=50257, d_model=768, n_layers=12, n_heads=12, d_ff=3072, max_seq=1024)
    matrices = 12 * 12 * 768**2 + 50257 * 768
    assert flops_per_token(gpt2, 1024) == 6 * matrices + 12 * 12 * 768 * 1024


def test_checkpointing_keeps_little_and_changes_nothing():
    torch.manual_seed(0)
    plain, tokens = Decoder(SMALL), torch.randint(50, (4, 32))
    again = checkpoint_blocks(Decoder(SMALL))
    again.load_state_dict(plain.state_dict())
    kept = {}
    for name, model in (("plain", plain), ("again", again)):
        with saved_for_backward(model) as saved:
            loss = loss_of(model, tokens)
        kept[name] = saved.bytes
        loss.backward()
    for ours, theirs in zip(again.parameters(), plain.parameters(), strict=True):
        torch.testing.assert_close(ours.grad, theirs.grad)
    streams = 3 * 4 * 32 * 64 * 4  # one input for each block
    assert streams < kept["again"] < 2.5 * streams
    assert kept["again"] < kept["plain"] / 5


def test_what_is_saved_is_counted_once_and_without_parameters():
    model = torch.nn.Linear(8, 8, bias=False)
    x = torch.randn(5, 8)
    with saved_for_backward(model) as saved:
        y = model(x)
        assert y.exp().requires_grad  # exp keeps its result, 5 * 8 numbers
        assert y.square().requires_grad  # and square its argument, as many
    assert saved.bytes == 4 * (x.numel() + 2 * y.numel())
