"""The names and signatures that the course promises: whoever builds on them may rely on them."""

import inspect

import pytest

from autograde.exercise import chapters

PROMISED = {
    "03-causal-mask": [
        "causal_mask(n_query, n_key=None)",
        "additive_mask(allowed, dtype=np.float64)",
        "masked_softmax(scores, allowed)",
        "masked_attention(q, k, v, allowed)",
        "padding_mask(lengths, n_key)",
        "causal_padding_mask(lengths, n)",
        "dog_by_hand()",
    ],
}


def signature(function):
    """The call, without annotations; a type as NumPy's users write it."""
    parameters = []
    for parameter in inspect.signature(function).parameters.values():
        default = parameter.default
        shown = f"np.{default.__name__}" if isinstance(default, type) else repr(default)
        empty = default is parameter.empty
        parameters.append(parameter.name if empty else f"{parameter.name}={shown}")
    return f"{function.__name__}({', '.join(parameters)})"


@pytest.mark.parametrize("chapter", chapters())
def test_names_and_signatures_are_those_promised(chapter):
    found = [signature(exercise.reference) for exercise in chapters()[chapter]]
    assert found == PROMISED.get(chapter), "a new exercise is promised in this file, too"


def test_another_signature_is_noticed():
    def causal_mask(n, n_key=None): ...

    assert signature(causal_mask) not in PROMISED["03-causal-mask"]
