"""Chapter 1 to play with: one factor of the chain rule after the other."""

from __future__ import annotations

from fractions import Fraction

import numpy as np

from autograde.figures.play import Play, text
from autograde.reference.ch01_autoregressive import sequence_log_prob

ARTICLES, ADJECTIVES = ["the", "a"], ["small", "old"]
NOUNS, VERBS = ["cat", "dog", "bird"], ["sees", "likes"]
WORDS = [*ARTICLES, *ADJECTIVES, *NOUNS, *VERBS, "."]
SENTENCE = ["the", "cat", "sees", "a", "dog", "."]


def next_words(before: list[str]) -> list[str]:
    """The words that may come next, by the rules of the chapter; `before` begins with <s>."""
    last = before[-1]
    if last in ["<s>", ".", *VERBS]:
        return ARTICLES
    if last in ARTICLES:
        return ADJECTIVES + NOUNS
    if last in ADJECTIVES:
        return NOUNS
    marks = [word for word in before if word in ["<s>", ".", *VERBS]]
    return ["."] if marks[-1] in VERBS else VERBS


def play() -> Play:
    """Each word of the chapter's sentence: what it may see, its probability, the product."""
    tokens = np.array([WORDS.index(word) for word in SENTENCE])
    table = np.zeros((len(SENTENCE), len(WORDS)))
    for t in range(len(SENTENCE)):
        possible = next_words(["<s>", *SENTENCE[:t]])
        table[t, [WORDS.index(word) for word in possible]] = 1 / len(possible)
    with np.errstate(divide="ignore"):
        honest = np.log(table)  # row t: log p(. | the words before t)
        peeking = np.log(np.eye(len(WORDS))[tokens])  # it has seen the word, and repeats it
    data = {
        "words": SENTENCE,
        "vocabulary": WORDS,
        "honest": factors(honest, tokens),
        "peeking": factors(peeking, tokens),
    }
    rows = [
        [
            " ".join(["<s>", *SENTENCE[:t]]),
            SENTENCE[t],
            " ".join(next_words(["<s>", *SENTENCE[:t]])),
            step["p"],
            step["product"],
            step["log"],
        ]
        for t, step in enumerate(data["honest"])
    ]
    head = ["It reads", "next word", "could be", "probability", "product so far", "its log"]
    return Play("The chain rule, word by word", data, head, rows, (500, 612))


def factors(log_probs, tokens) -> list[dict]:
    """For each position: p of every word, p of the one that came, product and log so far."""
    probs, product, steps = np.exp(log_probs), Fraction(1), []
    for t, token in enumerate(tokens):
        factor = fraction(probs[t, token])
        product *= factor
        log = sequence_log_prob(log_probs[: t + 1], tokens[: t + 1])
        steps.append(
            {
                "probs": [str(fraction(p)) for p in probs[t]],
                "p": str(factor),
                "product": str(product),
                "log": text(log),
            }
        )
    return steps


def fraction(p: float) -> Fraction:
    return Fraction(p).limit_denominator(100)
