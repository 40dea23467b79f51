"""The benchmarks: what they measure, and that a result says where it comes from."""

import json
import sys

import pytest

torch = pytest.importorskip("torch")

from autograde.decoder.generation import generate  # noqa: E402
from bench import __main__ as command  # noqa: E402
from bench import decode, memory, record  # noqa: E402


def test_a_result_says_where_it_comes_from(tmp_path, monkeypatch):
    data = tmp_path / "corpus.txt"
    monkeypatch.setattr(
        sys, "argv", ["/x/bench/__main__.py", "train", "--corpus", str(data), "-n", "2"]
    )
    path = record.write("name", {"rows": [1, 2]}, tmp_path / "new")
    found = json.loads(path.read_text())
    assert found["rows"] == [1, 2]
    made = found["provenance"]
    assert made["command"] == "python -m bench train --corpus corpus.txt -n 2"
    assert set(made) == {
        "date", "command", "commit", "python", "torch", "numpy",
        "cpu", "cores", "threads", "platform",
    }  # fmt: skip
    assert made["torch"] == torch.__version__
    assert made["threads"] == torch.get_num_threads()
    assert made["date"].endswith("+00:00")


def test_a_result_is_written_whole_or_not_at_all(tmp_path):
    path = record.write("name", {"rows": [1]}, tmp_path)
    before = path.read_text()
    with pytest.raises(ValueError, match="not JSON compliant"):
        record.write("name", {"rows": [float("nan")]}, tmp_path)
    with pytest.raises(TypeError):
        record.write("name", {"rows": {1, 2}}, tmp_path)
    assert path.read_text() == before
    assert [p.name for p in tmp_path.iterdir()] == ["name.json"]


def test_a_quick_trial_leaves_the_results_alone(tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(record, "RESULTS", tmp_path / "results")
    monkeypatch.setattr(command, "RESULTS", tmp_path / "results")
    monkeypatch.setattr(memory, "WAYS", {name: lambda n: n * n for name in memory.WAYS})
    assert command.main(["memory", "--quick"]) == 0
    assert not (tmp_path / "results").exists()
    assert command.main(["memory", "--quick", "--out", str(tmp_path / "here")]) == 0
    assert (tmp_path / "here" / "memory.json").exists()
    assert command.main(["memory"]) == 0
    assert (tmp_path / "results" / "memory.json").exists()
    assert "whole matrix" in capsys.readouterr().out


def test_what_cannot_run_says_so(monkeypatch, capsys):
    assert command.main(["speed"]) == 2
    assert "no benchmark 'speed': there are decode, memory" in capsys.readouterr().err
    monkeypatch.setitem(sys.modules, "transformers", None)
    assert command.main(["decode", "--quick"]) == 2
    assert "pip install -r bench/requirements.txt" in capsys.readouterr().err
    assert command.main(["--help"]) == 0


def test_the_memory_of_one_matrix_grows_with_the_square(capfd):
    data = memory.run(quick=True)
    for naive, tiled in memory.PAIRS:
        assert data["slopes"][naive] == pytest.approx(2, abs=0.1)
        for row in data["rows"]:
            assert row[f"{naive} / {tiled}"] == row[naive] / row[tiled] > 5
    assert data["rows"][1]["whole matrix"] == pytest.approx(17 * 1024**2, rel=0.05)
    assert data["rows"][1]["SDPA, flash"] < 1024**2  # less than a byte for each pair
    assert len(memory.show(data).splitlines()) == 4


def copied(model):
    """In place of transformers: our own generation without a cache."""

    def continued(prompt, n_new):
        return torch.stack(generate(model, list(prompt), n_new, cached=False))

    return continued, "none"


def test_decoding_is_compared_case_by_case(monkeypatch):
    monkeypatch.setattr(decode, "as_transformers", copied)
    data = decode.run(quick=True)
    single, pair = data["rows"]
    assert single["identical"]
    assert pair["identical"]
    assert (single["context"], single["batch"], pair["batch"]) == (5, 1, 2)
    for way in ("uncached", "transformers"):
        ratio = single["cached"]["tokens_per_second"] / single[way]["tokens_per_second"]
        assert single[f"times_{way}"] == pytest.approx(ratio)
    assert pair["uncached"]["step"] is None
    assert pair["times_uncached"] is None
    assert len(decode.show(data).splitlines()) == 3
    json.dumps(data, allow_nan=False)


def test_other_tokens_are_noticed(monkeypatch):
    def one_differs(model):
        continued, version = copied(model)

        def wrong(prompt, n_new):
            tokens = continued(prompt, n_new)
            tokens[-1, -1] = (tokens[-1, -1] + 1) % model.config.vocab
            return tokens

        return wrong, version

    monkeypatch.setattr(decode, "as_transformers", one_differs)
    data = decode.run(quick=True)
    assert [row["identical"] for row in data["rows"]] == [False, False]
    assert "NO" in decode.show(data)


def test_the_time_of_a_step_is_what_is_left_without_the_first(monkeypatch):
    now = [0.0]
    monkeypatch.setattr(decode, "process_time", lambda: now[0])

    def continued(n_new):  # 5 seconds for the prompt, 0.25 for each token
        now[0] += 5 + 0.25 * n_new

    assert decode.first_and_step(continued, 8) == (5.25, 0.25)


def test_transformers_has_our_weights():
    pytest.importorskip("transformers", reason="only the benchmarks need transformers")
    model = decode.gpt2(**decode.TINY, max_seq=12)
    theirs, _ = decode.as_transformers(model)
    prompt = torch.randint(11, (3, 7))
    assert torch.equal(theirs(prompt, 5), torch.stack(generate(model, list(prompt), 5)))
