"""What a run measured, for MLflow and W&B. Neither is imported before it is asked for."""

from __future__ import annotations

import hashlib
import os
import re
import shutil
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, Union

from ._find import call
from ._version import __version__

if TYPE_CHECKING:
    from ._run import Every, Run

Metrics = Union[str, Sequence[str], None]  # as in Run.stats; None is all

_CERTAIN = ("ok", "born_in_window", "reset_corrected")  # what others take as it is
_LONGEST, _BATCH, _FEW = 250, 1000, 100


def _word(text: str) -> str:
    """A part of a name that both take."""
    return re.sub(r"[^\w. -]", "_", text, flags=re.ASCII).strip("./ ") or "_"


def _name(*parts: str) -> str:
    text = "/".join(parts)
    if len(text) > _LONGEST:
        text = text[: _LONGEST - 17] + "-" + hashlib.sha256(text.encode()).hexdigest()[:16]
    return text


def _named(rows: list[dict[str, Any]], place: str, *, targets: bool = False) -> dict[str, dict[str, Any]]:
    """The rows that are certain, by name: engines and labels tell apart what has one name else."""
    found: dict[tuple[str, ...], list[dict[str, Any]]] = {}
    for row in rows:
        if row["quantity"] and row["value"] is not None and row["status"] in _CERTAIN:
            where = (_word(str(row["target"])),) if targets else ()
            found.setdefault((place, *where, _word(f"{row['quantity']}.{row['stat']}")), []).append(row)
    out: dict[str, dict[str, Any]] = {}
    for key, same in found.items():
        for row in same:
            more: tuple[str, ...] = ()
            if len(same) > 1:
                more = (_word(str(row["engine"])), *(_word(f"{k}={v}") for k, v in sorted(row["labels"].items())))
            name = _name(*key[:-1], *more, key[-1])
            if name in out:
                raise ValueError(f"two values would be called {name}")
            out[name] = row
    return out


def _window(run: Run, metrics: Metrics) -> dict[str, float]:
    """The statistics of all servers together and of each, with their bounds."""
    rows = {**_named(run.stats(metrics, by=[], to="dicts"), "server"),
            **_named(run.stats(metrics, by=["target"], to="dicts"), "server", targets=True)}
    out: dict[str, float] = {}
    for name, row in rows.items():
        for end, value in (("", row["value"]), (".low", row["low"]), (".high", row["high"])):
            if value is not None:
                out[name + end] = value
    return out


def _slices(run: Run, metrics: Metrics, every: Every) -> list[tuple[int, int, float, dict[str, float]]]:
    """Of each slice: its number, start in ms, seconds since the window began, and what all servers did."""
    rows = [r for r in run.stats(metrics, by=[], every=every, to="dicts") if r["span"] == "slice"]
    by_slice: dict[int, list[dict[str, Any]]] = {}
    for row in rows:
        by_slice.setdefault(row["slice"], []).append(row)
    return [(k, of[0]["start_ns"] // 1_000_000, of[0]["t_s"],
             {name: row["value"] for name, row in _named(of, "server_slice").items()})
            for k, of in sorted(by_slice.items())]


def _about(run: Run) -> dict[str, str]:
    window = run.show()["run"]["window"]
    return {"run_id": run.id, "version": __version__, "warnings": "; ".join(run.warnings),
            "window": f"{window['start_ns']} to {window['end_ns']} ns"}


@contextmanager
def _files(run: Run, raw: bool) -> Iterator[list[Path]]:
    """The files that go along: what was recorded, if raw, the manifest, the table of statistics and the report."""
    with tempfile.TemporaryDirectory(prefix="scrapestat-") as folder:
        call(["export", "--formats=stats", "--quiet", f"--out={folder}", "--", run._plain])
        call(["report", "--quiet", f"--out={os.path.join(folder, 'report.html')}", "--", run._plain])
        kept = ["manifest.json", "stats.parquet", "report.html"]
        if raw:
            kept.append("run.db")
        for name in kept:
            if not os.path.exists(os.path.join(folder, name)) and (run.path / name).exists():
                shutil.copyfile(run.path / name, os.path.join(folder, name))
        yield [Path(folder, name) for name in kept if os.path.exists(os.path.join(folder, name))]


def log_mlflow(run: Run, into: Any = None, *, metrics: Metrics = None, every: Every = "10s", artifacts: bool = True,
               raw: bool = False) -> str:
    """Logs into a run of MLflow: the one given, the active one, else a new one. Returns its id."""
    import mlflow
    from mlflow.entities import Metric, Param, RunTag

    about, window, slices = _about(run), _window(run, metrics), _slices(run, metrics, every)
    active: Any = into or mlflow.active_run()
    own = active is None
    if own:
        active = mlflow.start_run()
    try:
        run_id, client = str(active.info.run_id), mlflow.MlflowClient()
        end = slices[-1][1] if slices else 0
        points = [Metric(name, value, end, 0) for name, value in window.items()]
        points += [Metric(name, value, at, k) for k, at, _, values in slices for name, value in values.items()]
        for i in range(0, len(points), _BATCH):
            client.log_batch(run_id, metrics=points[i:i + _BATCH])
        params = [Param(_name(_word(k)), v[:500]) for k, v in run.tags.items()]
        for i in range(0, len(params), _FEW):
            client.log_batch(run_id, params=params[i:i + _FEW])
        client.log_batch(run_id, tags=[RunTag(f"scrapestat.{k}", v[:5000]) for k, v in about.items() if v])
        if artifacts:
            with _files(run, raw) as paths:
                for path in paths:
                    client.log_artifact(run_id, str(path), "scrapestat")
    finally:
        if own:
            mlflow.end_run()
    return run_id


def log_wandb(run: Run, into: Any = None, *, metrics: Metrics = None, every: Every = "10s", artifacts: bool = True,
              raw: bool = False) -> str:
    """Logs into a run of W&B: the one given, the active one, else a new one. Returns its id."""
    import wandb

    about, window, slices = _about(run), _window(run, metrics), _slices(run, metrics, every)
    active: Any = into or wandb.run
    own = active is None
    if own:
        active = wandb.init()
    try:
        active.config.update({"scrapestat": {**about, "tags": dict(run.tags)}}, allow_val_change=True)
        active.define_metric("server_slice/t_s")
        active.define_metric("server_slice/*", step_metric="server_slice/t_s")
        for _, _, t, values in slices:
            active.log({"server_slice/t_s": t, **values})
        active.summary.update(window)
        if artifacts:
            artifact = wandb.Artifact(f"scrapestat-{_word(run.id)}", type="scrapestat-run")
            with _files(run, raw) as paths:
                for path in paths:
                    artifact.add_file(str(path), name=path.name)
                active.log_artifact(artifact)
    finally:
        if own:
            active.finish()
    return str(active.id)
