"""Training: the loop, what it keeps, the command, and what it says of bad input."""

import json
import math
import os
import re
import resource
import signal
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

torch = pytest.importorskip("torch")

from autograde.decoder import Config, Decoder, checkpoint, corpus  # noqa: E402
from autograde.decoder.__main__ import main  # noqa: E402
from autograde.decoder.commands import continued  # noqa: E402
from autograde.decoder.corpus import (  # noqa: E402
    Characters,
    Synthetic,
    UnknownCharacter,
)
from autograde.decoder.generation import generate  # noqa: E402
from autograde.decoder.training import (  # noqa: E402
    Recipe,
    Training,
    evaluate,
    fit,
    resolve,
)
from autograde.reference.ch11_training import (  # noqa: E402
    adamw_step,
    clip_by_global_norm,
    cross_entropy,
    get_batch,
    learning_rate,
)

SMALL = {"d_model": 16, "n_layers": 1, "n_heads": 2, "d_ff": 32, "max_seq": 16}
RECIPE = Recipe(steps=8, batch=4, block=16, max_lr=1e-2, eval_every=4, warmup=2)
TRAIN = ["train", "--config", "d_model=16", "n_layers=1", "n_heads=2", "d_ff=32", "block=16"]
SOURCE = Synthetic(vocab=6)
TOKENS = SOURCE.sample(3000, seed=1)


@pytest.fixture(autouse=True)
def one_thread(monkeypatch):
    """Here and in the processes started: another number of threads gives other last bits."""
    before = torch.get_num_threads()
    monkeypatch.setenv("OMP_NUM_THREADS", "1")
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


def decoder(vocab=6, **kind):
    torch.manual_seed(0)
    return Decoder(Config(vocab=vocab, **SMALL | kind))


def trained(recipe=RECIPE, model=None, **how):
    model = decoder() if model is None else model
    return fit(model, TOKENS[:2500], TOKENS[2500:], recipe, **how), model


def same_weights(a, b):
    pairs = zip(a.state_dict().values(), b.state_dict().values(), strict=True)
    return all(torch.equal(x, y) for x, y in pairs)


def curves(rows):
    """All of the rows that does not depend on the clock."""
    return [{k: v for k, v in row.items() if k != "seconds"} for row in rows]


# Corpora


def test_characters_go_there_and_back():
    text = "Why? “é” \n tab\t \U0001f600 z"
    characters = Characters(text)
    ids = characters.encode(text)
    assert ids.dtype == torch.int64
    assert ids.shape == (len(text),)
    assert characters.decode(ids) == text
    assert characters.symbols == "".join(sorted(set(text)))
    assert len(characters) == len(set(text)) == int(ids.max()) + 1
    assert torch.equal(Characters(characters.symbols).encode(text), ids)
    assert characters.encode("").shape == (0,)


def test_an_unknown_character_is_named_and_placed():
    with pytest.raises(UnknownCharacter, match=r"'é' \(U\+00E9\), character 6 .* line 2"):
        Characters("abc\n").encode("abc\nbé")
    with pytest.raises(UnknownCharacter, match="'\\\\udcff'"):  # as from a bad command line
        Characters("abc").encode("\udcff")
    with pytest.raises(ValueError, match="empty"):
        Characters("")


def test_topics_are_all_there_and_the_last_tenth_is_new():
    from pydoc_data.topics import topics

    text = corpus.topics()
    assert text == corpus.topics()
    assert len(text) == sum(map(len, topics.values())) + len(topics) - 1
    assert sorted(text) == sorted("\n".join(topics.values()))
    start = len(text) - len(text) // 10
    assert _repeated(text, start) < 0.02
    in_order = "\n".join(topics[name] for name in sorted(topics))
    assert _repeated(in_order, start) > 0.05


def _repeated(text, start, width=60):
    """How much of text[start:] stands in text[:start], by windows."""
    seen = {text[i : i + width] for i in range(start - width)}
    windows = [text[i : i + width] for i in range(start, len(text) - width)]
    return sum(window in seen for window in windows) / len(windows)


def test_a_file_is_read_whatever_its_line_ends(tmp_path):
    path = tmp_path / "a.txt"
    path.write_bytes("\ufeffÄ\r\nb\n".encode())
    assert corpus.read(path) == "Ä\nb\n"
    path.write_bytes(b"ab\xe9")
    with pytest.raises(ValueError, match="no UTF-8 text: byte 2 is 0xe9"):
        corpus.read(path)
    path.write_bytes(b"")
    with pytest.raises(ValueError, match="empty"):
        corpus.read(path)


def test_the_entropy_of_the_source_is_exact():
    """Against a source worked out by hand, and against what samples show."""
    by_hand = Synthetic(vocab=2, order=1)
    by_hand.transitions = np.array([[0.9, 0.1], [0.5, 0.5]])
    by_hand.stationary = by_hand._stationary()
    assert by_hand.stationary == pytest.approx([5 / 6, 1 / 6])
    rows = -(0.9 * math.log(0.9) + 0.1 * math.log(0.1)), math.log(2)
    assert by_hand.entropy_rate == pytest.approx(5 / 6 * rows[0] + rows[1] / 6)
    assert by_hand.entropy(0) == pytest.approx(-(5 * math.log(5 / 6) + math.log(1 / 6)) / 6)

    tokens = SOURCE.sample(100_000, seed=3).numpy()
    counted = np.zeros((6, 6))
    np.add.at(counted, (tokens[:-1], tokens[1:]), 1)
    assert counted / len(tokens) == pytest.approx(SOURCE.stationary, abs=0.01)
    surprise = -np.log(SOURCE.transitions[tokens[:-2], tokens[1:-1], tokens[2:]])
    assert surprise.mean() == pytest.approx(SOURCE.entropy_rate, rel=0.01)
    chain = [SOURCE.entropy(known) for known in range(4)]
    assert math.log(6) > chain[0] > chain[1] > chain[2] == chain[3]
    assert SOURCE.floor(16) == pytest.approx((chain[1] + 15 * chain[2]) / 16)


# The loop


def test_the_loop_does_what_the_chapter_does():
    """One step after another with the chapter's own functions: the same weights."""
    recipe = replace(RECIPE, clip=0.05, weight_decay=0.1)
    rows, model = trained(recipe)
    by_hand, generator = decoder(), torch.Generator().manual_seed(recipe.seed)
    params = list(by_hand.parameters())
    moments = [(torch.zeros_like(p), torch.zeros_like(p)) for p in params]
    losses, norms = [], []
    for step in range(recipe.steps):
        starts = torch.randint(2500 - 16, (4,), generator=generator)
        inputs, targets = get_batch(TOKENS[:2500], starts, 16)
        loss = cross_entropy(by_hand(inputs), targets)
        grads, norm = clip_by_global_norm(list(torch.autograd.grad(loss, params)), 0.05)
        lr = learning_rate(step, 1e-2, 1e-4, 2, 8)
        for i, (p, g) in enumerate(zip(params, grads, strict=True)):
            decay = 0.1 if p.dim() > 1 else 0.0
            new, *moments[i] = adamw_step(
                p.detach(), g, *moments[i], step + 1, lr, (0.9, 0.99), 1e-8, decay
            )
            p.data.copy_(new)
        losses.append(loss.item())
        norms.append(norm)
    for p, q in zip(params, model.parameters(), strict=True):
        assert torch.allclose(p, q, atol=2e-5)
    assert [r["loss"] for r in rows] == pytest.approx(
        [np.mean(losses[:4]), np.mean(losses[4:])], rel=1e-5
    )
    assert [r["norm"] for r in rows] == pytest.approx([norms[3], norms[7]], rel=1e-3)
    assert [(r["step"], r["tokens"]) for r in rows] == [(4, 256), (8, 512)]
    assert rows[-1]["val_loss"] == evaluate(model, TOKENS[2500:], 16)


def test_the_same_seed_gives_the_same_and_another_another():
    (rows, model), (again, same) = trained(), trained()
    assert curves(rows) == curves(again)
    assert same_weights(model, same)
    assert not same_weights(model, trained(replace(RECIPE, seed=1))[1])


def test_pieces_of_a_batch_give_the_same_step():
    rows, _ = trained()
    pieces, _ = trained(replace(RECIPE, accumulation=2))
    for row, other in zip(rows, pieces, strict=True):
        assert row["loss"] == pytest.approx(other["loss"], rel=1e-5)
        assert row["norm"] == pytest.approx(other["norm"], rel=1e-3)


@pytest.mark.parametrize("block", [1, 7, 16, 64])
def test_evaluation_foretells_every_token_once(block):
    model, tokens = decoder(max_seq=64).double(), TOKENS[:100]
    total = 0.0
    for start in range(0, 99, block):
        window = tokens[start : start + block + 1]
        p = model(window[None, :-1])[0].log_softmax(-1)
        total -= p[torch.arange(len(window) - 1), window[1:]].sum().item()
    assert evaluate(model, tokens, block) == pytest.approx(total / 99, rel=1e-6)
    assert evaluate(model, tokens, block) == evaluate(model, tokens, block)


def test_a_large_split_is_evaluated_in_parts():
    model, tokens = decoder(), SOURCE.sample(10_000, seed=9)
    with torch.no_grad():
        x, y = tokens[:9984].view(-1, 16), tokens[1:9985].view(-1, 16)
        whole = cross_entropy(model(x), y).item() * 9984
        whole += cross_entropy(model(tokens[None, 9984:-1]), tokens[None, 9985:]).item() * 15
    assert evaluate(model, tokens, 16) == pytest.approx(whole / 9999, rel=1e-6)


def test_a_small_model_comes_to_the_entropy_floor_and_a_peeking_one_below(monkeypatch):
    train, val = SOURCE.sample(200_000, seed=1), SOURCE.sample(60_000, seed=2)
    recipe = Recipe(steps=600, batch=24, block=32, max_lr=1e-2, min_lr=1e-3)
    sizes = {"d_model": 32, "d_ff": 64, "max_seq": 32}
    model = decoder(**sizes)
    fit(model, train, None, replace(recipe, eval_every=600))
    loss = evaluate(model, val, 32)
    # What the sample's luck leaves to a perfect model: three standard errors.
    v = val.numpy()
    surprise = -np.log(SOURCE.transitions[v[:-2], v[1:-1], v[2:]])
    luck = 3 * surprise.std() / len(v) ** 0.5
    assert luck < 0.01 * SOURCE.entropy_rate
    assert SOURCE.floor(32) - luck < loss < 1.02 * SOURCE.entropy_rate + luck

    from autograde.decoder import model as module

    def peek(q, k, v, **_):  # no mask at all
        return (q @ k.mT / q.shape[-1] ** 0.5).softmax(-1) @ v

    monkeypatch.setattr(module, "scaled_dot_product_attention", peek)
    model = decoder(**sizes)
    fit(model, train, None, replace(recipe, steps=300, eval_every=300))
    assert evaluate(model, val, 32) < 0.9 * SOURCE.entropy_rate


# Going on


@pytest.mark.parametrize("precision", ["float32", "bfloat16", "float16"])
def test_going_on_gives_the_same_bits(precision, tmp_path):
    recipe, path = replace(RECIPE, precision=precision), tmp_path / "a.pt"
    rows, model = trained(recipe)

    def save(state):
        if state["step"] == 3:  # between two rows
            checkpoint.save(path, {"training": state})

    trained(recipe, save=save, save_every=3)
    other = decoder()
    with torch.no_grad():
        for p in other.parameters():
            p.add_(1.0)
    again, _ = trained(recipe, other, state=checkpoint.load(path)["training"])
    assert curves(again) == curves(rows)
    assert same_weights(model, other)


def test_a_stop_saves_and_going_on_gives_the_same_bits(tmp_path):
    steps, path = [], tmp_path / "a.pt"
    rows, model = trained()
    part, _ = trained(
        save=lambda state: checkpoint.save(path, {"training": state}),
        stop=lambda: steps.append(1) or len(steps) == 5,
    )
    state = checkpoint.load(path)["training"]
    assert state["step"] == 5
    assert curves(part) == curves(rows[:1])
    again, other = trained(state=state)
    assert curves(again) == curves(rows)
    assert same_weights(model, other)


@pytest.mark.parametrize("precision", ["bfloat16", "float16"])
def test_half_precision_learns_as_well(precision):
    recipe = replace(RECIPE, steps=60, eval_every=60)
    loss = trained(recipe)[0][-1]["val_loss"]
    half = trained(replace(recipe, precision=precision))[0][-1]["val_loss"]
    assert half == pytest.approx(loss, abs=0.03)
    assert half != loss


def test_float16_survives_an_overflow():
    model = decoder()
    training = Training(model, TOKENS, None, replace(RECIPE, precision="float16"))
    training.scaler.load_state_dict(training.scaler.state_dict() | {"scale": 2.0**40})
    before = [p.clone() for p in model.parameters()]
    training.advance()
    assert not training.norm.isfinite()
    assert all(torch.equal(p, q) for p, q in zip(before, model.parameters(), strict=True))
    assert training.scaler.get_scale() == 2.0**39
    for _ in range(40):
        training.advance()
    assert training.norm.isfinite()
    assert not any(torch.equal(p, q) for p, q in zip(before, model.parameters(), strict=True))


def test_auto_is_float32_on_the_cpu():
    assert resolve("auto", "cpu") == "float32"
    assert resolve("float16", "cpu") == "float16"


@pytest.mark.skipif(not torch.cuda.is_available(), reason="no GPU here")
def test_a_gpu_goes_on_with_the_same_bits(tmp_path):
    run = [sys.executable, "-m", "autograde.decoder", *TRAIN, "--device", "cuda"]
    run += ["--steps", "30", "--save-every", "10"]
    out = [tmp_path / name for name in "ab"]
    for folder in out:
        subprocess.run([*run, "--out", folder], check=True)
    a, b = (checkpoint.load(folder)["training"]["model"] for folder in out)
    assert all(torch.equal(a[name], b[name]) for name in a)


# Bad input to the loop


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"steps": 0}, "steps=0: at least 1"),
        ({"steps": 2.5}, "steps=2.5: wanted is int"),
        ({"batch": True}, "batch=True: wanted is int"),
        ({"max_lr": -1.0}, "max_lr=-1.0: at least 0"),
        ({"max_lr": math.nan}, "max_lr=nan"),
        ({"seed": -1}, "seed=-1: at least 0"),
        ({"seed": 2**63}, "less than 2"),
        ({"clip": 0}, "clip=0: give a norm above 0, or None"),
        ({"betas": (0.9, 1.0)}, r"betas=\(0.9, 1.0\): each is"),
        ({"warmup": 8}, "warmup=8: at least 0, and fewer than steps=8"),
        ({"accumulation": 3}, "batch=4: accumulation=3 must divide it"),
        ({"precision": "float8"}, "precision='float8': choose from auto, float32"),
        ({"optimizer": "sgd?"}, r"optimizer='sgd\?': choose from"),
        ({"block": 17}, "block=17: the model has max_seq=16"),
    ],
)
def test_a_recipe_that_cannot_be_is_refused(change, words):
    with pytest.raises(ValueError, match=words):
        trained(replace(RECIPE, **change))


@pytest.mark.parametrize(
    ("train", "val", "words"),
    [
        (TOKENS[:16], TOKENS, "training split has 16 tokens, and block=16 needs at least 17"),
        (TOKENS, TOKENS[:16], "validation split has 16 tokens"),
        (TOKENS[:0], None, "training split has 0 tokens"),
        (TOKENS + 1, None, "training split has token ids from 1 to 6, and with vocab=6"),
    ],
)
def test_tokens_that_cannot_be_learnt_are_refused(train, val, words):
    with pytest.raises(ValueError, match=words):
        fit(decoder(), train, val, RECIPE)


def test_one_token_cannot_be_evaluated():
    with pytest.raises(ValueError, match="at least 2"):
        evaluate(decoder(), TOKENS[:1], 16)


# The command


@pytest.fixture(scope="module")
def text(tmp_path_factory):
    path = tmp_path_factory.mktemp("corpus") / "text.txt"
    path.write_text(Characters(SOURCE.symbols).decode(TOKENS), encoding="utf-8")
    return str(path)


@pytest.fixture(scope="module")
def run(text, tmp_path_factory):
    """The folder of a finished training of 20 steps."""
    out = tmp_path_factory.mktemp("run") / "new" / "run"
    train = [*TRAIN, "--corpus", text, "--steps", "20"]
    assert main([*train, "--config", "eval_every=10", "--out", str(out)]) == 0
    return out


def test_a_training_leaves_a_checkpoint_metrics_and_a_plot(run, capsys):
    assert sorted(p.name for p in run.iterdir()) == ["checkpoint.pt", "loss.png", "metrics.jsonl"]
    rows = [json.loads(line) for line in (run / "metrics.jsonl").read_text().splitlines()]
    assert [row["step"] for row in rows] == [10, 20]
    content = checkpoint.load(run)
    assert content["training"]["rows"] == rows
    assert content["config"]["d_model"] == 16
    assert content["recipe"] | {"steps": 20, "precision": "float32"} == content["recipe"]
    assert (run / "loss.png").read_bytes().startswith(b"\x89PNG")
    was = content["threads"]
    torch.set_num_threads(was + 1)
    assert main(["train", "--resume", "--out", str(run)]) == 0  # nothing is left to do
    told = capsys.readouterr().out
    assert "goes on after step 20" in told
    assert f"saved at {was} CPU threads and goes on at {was + 1}" in told


def test_each_report_is_a_line_with_loss_speed_and_time_left(text, tmp_path, capsys):
    train = [*TRAIN, "--corpus", text, "--steps", "4", "--out", str(tmp_path)]
    assert main([*train, "--config", "eval_every=2"]) == 0
    told = capsys.readouterr().out
    number = r"\d+\.\d{4}"
    line = rf"step 2/4  loss {number}  val {number}  lr \S+  norm \S+  "
    assert len(re.findall(line + r"[\d,]+ tokens/s  0:00:\d\d left\n", told)) == 1
    assert f"generate {tmp_path / 'checkpoint.pt'}" in told


def test_sampling_is_that_of_generate_with_the_cache(run, capsys):
    content = checkpoint.load(run)
    model = checkpoint.model_of(content)
    characters = Characters(content["symbols"])
    arguments = ["generate", str(run / "checkpoint.pt"), "--prompt", "ABC", "--n-new", "9"]
    assert main([*arguments, "--temperature", "0.7", "--top-k", "4", "--seed", "5"]) == 0
    ids = characters.encode("ABC")
    (expected,) = generate(model, [ids], 9, temperature=0.7, top_k=4, seed=5)
    assert capsys.readouterr().out == characters.decode(expected) + "\n"


@pytest.mark.parametrize(("n_prompt", "max_seq"), [(1, 16), (16, 16), (40, 16), (3, 1), (3, 2)])
def test_a_text_longer_than_the_context_is_written_in_parts(n_prompt, max_seq):
    """Greedy, each token comes from the full pass over what the model has in view."""
    model, ids = decoder(max_seq=max_seq), TOKENS[:n_prompt]
    new = torch.cat(list(continued(model, ids, 50, seed=0, temperature=0.0)))
    assert len(new) == 50
    whole, view = torch.cat([ids, new]), min(n_prompt, max_seq)
    for place in range(n_prompt, n_prompt + 50):
        with torch.no_grad():
            assert model(whole[None, place - view : place])[0, -1].argmax() == whole[place]
        view = view + 1 if view < max_seq else (max_seq + 1) // 2


def test_killed_at_any_moment_it_goes_on_to_the_same_bits(text, tmp_path):
    """A real process: SIGKILL, and the next one SIGINT, that saves first."""
    command = [sys.executable, "-m", "autograde.decoder"]
    train = [*TRAIN, "--corpus", text, "--steps", "400", "--save-every", "5"]
    train += ["--config", "eval_every=20", "batch=48"]
    assert main([*train, "--out", str(tmp_path / "whole")]) == 0

    arguments, out = train, tmp_path / "killed"
    for kill_at, number in ((40, signal.SIGKILL), (100, signal.SIGINT)):
        process = subprocess.Popen(
            [*command, *arguments, "--out", out], stdout=subprocess.PIPE, text=True
        )
        for line in process.stdout:
            if line.startswith("step") and int(line.split()[1].split("/")[0]) >= kill_at:
                process.send_signal(number)
                break
        rest, _ = process.communicate()
        arguments = ["train", "--resume"]
        step = checkpoint.load(out)["training"]["step"]
        assert kill_at - 5 <= step < 400
        if number == signal.SIGINT:
            assert process.returncode == 2
            assert f"train --resume --out {out}" in rest
        else:
            assert process.returncode == -9
            assert step % 5 == 0
    assert main([*arguments, "--out", str(out)]) == 0

    whole, killed = (checkpoint.load(tmp_path / name) for name in ("whole", "killed"))
    for name, tensor in whole["training"]["model"].items():
        assert torch.equal(tensor, killed["training"]["model"][name]), name
    assert curves(whole["training"]["rows"]) == curves(killed["training"]["rows"])
    assert not list(out.glob("*.tmp"))


def test_two_processes_give_the_losses_of_one(text, tmp_path):
    train = [*TRAIN, "--corpus", text, "--steps", "6", "--device", "cpu"]
    train += ["--config", "eval_every=2", "accumulation=2"]
    assert main([*train, "--out", str(tmp_path / "one")]) == 0
    torchrun = [sys.executable, "-m", "torch.distributed.run", "--nproc-per-node", "2"]
    torchrun += ["--rdzv-backend", "c10d", "--rdzv-endpoint", "localhost:0"]
    subprocess.run(
        [*torchrun, "-m", "autograde.decoder", *train, "--out", tmp_path / "two"], check=True
    )
    one, two = (checkpoint.load(tmp_path / name)["training"]["rows"] for name in ("one", "two"))
    assert [row["tokens"] for row in one] == [row["tokens"] for row in two]
    for a, b in zip(one, two, strict=True):
        assert a["loss"] == pytest.approx(b["loss"], rel=1e-5)
        assert a["val_loss"] == pytest.approx(b["val_loss"], rel=1e-5)
        assert a["norm"] == pytest.approx(b["norm"], rel=1e-3)


# What the command says of bad input, and that it loses nothing


def refused(capsys, *arguments, status=2):
    """What it says; it ends with this status and without a traceback."""
    assert main([str(a) for a in arguments]) == status
    told = capsys.readouterr().err
    assert told.startswith("autograde.decoder: ")
    assert told.count("\n") == 1
    return told


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["--config", "d_modle=3"], "no 'd_modle'; did you mean d_model?"),
        (["--config", "xyzzy=3"], "no 'xyzzy'; there are d_model"),
        (["--config", "vocab=3"], "no 'vocab'"),
        (["--config", "d_model"], "give key=value"),
        (["--config", "d_model=wide"], "d_model='wide': give an integer"),
        (["--config", "attention_bias=no"], "give true or false"),
        (["--config", "n_heads=3"], "cannot be cut into 3 heads"),
        (["--config", "betas=0.9"], "betas=0.9: wanted is"),
        (["--steps", "0"], "steps=0: at least 1"),
        (["--save-every", "0"], "--save-every 0: at least 1"),
        (["--val-fraction", "1"], "--val-fraction 1.0: between 0 and 1"),
        (["--val-fraction", "0.001"], "the validation split has 3 tokens, and block=16 needs"),
        (["--device", "cuda:9"], "GPUs here. Use --device auto or cpu"),
        (["--device", "abacus"], "--device abacus: choose auto, cpu, cuda"),
        (["--corpus", "nowhere.txt"], "nowhere.txt: No such file"),
        (["--resume"], "there is no checkpoint"),
    ],
)
def test_what_cannot_be_trained_is_refused(arguments, words, text, tmp_path, capsys):
    told = refused(capsys, *TRAIN, "--corpus", text, "--out", tmp_path, *arguments)
    assert words in told


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (b"", "is empty"),
        (b"abc", "the training split has 3 tokens, and block=16 needs at least 17"),
        (b"ab" * 50, "the validation split has 10 tokens"),
        (b"caf\xe9", "no UTF-8 text: byte 3"),
    ],
)
def test_a_corpus_without_enough_text_is_refused(content, words, tmp_path, capsys):
    path = tmp_path / "short.txt"
    path.write_bytes(content)
    assert words in refused(capsys, *TRAIN, "--corpus", path, "--out", tmp_path / "run")
    assert not (tmp_path / "run").exists()


@pytest.mark.skipif(torch.cuda.is_available(), reason="there is a GPU")
def test_without_a_gpu_one_cannot_be_asked_for(tmp_path, capsys):
    told = refused(capsys, *TRAIN, "--device", "cuda", "--out", tmp_path)
    assert "sees 0 GPUs here. Use --device auto or cpu" in told


def test_a_folder_that_cannot_be_written_is_refused(text, tmp_path, capsys):
    (tmp_path / "file").write_text("")
    told = refused(capsys, *TRAIN, "--corpus", text, "--out", tmp_path / "file" / "run")
    assert f"{tmp_path / 'file' / 'run'}: Not a directory" in told


def test_a_checkpoint_is_not_overwritten_by_another_training(run, text, capsys):
    before = (run / "checkpoint.pt").read_bytes()
    told = refused(capsys, *TRAIN, "--corpus", text, "--out", run)
    assert "holds a checkpoint already: go on with it (--resume), or give another" in told
    assert (run / "checkpoint.pt").read_bytes() == before


def test_two_trainings_do_not_write_into_one_folder(run, capsys):
    with checkpoint.locked(run):
        assert "another training is writing" in refused(capsys, "train", "--resume", "--out", run)


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["--config", "d_model=32"], "d_model=32 is asked for, and the checkpoint was made with"),
        (["--steps", "30"], "made with steps=20"),
        (["--precision", "bfloat16"], "made with precision=float32"),
        (["--config", "positions=rotary"], "made with positions=learned"),
        (["--config", "betas=0.8,0.9"], "made with betas=(0.9, 0.99)"),
        (["--val-fraction", "0.2"], "made with val_fraction=0.1"),
        (["--corpus", "topics"], "corpus topics is not what the checkpoint was made from"),
    ],
)
def test_going_on_with_another_configuration_is_refused(arguments, words, run, capsys):
    before = (run / "checkpoint.pt").read_bytes()
    assert words in refused(capsys, "train", "--resume", "--out", run, *arguments)
    assert (run / "checkpoint.pt").read_bytes() == before
    same = ["--steps", "20", "--precision", "auto", "--config", "betas=0.9,0.99", "d_model=16"]
    assert main(["train", "--resume", "--out", str(run), *same]) == 0


def test_what_is_no_checkpoint_is_refused(run, tmp_path, capsys):
    whole = (run / "checkpoint.pt").read_bytes()
    path = tmp_path / "broken.pt"
    for length in (0, 1, 100, len(whole) // 2, len(whole) - 1):
        path.write_bytes(whole[:length])
        assert "is no checkpoint, or only a part of one" in refused(capsys, "generate", path)
    path.write_text("Once upon a time")
    assert "is no checkpoint" in refused(capsys, "generate", path)
    torch.save({"weights": torch.ones(3)}, path)
    assert "no checkpoint of this command" in refused(capsys, "generate", path)
    torch.save(Path("a"), path)  # not plain data: it would have to be run
    assert "is no checkpoint" in refused(capsys, "generate", path)
    assert "there is no checkpoint" in refused(capsys, "generate", tmp_path / "none.pt")


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["--prompt", "ABé"], "'é' (U+00E9), character 3 of the text"),
        (["--prompt", ""], "give a prompt of at least 1 character"),
        (["--n-new", "-1"], "--n-new from 0 on"),
        (["--temperature", "-1"], "temperature=-1.0: 0 is greedy"),
        (["--top-k", "0"], "top_k=0"),
        (["--top-p", "2"], "top_p=2.0"),
        (["--device", "cuda:9"], "GPUs here"),
    ],
)
def test_what_cannot_be_sampled_is_refused(arguments, words, run, capsys):
    assert words in refused(capsys, "generate", run, *arguments)
    assert capsys.readouterr().out == ""


def test_a_training_that_diverges_says_so_and_keeps_its_checkpoint(text, tmp_path, capsys):
    wild = ["--config", "max_lr=1e30", "clip=none", "warmup=0", "eval_every=5"]
    train = [*TRAIN, "--corpus", text, "--steps", "10", "--out", tmp_path, *wild]
    told = refused(capsys, *train, status=1)
    assert "the loss is nan after step 5: the training has diverged" in told
    content = checkpoint.load(tmp_path)
    assert content["training"]["step"] == 0
    assert all(x.isfinite().all() for x in content["training"]["model"].values())
    assert json.loads((tmp_path / "metrics.jsonl").read_text())["loss"] is None


def test_without_a_compiler_the_command_says_so(text, tmp_path, capsys, monkeypatch):
    from torch._inductor.exc import InvalidCxxCompiler

    def broken(_):
        raise InvalidCxxCompiler

    monkeypatch.setattr(torch, "compile", broken)
    told = refused(capsys, *TRAIN, "--corpus", text, "--out", tmp_path, "--compile")
    assert "torch.compile failed: No working C++ compiler" in told
    monkeypatch.setattr(torch, "compile", lambda _: 1 / 0)  # a mistake of ours is no advice
    with pytest.raises(ZeroDivisionError):
        main([*TRAIN, "--corpus", text, "--out", str(tmp_path / "new"), "--compile"])


def test_a_full_disk_leaves_the_old_checkpoint_whole(text, tmp_path):
    """RLIMIT_FSIZE: no file may grow beyond so many bytes, whoever writes it."""
    command = [sys.executable, "-m", "autograde.decoder", *TRAIN, "--corpus", text]
    command += ["--steps", "10", "--save-every", "5", "--config", "d_model=64", "eval_every=10"]
    limit = 200_000  # enough for the first checkpoint, that holds no moments

    def limited():
        resource.setrlimit(resource.RLIMIT_FSIZE, (limit, limit))

    done = subprocess.run(
        [*command, "--out", tmp_path], preexec_fn=limited, capture_output=True, text=True
    )
    assert done.returncode == 2, done.stderr
    assert "File too large; the old one is as it was. Mend that, then" in done.stderr
    assert "Traceback" not in done.stderr
    assert [p.name for p in tmp_path.iterdir()] == ["checkpoint.pt"]
    assert checkpoint.load(tmp_path)["training"]["step"] == 0
    assert main(["train", "--resume", "--out", str(tmp_path)]) == 0


@pytest.mark.parametrize("when", ["fsync", "replace"])
def test_writing_that_fails_leaves_the_old_file(when, tmp_path, monkeypatch):
    path = tmp_path / "a"
    checkpoint.write(path, b"old")

    def full(*_):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, when, full)
    with pytest.raises(OSError, match="No space left on device; the old one is as it was"):
        checkpoint.write(path, b"new")
    assert path.read_bytes() == b"old"
    assert [p.name for p in tmp_path.iterdir()] == ["a"]
    with pytest.raises(OSError, match="No space left on device$"):
        checkpoint.write(tmp_path / "b", b"new")
