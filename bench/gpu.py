"""What a GPU does with the decoder: speed by precision, memory, training, generating.

Every part may fail on its own, is told how long it may take, and is written to
bench/results/gpu.json as soon as it is done. With --device cpu --quick the same code
runs at tiny sizes.
"""

from __future__ import annotations

import gc
import subprocess
from collections.abc import Callable
from dataclasses import asdict, replace
from functools import partial
from itertools import product
from pathlib import Path
from time import perf_counter
from typing import Any

import torch
from torch.nn.functional import dropout

from autograde.decoder import Config, Decoder
from autograde.decoder.accounting import checkpoint_blocks, flops_per_token, saved_for_backward
from autograde.decoder.corpus import load
from autograde.decoder.evaluation import autocast, loss_of
from autograde.decoder.generation import generate
from autograde.decoder.training import Recipe, Training, evaluate
from autograde.reference.ch11_training import split_tokens
from bench.record import write

GPT2_SMALL = Config(50304, 768, 12, 12, 3072, 1024, gelu="tanh")  # vocab: a multiple of 64
TARGET = 1.4697  # nanoGPT's README: Tiny Shakespeare, 6 layers of 384, about 3 minutes on an A100
SECONDS = 460  # for all parts together
# Dense bfloat16 TFLOP/s, from NVIDIA's data sheets of these chips.
PEAKS = {"NVIDIA A100": 312.0, "NVIDIA H100 80GB HBM3": 989.0, "NVIDIA H200": 989.0}


def options(parser) -> None:
    parser.add_argument("--device", default="cuda", help="cuda (the default) or cpu")
    parser.add_argument("--corpus", default="", help="Tiny Shakespeare, as a text file")
    parser.add_argument("--only", nargs="*", choices=PARTS, help="these parts alone")


def run(
    quick: bool = False, device: str = "cuda", corpus: str = "", only: list[str] | None = None
) -> dict[str, Any]:
    if device == "cuda" and not torch.cuda.is_available():
        raise ValueError("no CUDA GPU is here; try `python -m bench gpu --device cpu --quick`")
    data: dict[str, Any] = {"quick": quick, "chip": chip(device), "parts": {}, "errors": {}}
    begin, missing = perf_counter(), {}
    for name in only or PARTS:
        part, share = PARTS[name]
        left = SECONDS - (perf_counter() - begin)
        limit = min(left, share)
        print(f"{name}: at most about {limit:.0f} s", flush=True)
        try:
            if limit < 5:
                raise TimeoutError("the time for all parts was used up before it")
            if name == "shakespeare":
                missing = {"corpus": corpus}
            data["parts"][name] = part(torch.device(device), limit, quick, **missing)
        except Exception as error:  # the other parts can still be measured
            data["errors"][name] = f"{type(error).__name__}: {error}"[:500]
            print(f"{name}: {data['errors'][name]}", flush=True)
        missing = {}
        free(torch.device(device))
        data["seconds"] = perf_counter() - begin
        if not quick:
            write("gpu", data)
    return data


def chip(device: str) -> dict[str, Any]:
    """Which chip it is, and what its maker says it can do."""
    if device != "cuda":
        return {"name": "CPU", "peak_tflops": None}
    found = torch.cuda.get_device_properties(0)
    known = [peak for name, peak in PEAKS.items() if found.name.startswith(name)]
    query = ["nvidia-smi", "--query-gpu=driver_version,power.limit", "--format=csv,noheader"]
    try:
        driver = subprocess.run(
            query, capture_output=True, text=True, check=True, timeout=20
        ).stdout
    except (OSError, subprocess.SubprocessError):
        driver = ""
    return {
        "name": found.name,
        "memory_bytes": found.total_memory,
        "capability": f"{found.major}.{found.minor}",
        "cuda": torch.version.cuda,
        "cudnn": torch.backends.cudnn.version(),
        "driver": driver.strip().partition("\n")[0],
        "peak_tflops": known[0] if known and "NVL" not in found.name else None,
    }


def free(device: torch.device) -> None:
    """Give back what nobody uses any more."""
    gc.collect()
    if device.type == "cuda":
        torch.cuda.empty_cache()


def wait(device: torch.device) -> None:
    """Until the GPU has done all that it was given."""
    if device.type == "cuda":
        torch.cuda.synchronize()


def seconds_of(device: torch.device, work: Callable[[], Any], limit: float) -> float:
    """Of one call of `work`: the mean of many, within about `limit` seconds."""
    wait(device)
    begin = perf_counter()
    work()
    wait(device)
    times = max(2, min(100, int(limit / max(perf_counter() - begin, 1e-6))))
    begin = perf_counter()
    for _ in range(times):
        work()
    wait(device)
    return (perf_counter() - begin) / times


def products(device: torch.device, limit: float, quick: bool) -> dict[str, float]:
    """TFLOP/s of one large matrix product, what this chip can do at best, by dtype."""
    n, found = 256 if quick else 8192, {}
    for dtype in (torch.float32, torch.bfloat16, torch.float16):
        a, b = (torch.randn(n, n, device=device).to(dtype) for _ in range(2))
        work = partial(torch.matmul, a, b)
        work()
        seconds = seconds_of(device, work, limit / 6)
        found[str(dtype).removeprefix("torch.")] = 2 * n**3 / seconds / 1e12
    return found


def sizes(quick: bool) -> tuple[Config, int, int]:
    """(model, batch, block)"""
    tiny = Config(64, 32, 2, 2, 64, 32, gelu="tanh")
    if quick:
        return tiny, 2, 32
    roomy = torch.cuda.is_available() and torch.cuda.mem_get_info()[1] > 30e9
    return GPT2_SMALL, 16 if roomy else 4, 1024


def training(device, config, batch, block, **changes) -> Training:
    """A model that is trained on random tokens, which cost what others do."""
    torch.manual_seed(0)
    model = Decoder(config).to(device)
    tokens = torch.randint(config.vocab, (4 * block * batch,))
    recipe = Recipe(steps=10**6, batch=batch, block=block, warmup=0, **changes)
    return Training(model, tokens, None, recipe)


def table(device: torch.device, limit: float, quick: bool) -> list[dict[str, Any]]:
    """Training steps of GPT-2 small by precision, with and without torch.compile."""
    config, batch, block = sizes(quick)
    rows, end, longest = [], perf_counter() + limit, 0.0
    precisions = [p for p in ("bfloat16", "float16", "tf32", "float32") if on(device, p)]
    compiling = (False,) if quick else (False, True)  # on a CPU it takes minutes
    for compiled, precision in product(compiling, precisions):
        row, begin = {"precision": precision, "compiled": compiled}, perf_counter()
        try:
            if begin + longest > end:
                raise TimeoutError("left out: the time for this table was used up")
            pause = 0.1 if quick else limit / 40
            row |= speed(device, config, batch, block, precision, compiled, pause)
        except Exception as error:  # no compiler, out of memory
            row["error"] = f"{type(error).__name__}: {error}"[:300]
        row["took"] = perf_counter() - begin
        longest = max(longest, row["took"])
        print(f"  {row}", flush=True)
        rows.append(row)
    return rows


def on(device: torch.device, precision: str) -> bool:
    """Can training run so there?"""
    return device.type == "cuda" or precision != "tf32"


def speed(device, config, batch, block, precision, compiled, limit) -> dict[str, Any]:
    """tokens/s of whole steps, the optimizer's included, and the peak of memory."""
    free(device)
    torch._dynamo.reset()
    torch.set_float32_matmul_precision("high" if precision == "tf32" else "highest")
    try:
        dtype = "float32" if precision == "tf32" else precision
        trained = training(device, config, batch, block, precision=dtype, compile=compiled)
        for _ in range(3):  # compiling, too
            trained.advance()
        if device.type == "cuda":
            torch.cuda.reset_peak_memory_stats()
        seconds = seconds_of(device, trained.advance, limit)
    finally:
        torch.set_float32_matmul_precision("highest")
    on_gpu = device.type == "cuda"
    tokens = batch * block
    return {
        "ms_per_step": 1000 * seconds,
        "tokens_per_second": tokens / seconds,
        "tflops": flops_per_token(config, block) * tokens / seconds / 1e12,
        "peak_bytes": torch.cuda.max_memory_allocated() if on_gpu else None,
    }


def memory(device: torch.device, limit: float, quick: bool) -> list[dict[str, Any]]:
    """Bytes of weights, gradients, moments and activations, with checkpointing and without."""
    config, batch, block = sizes(quick)
    rows = []
    for precision in ("float32", "bfloat16"):
        for checkpointed in (False, True):
            trained = training(device, config, batch, block, precision=precision)
            trained.advance()
            if checkpointed:
                checkpoint_blocks(trained.model)
            row = {"precision": precision, "checkpointed": checkpointed}
            rows.append(row | held(device, trained, batch, block))
            print(f"  {rows[-1]}", flush=True)
            del trained
    return rows


def held(device: torch.device, trained: Training, batch: int, block: int) -> dict[str, Any]:
    """What one step holds: told by its tensors, and by PyTorch's allocator."""
    model, on_gpu = trained.model, device.type == "cuda"
    tokens = torch.randint(model.config.vocab, (batch, block + 1), device=device)
    if on_gpu:
        gc.collect()
        torch.cuda.reset_peak_memory_stats()
        before = torch.cuda.memory_allocated()
    with saved_for_backward(model) as saved, autocast(trained.precision, device):
        loss = loss_of(model, tokens[:, :-1], tokens[:, 1:])
    kept = torch.cuda.memory_allocated() - before if on_gpu else None
    loss.backward()
    weights = sum(p.nbytes for p in model.parameters())
    states = trained.optimizer.state.values()
    moments = sum(t.nbytes for state in states for key, t in state.items() if key != "step")
    return {
        "n_params": sum(p.numel() for p in model.parameters()),
        "weights_bytes": weights,
        "gradients_bytes": sum(p.grad.nbytes for p in model.parameters()),
        "moments_bytes": moments,
        "saved_bytes": saved.bytes,
        "allocated_for_backward": kept,
        "peak_bytes": torch.cuda.max_memory_allocated() if on_gpu else None,
    }


def decode(device: torch.device, limit: float, quick: bool) -> list[dict[str, Any]]:
    """New tokens per second of GPT-2 small in bfloat16, greedy, after a prompt."""
    config, _, block = sizes(quick)
    torch.manual_seed(0)
    model = Decoder(config).to(device, torch.bfloat16).eval()
    prompt, n_new = block // 4, block // 4
    rows, end = [], perf_counter() + limit
    for batch, cached in ((1, False), (1, True), (8, True), (64, True)):
        if perf_counter() > end:
            break
        prompts = torch.randint(config.vocab, (batch, prompt), device=device)
        work = partial(generate, model, list(prompts), n_new, cached=cached)
        seconds = seconds_of(device, work, limit / 8)
        row = {"batch": batch, "cached": cached, "prompt": prompt, "n_new": n_new}
        rows.append(row | {"seconds": seconds, "tokens_per_second": batch * n_new / seconds})
        print(f"  {rows[-1]}", flush=True)
    return rows


def shakespeare(device: torch.device, limit: float, quick: bool, corpus: str) -> dict[str, Any]:
    """Seconds until a decoder of nanoGPT's size has its validation loss.

    The clock runs while it trains, and stands while it is evaluated. Some steps of another
    model come first: they tell what a step takes, and so how many there is time for.
    """
    if not corpus and not quick:
        raise ValueError("give Tiny Shakespeare with --corpus FILE (chapter 11 says where from)")
    text = load(corpus or "topics")
    train, val = split_tokens(text.tokens[:4000] if quick else text.tokens, 0.1)
    config, recipe = shakespeare_sizes(len(text.characters), quick)
    begin, trained = perf_counter(), new_training(device, config, recipe, train)
    for _ in range(2):  # compiling
        trained.advance()
    step = seconds_of(device, trained.advance, 2.0 if not quick else 0.1)
    end, before = begin + limit, perf_counter() - begin
    recipe = replace(recipe, steps=min(recipe.steps, int(0.85 * (limit - before) / step)))
    trained = new_training(device, config, recipe, train)
    model, rows, reached = trained.model, [], None
    while trained.step < recipe.steps and reached is None and perf_counter() < end:
        for _ in range(min(recipe.eval_every, recipe.steps - trained.step)):
            trained.advance()
        row = trained.measure()
        model.eval()
        row["val_loss"] = evaluate(model, val, recipe.block, trained.precision)
        model.train()
        rows.append(row)
        print(f"  {row}", flush=True)
        reached = row["seconds"] if row["val_loss"] <= TARGET and not quick else None
    return {
        "corpus": Path(corpus).name or text.name, "target": TARGET,
        "seconds_to_target": reached, "seconds_before": before,
        "best": min(row["val_loss"] for row in rows), "dropout": 0.2,
        "model": asdict(config), "recipe": asdict(recipe), "rows": rows,
    }  # fmt: skip


def new_training(device, config: Config, recipe: Recipe, tokens) -> Training:
    torch.manual_seed(0)
    return Training(drop_out(Decoder(config).to(device), 0.2), tokens, None, recipe)


def shakespeare_sizes(vocab: int, quick: bool) -> tuple[Config, Recipe]:
    """nanoGPT's config/train_shakespeare_char.py, as our names have it."""
    config = Config(vocab, 384, 6, 6, 1536, 256)
    recipe = Recipe(
        steps=5000, batch=64, block=256, max_lr=1e-3, min_lr=1e-4, warmup=100, betas=(0.9, 0.99),
        weight_decay=0.1, clip=1.0, eval_every=250, compile=True,
    )  # fmt: skip
    if not quick:
        return config, recipe
    tiny = replace(config, d_model=32, n_layers=2, n_heads=2, d_ff=64, max_seq=16)
    small = replace(recipe, steps=4, batch=2, block=16, warmup=1, eval_every=2, compile=False)
    return tiny, replace(small, precision="bfloat16")


def drop_out(model: Decoder, p: float) -> Decoder:
    """Dropout of what each block adds to the stream, while training."""

    def forward(block, whole, x, *others):
        return x + dropout(whole(x, *others) - x, p, block.training)

    for block in model.blocks:
        block.forward = partial(forward, block, block.forward)
    return model


# What is measured, and the most seconds that it may take; the most telling ones come first.
PARTS: dict[str, tuple[Callable[..., Any], float]] = {
    "products": (products, 15.0),
    "table": (table, 170.0),
    "shakespeare": (shakespeare, 180.0),
    "memory": (memory, 40.0),
    "decode": (decode, 50.0),
}


def show(data: dict[str, Any]) -> str:
    """The parts as text, one line for each row."""
    lines = [f"{data['chip']['name']}, {data.get('seconds', 0):.0f} s"]
    parts = data["parts"]
    peak = data["chip"]["peak_tflops"]
    for name, tflops in parts.get("products", {}).items():
        lines.append(f"product  {name:9s} {tflops:9.2f} TFLOP/s")
    for row in parts.get("table", []):
        how = "compiled" if row["compiled"] else "eager"
        told = row.get("error") or (
            f"{row['tokens_per_second']:10.0f} tokens/s  {row['tflops']:7.2f} TFLOP/s"
            + (f"  MFU {row['tflops'] / peak:.1%}" if peak else "")
        )
        lines.append(f"train    {row['precision']:9s} {how:9s}{told}")
    for row in parts.get("memory", []):
        how = "checkpointed" if row["checkpointed"] else ""
        lines.append(
            f"memory   {row['precision']:9s} saved {row['saved_bytes'] / 1e6:9.1f} MB {how}"
        )
    for row in parts.get("decode", []):
        how = "cache" if row["cached"] else "no cache"
        lines.append(
            f"decode   {row['batch']:3d} {how:9s}{row['tokens_per_second']:10.0f} tokens/s"
        )
    if found := parts.get("shakespeare"):
        reached = found["seconds_to_target"]
        when = f"{found['target']} after {reached:.0f} s" if reached else "the target not reached"
        lines.append(f"text     best {found['best']:.4f}, {when}")
    lines += [f"{name}: {error}" for name, error in data["errors"].items()]
    return "\n".join(lines)
