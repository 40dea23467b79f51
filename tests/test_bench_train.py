"""bench/train.py on made-up curves, and from end to end at tiny sizes. Times are not judged."""

import json
from dataclasses import replace

import pytest

torch = pytest.importorskip("torch")

from bench import train  # noqa: E402
from bench.__main__ import main  # noqa: E402


def curve(*points):
    """Of a busy computer: the processor worked in half of the seconds."""
    return [{"seconds": s, "processor_seconds": s / 2, "val_loss": loss} for s, loss in points]


def raced(plain, ours):
    clocks = ("seconds", "processor_seconds")
    runs = {"plain": plain, "ours": ours}
    return {n: {"curve": c, **{k: c[-1][k] for k in clocks}} for n, c in runs.items()}


def test_the_time_to_a_loss_lies_on_the_line_between_two_rows():
    rows = curve((10, 3.0), (20, 2.0), (30, 1.0), (40, 1.5))
    assert train.seconds_to(rows, 2.5) == 15
    assert train.seconds_to(rows, 2.0) == 20
    assert train.seconds_to(rows, 1.25) == 27.5  # the first time, not the last
    assert train.seconds_to(rows, 3.5) == 10  # never less than was measured
    assert train.seconds_to(rows, 0.9) is None


def test_the_ratio_is_of_the_times_to_the_target():
    found = train.with_times(raced(curve((50, 2.0), (100, 1.0)), curve((8, 2.0), (12, 1.0))), 1.5)
    assert found["plain"]["seconds_to_target"] == 75
    assert found["ours"]["seconds_to_target"] == 10
    assert found["plain"]["processor_seconds_to_target"] == 37.5
    assert found["ratio"] == found["processor_ratio"] == 10 / 75


def test_a_plain_run_that_ends_above_the_target_counts_with_all_its_time():
    found = train.with_times(raced(curve((100, 1.9)), curve((8, 2.0), (12, 1.8))), 1.88)
    assert found["plain"]["seconds_to_target"] is None
    assert found["ratio"] == pytest.approx((8 + 4 * 0.6) / 100)


def test_ours_above_the_target_has_no_ratio():
    found = train.with_times(raced(curve((100, 1.8)), curve((10, 1.9))), 1.88)
    assert found["ratio"] is None
    assert train.middle([0.2, found["ratio"], 0.4]) is None
    assert train.middle([0.2, 0.3, 0.7]) == 0.3


def test_they_advance_in_turn_and_to_the_end(monkeypatch):
    class Counter:
        step = 0

        def advance(self):
            self.step += 1

    a, b = Counter(), Counter()
    monkeypatch.setattr(train, "PARTS", 3)
    spent = {"a": 0.0, "b": 1.0}
    parts = train.in_turn({"a": a, "b": b}, [7, 20], spent)
    seen = [(part, a.step, b.step) for part in parts]
    assert seen == [(1, 2, 6), (2, 4, 13), (3, 7, 20)]
    assert spent["a"] > 0
    assert spent["b"] > 1


def test_evaluating_is_not_timed(monkeypatch):
    from autograde.decoder import training
    from autograde.decoder.corpus import load

    now = [0.0]
    monkeypatch.setattr(training, "perf_counter", lambda: now[0])

    def slow_evaluation(*_):
        now[0] += 1000.0
        return 2.0

    monkeypatch.setattr(training, "evaluate", slow_evaluation)
    advance = train.Training.backward

    def one_second(self):
        now[0] += 1.0
        return advance(self)

    monkeypatch.setattr(train.Training, "backward", one_second)
    text = load("topics").tokens[:3000]
    plain, ours = train.PLAIN.but(steps=20, warmup=1), train.OURS.but(steps=10, warmup=1)
    sizes = {"vocab": 1 + int(text.max()), **train.TINY}
    found = train.race(plain, ours, 0, sizes, (text[:2700], text[2700:]))
    assert [row["seconds"] for row in found["plain"]["curve"]] == list(range(2, 22, 2))
    assert found["ours"]["seconds"] == 10


def test_both_train_a_model_of_the_same_size_without_biases():
    """Learned positions have a table of their own; what else is trained is alike."""
    tokens = torch.arange(1000) % 65
    sizes, count = {"vocab": 65, **train.SIZES}, []
    for setup in (train.PLAIN, train.OURS):
        training = train.start(setup, 0, sizes, (tokens[:900], tokens[900:]))
        assert not any("bias" in n for n, p in trained_parameters(training.model))
        count.append(sum(p.numel() for _, p in trained_parameters(training.model)))
    matrices = 4 * (4 * 128**2 + 2 * 128 * 512) + 65 * 128
    assert count == [matrices + 9 * 128 + 64 * 128, matrices + 9 * 128]


def trained_parameters(model):
    return [(n, p) for n, p in model.named_parameters() if p.requires_grad]


def test_the_ablation_leads_from_plain_to_ours_by_equal_steps():
    rows = train.ablation(train.PLAIN, train.OURS)
    first, *_ = rows.values()
    assert replace(first, stop=None) == train.PLAIN
    assert train.OURS in rows.values()
    assert {row.steps for row in rows.values()} == {train.OURS.steps}
    assert len(set(map(str, rows.values()))) == len(rows)


def test_it_runs_and_says_what_it_found(tmp_path, capsys):
    assert main(["train", "--quick", "--out", str(tmp_path)]) == 0
    found = json.loads((tmp_path / "train.json").read_text())
    said = capsys.readouterr().out
    assert found["corpus"] == "topics"
    assert "not Tiny Shakespeare" in said
    assert [r["seed"] for r in found["races"]] == [0, 1]
    for race in found["races"]:
        steps = [row["step"] for row in race["ours"]["curve"]]
        assert steps == list(range(1, 11))
        assert race["plain"]["val_loss"] == race["plain"]["curve"][-1]["val_loss"]
        assert race["plain"]["tokens"] == 20 * 12 * 64
    assert [row["name"] for row in found["ablation"]] == list(
        train.ablation(train.PLAIN, train.OURS)
    )
    ours = next(row for row in found["ablation"] if row["name"].endswith("(ours)"))
    assert ours["val_loss"] == pytest.approx(found["races"][0]["ours"]["val_loss"], rel=1e-5)


def test_without_the_text_it_says_how_to_get_it(monkeypatch, capsys):
    monkeypatch.delenv("TINYSHAKESPEARE", raising=False)
    assert main(["train"]) == 2
    said = capsys.readouterr().err
    assert "karpathy/char-rnn" in said
    assert "--corpus topics" in said


def test_the_text_may_be_named_by_the_environment(monkeypatch, tmp_path):
    path = tmp_path / "input.txt"
    path.write_text("to be or not to be")
    monkeypatch.setenv("TINYSHAKESPEARE", str(path))
    assert len(train.find(None).tokens) == 18
    assert train.find("topics").name == "topics"
