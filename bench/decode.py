"""Tokens per second with the KV cache, without it, and by Hugging Face's transformers.

A GPT-2 with random weights continues prompts greedily on one thread, three ways: the course's
`generate` with its cache, the same without, and transformers' `generate` with its own cache, on a
copy of the weights. They take turns, again and again, and the medians are compared. The seconds
are the processor's, so that what else the machine does matters little.
"""

from __future__ import annotations

import os
from statistics import median
from time import process_time
from typing import Any

import torch

from autograde.decoder import Config, Decoder
from autograde.decoder.generation import generate

SHAPE = {"vocab": 65, "d_model": 384, "n_layers": 6, "n_heads": 6, "d_ff": 1536}
CASES = ((16, 1), (256, 1), (1024, 1), (16, 8), (256, 8), (1024, 8))  # context, sequences
TINY = {"vocab": 11, "d_model": 24, "n_layers": 2, "n_heads": 3, "d_ff": 96}
NEW, PLAIN_NEW = 32, 2  # tokens timed with a cache, and without one


def run(quick: bool = False, repeats: int = 7) -> dict[str, Any]:
    """Measure all cases; of the uncached way only single sequences (it takes them one by one)."""
    torch.set_num_threads(1)
    shape, cases = (TINY, ((5, 1), (9, 2))) if quick else (SHAPE, CASES)
    repeats, new = (2, 4) if quick else (repeats, NEW)
    model = gpt2(**shape, max_seq=max(n for n, _ in cases) + new)
    theirs, version = as_transformers(model)
    rows = []
    for context, batch in cases:
        print(f"decode: {context} tokens of context, batch {batch} ...", flush=True)
        rows.append(case(model, theirs, context, batch, new, repeats))
        print(line(rows[-1]), flush=True)
    model_says = {**shape, "max_seq": model.config.max_seq}
    return {
        "transformers": version,
        "model": model_says,
        "repeats": repeats,
        "new": new,
        "rows": rows,
    }


def case(model, theirs, context: int, batch: int, new: int, repeats: int) -> dict[str, Any]:
    """One context and batch: seconds to the first token and for each further one."""
    prompt = torch.randint(model.config.vocab, (batch, context))

    def ours(n_new, cached=True):
        return torch.stack(generate(model, list(prompt), n_new, cached=cached))

    def hf(n_new):
        return theirs(prompt, n_new)

    same = torch.equal(ours(new + 1), hf(new + 1))  # and a warm-up
    if batch == 1:
        same = same and torch.equal(ours(PLAIN_NEW, cached=False), hf(PLAIN_NEW))
    times: dict[str, list] = {"cached": [], "transformers": [], "uncached": []}
    for _ in range(repeats):
        times["cached"].append(first_and_step(ours, new))
        times["transformers"].append(first_and_step(hf, new))
        if batch == 1:
            whole = clock(lambda: ours(PLAIN_NEW, cached=False))
            times["uncached"].append((whole / PLAIN_NEW, whole / PLAIN_NEW))
    row: dict[str, Any] = {"context": context, "batch": batch, "identical": same}
    for way, found in times.items():
        first, step = (median(each) for each in zip(*found, strict=True)) if found else (None, None)
        rate = batch / step if step else None
        row[way] = {"first": first, "step": step, "tokens_per_second": rate}
    fast = row["cached"]["tokens_per_second"]
    for way in ("uncached", "transformers"):
        other = row[way]["tokens_per_second"]
        row[f"times_{way}"] = fast / other if other else None
    return row


def first_and_step(continued, new: int) -> tuple[float, float]:
    """Seconds for the prompt and the first token, and for each token after it."""
    first, whole = (clock(lambda n=n: continued(n)) for n in (1, new + 1))
    return first, (whole - first) / new


def clock(function) -> float:
    begin = process_time()
    function()
    return process_time() - begin


@torch.no_grad()
def gpt2(**shape) -> Decoder:
    """Random, with weights larger than before training: those repeat one token."""
    torch.manual_seed(0)
    model = Decoder(Config(**shape, gelu="tanh", attention_bias=True))
    for p in model.parameters():
        p.add_(0.05 * torch.randn_like(p))
    return model.eval()


def as_transformers(model: Decoder):
    """transformers' GPT-2 with these weights, as a function (prompt, n_new) -> tokens; version."""
    os.environ["HF_HUB_OFFLINE"] = "1"
    try:
        import transformers
    except ModuleNotFoundError as error:
        raise ModuleNotFoundError(
            f"{error}: pip install -r bench/requirements.txt (make bench does it)"
        ) from None
    transformers.logging.set_verbosity_error()
    c = model.config
    config = transformers.GPT2Config(
        vocab_size=c.vocab, n_positions=c.max_seq, n_embd=c.d_model, n_layer=c.n_layers,
        n_head=c.n_heads, n_inner=c.d_ff, bos_token_id=None, eos_token_id=None,
    )  # fmt: skip
    theirs = transformers.GPT2LMHeadModel(config).eval()
    theirs.load_state_dict(renamed(model))  # strict: every weight has its place

    def continued(prompt, n_new):
        return theirs.generate(
            prompt, attention_mask=torch.ones_like(prompt), max_new_tokens=n_new,
            min_new_tokens=n_new, do_sample=False, use_cache=True, pad_token_id=0,
        )  # fmt: skip

    return continued, transformers.__version__


def renamed(model: Decoder) -> dict[str, torch.Tensor]:
    """Our weights under the names of transformers' GPT-2."""
    params = {name: p.detach() for name, p in model.named_parameters()}
    found = {
        "transformer.wte.weight": params["token_embedding"],
        "lm_head.weight": params["token_embedding"],
        "transformer.wpe.weight": params["position_embedding"],
        "transformer.ln_f.weight": params["norm_gain"],
        "transformer.ln_f.bias": params["norm_bias"],
    }
    for i in range(model.config.n_layers):
        ours = {n.rpartition(".")[2]: p for n, p in params.items() if n.startswith(f"blocks.{i}.")}
        theirs = {
            "ln_1.weight": ours["norm1_gain"],
            "ln_1.bias": ours["norm1_bias"],
            "attn.c_attn.weight": torch.cat([ours[f"w_{part}"] for part in "qkv"], dim=1),
            "attn.c_attn.bias": torch.cat([ours[f"b_{part}"] for part in "qkv"]),
            "attn.c_proj.weight": ours["w_o"],
            "attn.c_proj.bias": ours["b_o"],
            "ln_2.weight": ours["norm2_gain"],
            "ln_2.bias": ours["norm2_bias"],
            "mlp.c_fc.weight": ours["w_up"],
            "mlp.c_fc.bias": ours["b_up"],
            "mlp.c_proj.weight": ours["w_down"],
            "mlp.c_proj.bias": ours["b_down"],
        }
        found |= {f"transformer.h.{i}.{name}": p for name, p in theirs.items()}
    return found


TITLES = (
    "context",
    "batch",
    "tokens/s",
    "uncached",
    "times",
    "transformers",
    "times",
    "same tokens",
)


def line(row: dict[str, Any]) -> str:
    def number(value, digits=1):
        return "-" if value is None else f"{value:,.{digits}f}"

    rates = [row[way]["tokens_per_second"] for way in ("cached", "uncached", "transformers")]
    cells = [str(row["context"]), str(row["batch"]), number(rates[0])]
    cells += [number(rates[1]), number(row["times_uncached"])]
    cells += [number(rates[2]), number(row["times_transformers"], 2)]
    cells.append("yes" if row["identical"] else "NO")
    return "".join(f"{cell:>{len(t) + 4}}" for cell, t in zip(cells, TITLES, strict=True))


def show(data: dict[str, Any]) -> str:
    """A line for each case: ours, and how many times as fast it is as the others."""
    titles = "".join(f"{title:>{len(title) + 4}}" for title in TITLES)
    return "\n".join([titles, *map(line, data["rows"])])
