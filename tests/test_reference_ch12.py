"""Chapter 12's reference functions against PyTorch's own conversion, kernels and scaler."""

import pytest

torch = pytest.importorskip("torch")

from autograde import specimens  # noqa: E402
from autograde.reference.ch12_mixed_precision import (  # noqa: E402
    mixed_precision_step,
    round_to_bfloat16,
    training_bytes,
    unscale,
    update_scale,
)

HALF, BRAIN = torch.float16, torch.bfloat16


def floats(bits):
    """The float32 numbers with these bits, int64 from 0 to 2^32 - 1."""
    return torch.where(bits >= 2**31, bits - 2**32, bits).to(torch.int32).view(torch.float32)


# Rounding ------------------------------------------------------------------------------


@pytest.mark.parametrize("lower", [0, 1, 0x7FFF, 0x8000, 0x8001, 0xFFFF])
def test_all_upper_halves_are_rounded_as_torch_does(lower):
    x = floats((torch.arange(2**16) << 16) | lower)
    ours, theirs = round_to_bfloat16(x), x.bfloat16().float()
    number = ~x.isnan()
    assert torch.equal(ours[number].view(torch.int32), theirs[number].view(torch.int32))
    assert ours[~number].isnan().all()
    assert (~number).sum() == (2 * 127 if lower == 0 else 2 * 128)


def test_the_result_is_a_bfloat16_and_x_is_left_alone():
    x = torch.randn(100, 3)
    before = x.clone()
    rounded = round_to_bfloat16(x)
    assert not (rounded.view(torch.int32) & 0xFFFF).any()
    assert torch.equal(x, before)
    assert torch.equal(round_to_bfloat16(x.mT), rounded.mT)  # strided, too


def test_ties_by_hand():
    x = torch.tensor([1 + 2**-8, 1 + 3 * 2**-8, -1 - 2**-8, 257, 259])
    assert round_to_bfloat16(x).tolist() == [1, 1 + 2**-6, -1, 256, 260]


# Scaling -------------------------------------------------------------------------------


def test_unscale_against_torchs_kernel():
    grads = [torch.randn(3, 4) * 1e5, torch.randn(2)]
    for bad in (None, torch.inf, -torch.inf, torch.nan):
        given = [grad.clone() for grad in grads]
        if bad is not None:
            given[1][0] = bad
        theirs, found = [grad.clone() for grad in given], torch.zeros(1)
        inverse = torch.tensor(1 / 1024)
        torch._amp_foreach_non_finite_check_and_unscale_(theirs, found, inverse)
        ours, found_inf = unscale(given, 1024.0)
        assert found_inf is bool(found)
        torch.testing.assert_close(ours, theirs, equal_nan=True)


def test_narrow_gradients_lose_nothing():
    grad = torch.tensor([2.0**-24, 1.0], dtype=HALF)
    (got,), found_inf = unscale([grad], 65536.0)
    assert got.dtype == torch.float32
    assert got.tolist() == [2.0**-40, 2.0**-16]
    assert not found_inf
    assert (grad / 65536)[0] == 0  # as it would be in float16


@pytest.mark.parametrize("interval", [1, 2, 3, 7])
@pytest.mark.parametrize(("growth", "backoff"), [(2.0, 0.5), (3.0, 0.25)])
def test_the_scale_follows_torchs_kernel(interval, growth, backoff):
    generator = torch.Generator().manual_seed(interval)
    ours, theirs = (1024.0, 0), (torch.tensor(1024.0), torch.tensor(0, dtype=torch.int32))
    for found in (torch.rand(200, generator=generator) < 0.2).tolist():
        ours = update_scale(*ours, found, growth, backoff, interval)
        found = torch.tensor(float(found))
        torch._amp_update_scale_(*theirs, found, growth, backoff, interval)
        assert ours[1] == int(theirs[1])
        assert ours[0] == pytest.approx(float(theirs[0]), rel=1e-5)


def test_the_largest_scale():
    scale, count = torch.tensor(2.0**127), torch.tensor(1999, dtype=torch.int32)
    torch._amp_update_scale_(scale, count, torch.tensor(0.0), 2.0, 0.5, 2000)
    assert (float(scale), int(count)) == update_scale(2.0**127, 1999, False) == (2.0**127, 0)


# A step --------------------------------------------------------------------------------


def scaled_training(dtype, scale, steps=40):
    """Ours and torch's GradScaler with SGD side by side; yields both models' losses."""
    torch.manual_seed(0)
    x, y = torch.randn(16, 8), torch.randn(16, 4)
    params = [torch.randn(8, 4).requires_grad_(), torch.zeros(4).requires_grad_()]
    theirs = [p.detach().clone().requires_grad_() for p in params]
    optimizer = torch.optim.SGD(theirs, lr=0.1)
    scaler = torch.amp.GradScaler("cpu", init_scale=scale, growth_interval=4)
    good_steps = 0
    for _ in range(steps):
        with torch.autocast("cpu", dtype=dtype):
            loss = specimens.squared_error(theirs, (x, y))
        optimizer.zero_grad()
        scaler.scale(loss).backward()
        scaler.step(optimizer)
        scaler.update()
        ours, grads, found_inf = mixed_precision_step(
            specimens.squared_error, params, (x, y), scale, dtype
        )
        if not found_inf:
            with torch.no_grad():
                for param, grad in zip(params, grads, strict=True):
                    param -= 0.1 * grad
        scale, good_steps = update_scale(scale, good_steps, found_inf, interval=4)
        yield ours, loss.item(), scale, scaler.get_scale(), found_inf


@pytest.mark.parametrize("dtype", [HALF, BRAIN])
def test_training_with_torchs_scaler_step_by_step(dtype):
    rows = list(scaled_training(dtype, 2.0**20))
    for ours, theirs, our_scale, their_scale, _ in rows:
        assert ours == pytest.approx(theirs, rel=1e-3)
        assert our_scale == their_scale
    assert any(row[-1] for row in rows) == (dtype == HALF)  # float16 overflows at first
    assert not all(row[-1] for row in rows)
    assert rows[-1][0] < 0.5 * rows[0][0]


def test_a_step_leaves_parameters_and_grad_alone():
    params = [torch.ones(3, 2, requires_grad=True), torch.ones(2, requires_grad=True)]
    params[0].grad = torch.full((3, 2), 7.0)
    batch = torch.ones(4, 3), torch.zeros(4, 2)
    _, grads, _ = mixed_precision_step(specimens.squared_error, params, batch, 8.0, HALF)
    assert params[0].grad.unique().tolist() == [7.0]
    assert params[1].grad is None
    assert [grad.shape for grad in grads] == [(3, 2), (2,)]
    assert {grad.dtype for grad in grads} == {torch.float32}
    assert not torch.is_autocast_enabled("cpu")


def test_small_gradients_need_the_scale():
    params = [torch.ones(1, 1, requires_grad=True), torch.zeros(1, requires_grad=True)]
    batch = torch.ones(1, 1), torch.zeros(1, 1)
    loss_fn = specimens.squared_error.using(weight=2.0**-30)
    for scale, dtype, wanted in (
        (1.0, HALF, 0.0), (65536.0, HALF, 2.0**-29), (1.0, BRAIN, 2.0**-29),
    ):  # fmt: skip
        _, (grad, _), found_inf = mixed_precision_step(loss_fn, params, batch, scale, dtype)
        assert (grad.item(), found_inf) == (wanted, False)
    assert mixed_precision_step(loss_fn, params, batch, 2.0**60, HALF)[2]


# Memory --------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["adamw", "sgd"])
def test_bytes_of_a_real_float32_training(name):
    model = torch.nn.Linear(30, 20)
    make = {"adamw": torch.optim.AdamW, "sgd": torch.optim.SGD}[name]
    optimizer = make(model.parameters(), lr=0.1)
    model(torch.ones(2, 30)).sum().backward()
    optimizer.step()
    kept = [*model.parameters(), *(p.grad for p in model.parameters())]
    for state in optimizer.state.values():
        kept += [value for key, value in state.items() if value is not None and key != "step"]
    n_params = sum(p.numel() for p in model.parameters())
    assert sum(t.nbytes for t in kept) == training_bytes(n_params, name, "float32")


def test_sixteen_bytes_a_parameter():
    """Rajbhandari et al. (2020), section 3.1: 2 + 2 + 12 bytes with Adam in mixed precision."""
    assert training_bytes(1) == 2 + 2 + (4 + 4 + 4) == training_bytes(1, precision="float32")
    assert training_bytes(1, "sgd") == training_bytes(1, "sgd", "float32") == 8
