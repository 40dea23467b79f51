"""Muon, against the definition of its update and against torch.optim's."""

import io

import pytest

torch = pytest.importorskip("torch")

from autograde.decoder import Config, Decoder  # noqa: E402
from autograde.decoder.muon import Muon, orthogonalize  # noqa: E402
from autograde.decoder.training import Recipe, Training  # noqa: E402

SHAPES = [(8, 8), (8, 32), (32, 8), (8, 8), (8, 32)]


def random(*shape, seed):
    return torch.randn(shape, generator=torch.Generator().manual_seed(seed))


@pytest.mark.parametrize("shape", [(3, 16, 16), (2, 16, 64), (2, 64, 16)])
def test_orthogonalize_keeps_directions_and_evens_their_lengths(shape):
    x = random(*shape, seed=1)
    u, _, vh = torch.linalg.svd(x, full_matrices=False)
    inside = u.mT @ orthogonalize(x) @ vh.mT
    lengths = inside.diagonal(dim1=-2, dim2=-1)
    assert (inside - torch.diag_embed(lengths)).abs().max() < 1e-3
    assert (lengths > 0.4).all()
    assert (lengths < 1.3).all()


def test_orthogonalize_of_nothing_is_nothing():
    assert orthogonalize(torch.zeros(2, 4, 6)).eq(0).all()


def stepped(make, parameters, steps=4):
    """The parameters after some steps with gradients that depend on the step alone."""
    parameters = [p.clone().requires_grad_() for p in parameters]
    optimizer = make(parameters)
    for step in range(steps):
        for i, p in enumerate(parameters):
            p.grad = random(*p.shape, seed=100 * step + i)
        optimizer.step()
    return [p.detach() for p in parameters]


def as_muon(lr=0.02, weight_decay=0.1, betas=(0.9, 0.99)):
    def make(parameters):
        groups = [{"params": parameters, "muon": True}]
        return Muon(groups, lr=lr, betas=betas, weight_decay=weight_decay)

    return make


def test_a_step_is_that_of_torchs_muon():
    """Theirs takes (out, in) and computes in bfloat16, which has 8 bits."""
    if not hasattr(torch.optim, "Muon"):
        pytest.skip("torch.optim.Muon came with torch 2.9")
    start = [random(*shape, seed=i) for i, shape in enumerate(SHAPES)]
    ours = stepped(as_muon(), start)

    def theirs(parameters):
        return torch.optim.Muon(parameters, lr=0.02, weight_decay=0.1, momentum=0.9)

    def transposed(parameters):
        parameters = [p.mT.contiguous() for p in parameters]
        held = [p.clone().requires_grad_() for p in parameters]
        optimizer = theirs(held)
        for step in range(4):
            for i, p in enumerate(held):
                p.grad = random(*p.mT.shape, seed=100 * step + i).mT.contiguous()
            optimizer.step()
        return [p.detach().mT for p in held]

    for before, mine, other in zip(start, ours, transposed(start), strict=True):
        moved, expected = mine - before, other - before
        assert (moved - expected).norm() < 0.03 * expected.norm()


def test_matrices_of_one_shape_do_not_mix():
    start = [random(*shape, seed=i) for i, shape in enumerate(SHAPES)]
    together = stepped(as_muon(), start)
    for i, parameter in enumerate(start):
        blank = [p if j == i else torch.zeros(1, 1) for j, p in enumerate(start)]
        alone = stepped(as_muon(), blank)[i]
        assert torch.allclose(alone, together[i], atol=1e-5)
        assert not torch.equal(alone, parameter)


def test_other_groups_are_adamws():
    start = [random(5, seed=1), random(7, 3, seed=2)]
    how = {"lr": 0.01, "betas": (0.8, 0.9), "weight_decay": 0.1}
    ours = stepped(lambda p: Muon(p, **how), start)
    theirs = stepped(lambda p: torch.optim.AdamW(p, **how), start)
    assert all(torch.equal(a, b) for a, b in zip(ours, theirs, strict=True))


def trained(steps_at_once):
    """The weights after six steps, saved to and loaded from memory in between."""
    tokens = torch.arange(600) ** 2 % 7
    recipe = Recipe(steps=6, batch=4, block=8, max_lr=0.05, optimizer="muon", precision="float32")
    state = None
    for end in range(steps_at_once, 7, steps_at_once):
        torch.manual_seed(1)
        config = Config(vocab=7, d_model=8, n_layers=2, n_heads=2, d_ff=16, max_seq=8)
        training = Training(Decoder(config), tokens[:500], tokens[500:], recipe)
        if state is not None:
            training.load_state_dict(state)
        while training.step < end:
            training.advance()
        file = io.BytesIO()
        torch.save(training.state_dict(), file)
        file.seek(0)
        state = torch.load(file, weights_only=True)
    return training


def test_a_training_goes_on_to_the_same_bits():
    whole, resumed = (trained(n).model.state_dict() for n in (6, 2))
    assert all(torch.equal(whole[name], resumed[name]) for name in whole)


def test_muon_takes_the_blocks_matrices_and_adamw_the_rest():
    training = trained(6)
    for name, parameter in training.model.named_parameters():
        by_muon = "exp_avg_sq" not in training.optimizer.state[parameter]
        assert by_muon == (name.startswith("blocks") and parameter.dim() == 2), name
