"""The GPU benchmark at tiny sizes on the CPU: the same code, and what happens when a part fails."""

import json

import pytest

torch = pytest.importorskip("torch")

from bench import gpu  # noqa: E402


@pytest.fixture(scope="module")
def quick():
    return gpu.run(quick=True, device="cpu")


def test_every_part_measures_something(quick):
    assert quick["errors"] == {}
    assert list(quick["parts"]) == list(gpu.PARTS)
    assert not json.dumps(quick, allow_nan=False).startswith("[")
    parts = quick["parts"]
    assert all(tflops > 0 for tflops in parts["products"].values())
    assert [row["precision"] for row in parts["table"]] == ["bfloat16", "float16", "float32"]
    assert all(row["tokens_per_second"] > 0 for row in parts["table"] + parts["decode"])
    assert parts["shakespeare"]["seconds_to_target"] is None  # a quick trial reaches nothing
    assert parts["shakespeare"]["rows"][-1]["step"] == parts["shakespeare"]["recipe"]["steps"]


def test_checkpointing_holds_less_and_narrow_numbers_too(quick):
    saved = {
        (row["precision"], row["checkpointed"]): row["saved_bytes"]
        for row in quick["parts"]["memory"]
    }
    assert saved["float32", True] < saved["float32", False] / 2
    assert saved["bfloat16", False] < saved["float32", False]
    for row in quick["parts"]["memory"]:
        assert row["weights_bytes"] == row["gradients_bytes"] == 4 * row["n_params"]
        assert row["moments_bytes"] == 8 * row["n_params"]


def test_all_is_shown(quick):
    text = gpu.show(quick)
    for word in ("product", "train", "memory", "decode", "text"):
        assert f"\n{word} " in text
    on_a_gpu = {**quick, "chip": {"name": "some GPU", "peak_tflops": 100.0}}
    assert "MFU" in gpu.show(on_a_gpu)
    assert "MFU" not in text


def test_one_part_fails_and_the_others_are_written(monkeypatch):
    written = []

    def fails(device, limit, quick):
        raise RuntimeError("CUDA out of memory")

    monkeypatch.setattr(gpu, "write", lambda name, data: written.append(json.dumps(data)))
    monkeypatch.setattr(gpu, "PARTS", {"table": (fails, 60.0), "decode": (lambda *a: [], 60.0)})
    data = gpu.run(device="cpu")
    assert data["errors"] == {"table": "RuntimeError: CUDA out of memory"}
    assert data["parts"] == {"decode": []}
    assert len(written) == 2  # after each part
    assert "CUDA out of memory" in gpu.show(data)


def test_no_part_begins_after_the_time_is_up(monkeypatch):
    monkeypatch.setattr(gpu, "write", lambda name, data: None)
    monkeypatch.setattr(gpu, "SECONDS", 0)
    monkeypatch.setattr(gpu, "PARTS", {"decode": (lambda *a: [], 60.0)})
    data = gpu.run(device="cpu")
    assert "the time for all parts was used up" in data["errors"]["decode"]


def test_a_row_that_fails_does_not_end_the_table(monkeypatch):
    def speed(device, config, batch, block, precision, compiled, limit):
        if precision == "float16":
            raise RuntimeError("no such kernel")
        return {"tokens_per_second": 1.0, "tflops": 1.0}

    monkeypatch.setattr(gpu, "speed", speed)
    rows = gpu.table(torch.device("cpu"), 60.0, True)
    assert [("error" in row) for row in rows] == [False, True, False]
    rows = gpu.table(torch.device("cpu"), -1.0, False)
    assert len(rows) == 6
    assert all("left out" in row["error"] for row in rows)


@pytest.mark.skipif(torch.cuda.is_available(), reason="there is a GPU")
def test_without_a_gpu_it_says_what_can_be_done():
    with pytest.raises(ValueError, match="--device cpu --quick"):
        gpu.run()


def test_the_text_is_asked_for():
    with pytest.raises(ValueError, match="--corpus"):
        gpu.shakespeare(torch.device("cpu"), 60.0, False, "")


def test_dropout_is_for_training_only():
    torch.manual_seed(0)
    config = gpu.Config(11, 16, 2, 2, 32, 8)
    model, tokens = gpu.Decoder(config), torch.randint(11, (2, 8))
    plain = model(tokens)
    dropped = gpu.drop_out(model, 0.5)
    assert not torch.allclose(dropped.train()(tokens), plain)
    torch.testing.assert_close(dropped.eval()(tokens), plain)
    assert list(dropped.state_dict()) == list(gpu.Decoder(config).state_dict())
