"""What MLflow and W&B get is what query says; both work without a network."""

import json
import os

import pytest
import scrapestat as ss

FILES = {"manifest.json", "stats.parquet", "report.html"}


@pytest.fixture(scope="module")
def wanted(runs):
    """The p99 of all servers, of the window and of each slice."""
    rows = ss.load(runs / "long").stats("ttft", stats=["p99"], by=[], every="10s", to="dicts")
    return rows[0], [r for r in rows if r["span"] == "slice"]


def test_mlflow(runs, wanted, tmp_path, monkeypatch):
    monkeypatch.setenv("MLFLOW_ALLOW_FILE_STORE", "true")
    import mlflow

    mlflow.set_tracking_uri((tmp_path / "store").as_uri())
    client, run = mlflow.MlflowClient(), ss.load(runs / "long")
    run_id = run.log_mlflow(metrics="ttft")
    assert mlflow.active_run() is None  # it was closed again
    window, slices = wanted
    metrics = client.get_run(run_id).data.metrics
    assert metrics["server/ttft_s.p99"] == window["value"]
    assert metrics["server/ttft_s.p99.low"] == window["low"] <= metrics["server/ttft_s.p99.high"] == window["high"]
    assert metrics["server/a/ttft_s.count"] == 2388 and metrics["server/b/ttft_s.count"] == 1167
    points = client.get_metric_history(run_id, "server_slice/ttft_s.p99")
    assert [p.step for p in points] == list(range(30)) and len(slices) == 30
    assert [(p.value, p.timestamp) for p in points] == [(r["value"], r["start_ns"] // 1_000_000) for r in slices]
    tags = client.get_run(run_id).data.tags
    assert tags["scrapestat.run_id"] == run.id
    assert tags["scrapestat.window"] == "1767225600000000000 to 1767225900000000000 ns"
    assert {os.path.basename(f.path) for f in client.list_artifacts(run_id, "scrapestat")} <= FILES
    assert {"scrapestat/stats.parquet", "scrapestat/report.html"} <= {f.path for f in client.list_artifacts(run_id, "scrapestat")}
    with mlflow.start_run() as mine:
        assert run.log_mlflow(metrics="ttft", every=None, raw=True) == mine.info.run_id
        assert mlflow.active_run() is not None
    assert "scrapestat/run.db" in {f.path for f in client.list_artifacts(mine.info.run_id, "scrapestat")}


def test_wandb(runs, wanted, tmp_path, monkeypatch):
    monkeypatch.setenv("WANDB_MODE", "offline")
    monkeypatch.setenv("WANDB_DIR", str(tmp_path))
    monkeypatch.setenv("WANDB_SILENT", "true")
    import wandb

    window, _ = wanted
    with wandb.init(project="test", settings=wandb.Settings(console="off")) as mine:
        assert ss.load(runs / "long").log_wandb(metrics="ttft", artifacts=False) == mine.id
        assert mine.summary["server/ttft_s.p99"] == window["value"]
        assert mine.summary["server/ttft_s.p99.low"] == window["low"]
        assert mine.summary["server/a/ttft_s.count"] == 2388
        assert mine.config["scrapestat"]["run_id"] == ss.load(runs / "long").id
        assert mine.step == 30
    files = []

    class Artifact:
        def __init__(self, name, type):
            assert name.startswith("scrapestat-") and type == "scrapestat-run"

        def add_file(self, path, name):
            files.append(name)

    class Fake:
        id, config, summary = "x", type("C", (), {"update": lambda *a, **k: None})(), {}
        define_metric = log = log_artifact = lambda *a, **k: None

    monkeypatch.setattr(wandb, "Artifact", Artifact)
    assert ss.load(runs / "long").log_wandb(Fake(), metrics="ttft", every=None) == "x"
    assert set(files) <= FILES and {"stats.parquet", "report.html"} <= set(files)


def test_names():
    from scrapestat.track import _name, _named, _word

    assert _word("http://a:1/x") == "http___a_1_x" and len(_name("a" * 300)) == 250
    assert _name("a" * 300) != _name("a" * 301)
    row = {"quantity": "ttft_s", "stat": "p99", "value": 1.0, "status": "ok", "engine": "vllm", "labels": {}}
    both = _named([row, {**row, "engine": "sglang"}, {**row, "status": "ambiguous"}, {**row, "value": None}], "server")
    assert sorted(both) == ["server/sglang/ttft_s.p99", "server/vllm/ttft_s.p99"]
    with pytest.raises(ValueError, match="two values would be called"):
        _named([row, row], "server")
    assert json.dumps(both)
