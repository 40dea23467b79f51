"""What a decoder learns from: an embedded text, any file, a source we made.

Characters are the tokens: few enough that a small model meets each of them often.
"""

from __future__ import annotations

from bisect import bisect
from collections import Counter
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path

import numpy as np
import torch


@dataclass(frozen=True)
class Corpus:
    """Tokens to learn from, and the tokenizer that reads and writes them."""

    name: str  # "topics", "synthetic", or the whole path of a file
    characters: Characters
    tokens: torch.Tensor
    source: Synthetic | None = None

    def fingerprint(self) -> str:
        """The same for the same tokens and characters only."""
        content = self.characters.symbols.encode() + self.tokens.numpy().tobytes()
        return sha256(content).hexdigest()


def load(name: str) -> Corpus:
    """The corpus "topics", "synthetic" (a million tokens of it), or a text file.

    Raises ValueError or OSError for a file that cannot be read, as `read` does.
    """
    if name == "synthetic":
        source = Synthetic()
        tokens = source.sample(1_000_000, seed=1)
        return Corpus(name, Characters(source.symbols), tokens, source)
    if name != "topics":
        name = str(Path(name).resolve())
    text = topics() if name == "topics" else read(name)
    characters = Characters(text)
    return Corpus(name, characters, characters.encode(text))


class UnknownCharacter(ValueError):
    """A text holds a character that the tokenizer has never seen."""


class Characters:
    """The characters of a text as tokens: id = place among them, in sorted order.

    Characters(tokenizer.symbols) makes the same tokenizer again.
    """

    def __init__(self, text: str):
        if not text:
            raise ValueError("the corpus is empty: give a text of some length")
        self.symbols = "".join(sorted(set(text)))
        self._codes = _codes(self.symbols)

    def __len__(self) -> int:
        return len(self.symbols)

    def encode(self, text: str) -> torch.Tensor:
        """Token ids, int64 (n,). Raises UnknownCharacter: which one, and where."""
        codes = _codes(text)
        ids = np.searchsorted(self._codes, codes).clip(max=len(self) - 1)
        unknown = self._codes[ids] != codes
        if unknown.any():
            place = int(unknown.argmax())
            line = text.count("\n", 0, place) + 1
            raise UnknownCharacter(
                f"{text[place]!r} (U+{codes[place]:04X}), character {place + 1} of "
                f"the text, in its line {line}, is not among the {len(self)} "
                f"characters of the corpus: {self.symbols!r}"
            )
        return torch.from_numpy(ids)

    def decode(self, ids) -> str:
        """The text of these token ids, a tensor (n,) or a list."""
        return "".join(self.symbols[i] for i in torch.as_tensor(ids).tolist())


def _codes(text: str) -> np.ndarray:
    return np.frombuffer(text.encode("utf-32-le", "surrogatepass"), dtype="<u4")


def read(path: str | Path) -> str:
    """The text of a UTF-8 file; line ends become \\n, a byte order mark is dropped.

    Raises OSError if it cannot be read, ValueError if it is no UTF-8 or is empty.
    """
    try:
        text = Path(path).read_text(encoding="utf-8-sig")
    except UnicodeDecodeError as error:
        raise ValueError(
            f"{path} is no UTF-8 text: byte {error.start} is "
            f"0x{error.object[error.start]:02x}. Convert it, as in "
            f"iconv -f LATIN1 -t UTF-8 {path}"
        ) from None
    if not text:
        raise ValueError(f"{path} is empty: give a text of some length")
    return text


def topics() -> str:
    """All of `help("topics")`: English of Python's own reference, in every CPython.

    It differs from one Python to the next: 465,048 characters in 3.11.7, 492,233 in
    3.12.1, 510,664 in 3.13.0. Topics that share a passage with another come first:
    so the last tenth, on which models are tested, repeats next to nothing of what
    they learnt from. In alphabetical order a twelfth of it would be repeated.
    """
    try:
        from pydoc_data.topics import topics as texts
    except ImportError:
        raise ValueError(
            "this Python comes without pydoc_data: train on a text file instead"
        ) from None
    passages = {
        name: {" ".join(p.split()) for p in text.split("\n\n")}
        for name, text in texts.items()
    }
    found = Counter(p for each in passages.values() for p in each)
    shares = {name: any(found[p] > 1 for p in passages[name]) for name in texts}
    order = sorted(texts, key=lambda name: (not shares[name], name))
    return "\n".join(texts[name] for name in order)


class Synthetic:
    """A made-up Markov source: what comes next depends on the last `order` symbols.

    Its entropy is known exactly. So a model can be told how good it could be, and
    one that is better than possible must have peeked.

    vocab: number of symbols. contrast: 0 is pure chance, more is more regular.
    seed: of the source itself; its samples have seeds of their own.
    """

    def __init__(
        self, vocab: int = 8, order: int = 2, contrast: float = 1.0, seed: int = 0
    ):
        self.vocab, self.order = vocab, order
        shape = (vocab,) * (order + 1)  # the context, oldest first; then the next
        weights = np.exp(contrast * np.random.default_rng(seed).normal(size=shape))
        self.transitions = weights / weights.sum(axis=-1, keepdims=True)
        self.stationary = self._stationary()

    @property
    def symbols(self) -> str:
        """A letter for each symbol, for a `Characters` of them: "ABC..."."""
        return "".join(chr(ord("A") + i) for i in range(self.vocab))

    def _stationary(self) -> np.ndarray:
        """How often each context occurs, in the long run: (vocab,) * order."""
        n, vocab = self.vocab**self.order, self.vocab
        step = np.zeros((n, n))
        for context in range(n):
            new = context * vocab % n + np.arange(vocab)  # forget the oldest
            step[context, new] = self.transitions.reshape(n, vocab)[context]
        # p = p @ step has one solution that sums to 1: put that in as an equation.
        equations = np.vstack([step.T - np.eye(n), np.ones(n)])
        p = np.linalg.lstsq(equations, np.append(np.zeros(n), 1.0), rcond=None)[0]
        return p.reshape((vocab,) * self.order)

    def entropy(self, known: int) -> float:
        """Nats per symbol for one who knows the source and `known` symbols."""
        joint = self.stationary[..., None] * self.transitions
        forgotten = tuple(range(self.order - min(known, self.order)))
        joint = joint.sum(axis=forgotten)  # (vocab,) * (known + 1)
        given = joint.sum(axis=-1, keepdims=True)
        return float(-(joint * np.log(joint / given)).sum())

    @property
    def entropy_rate(self) -> float:
        """Nats per token that even a perfect model cannot foresee; exact."""
        return self.entropy(self.order)

    def floor(self, block: int) -> float:
        """The lowest loss that `evaluate` can give, but for the luck of a sample.

        It lies a little above the entropy rate: a block's first tokens are foreseen
        from less than `order` others.
        """
        return float(np.mean([self.entropy(t + 1) for t in range(block)]))

    def sample(self, n: int, seed: int) -> torch.Tensor:
        """n tokens of the source, int64 (n,); the first ones are stationary."""
        luck = np.random.default_rng(seed).random(n + 1)
        rows = self.transitions.reshape(-1, self.vocab).cumsum(axis=-1)
        rows = rows[:, :-1].tolist()  # bisect in what remains gives 0 to vocab - 1
        context = bisect(self.stationary.cumsum()[:-1].tolist(), luck[0])
        # The context's own symbols are the first tokens, oldest first.
        digits = np.unravel_index(context, (self.vocab,) * self.order)
        tokens = [int(d) for d in digits]
        for chance in luck[1:].tolist():
            new = bisect(rows[context], chance)
            context = (context * self.vocab + new) % len(rows)
            tokens.append(new)
        return torch.tensor(tokens[:n])
