"""Frames have the numbers of show, of export and of a reference, whatever the backend."""

import json
import math
import subprocess
import sys
from pathlib import Path

import pytest
import scrapestat as ss
from conftest import FIXTURES, program

BACKENDS = ["pandas", "polars", "arrow", "dicts"]


def rows(frame):
    if isinstance(frame, list):
        return frame
    if hasattr(frame, "to_pylist"):
        return frame.to_pylist()
    if hasattr(frame, "to_dicts"):
        return frame.to_dicts()
    return frame.astype(object).where(frame.notna(), None).to_dict("records")


@pytest.mark.parametrize("to", BACKENDS)
def test_reference(runs, to):
    want = json.loads((FIXTURES / "stats_vllm_seed1.json").read_text())["rows"]
    run = ss.load(runs / "long")
    for by in (["target"], []):
        got = rows(run.quantiles("ttft", [.5, .99], by=by, every="10s", estimator="linear", to=to))
        table = {(r["target"] if by else None, r["span"], r["t_s"], r["stat"]): r for r in got}
        some = [w for w in want if (w["target"] is not None) == bool(by)]
        assert len(got) == len(some) > 60
        for w in some:
            r = table[(w["target"], w["span"], w["start_s"], w["stat"])]
            assert math.isclose(r["value"], w["value"], rel_tol=1e-9) and r["n"] == w["n"], (w, r)


@pytest.mark.parametrize("to", BACKENDS)
def test_agrees_with_export(runs, exported, to):
    got = {(r["metric"], r["endpoint_url"], r["stat"], labels(r)): r["value"]
           for r in rows(ss.load(runs / "run1").stats(to=to)) if r["status"] == "ok"}
    compared = 0
    for name, m in exported["metrics"].items():
        for s in m["series"]:
            for stat, value in (s.get("stats") or {}).items():
                key = (name, s["endpoint_url"], stat, tuple(sorted((s.get("labels") or {}).items())))
                if key in got and stat not in ("rate",):
                    assert got[key] == value, key
                    compared += 1
    assert compared > 400


def labels(row):
    got = row["labels"]
    pairs = got.items() if isinstance(got, dict) else ((p["key"], p["value"]) if isinstance(p, dict) else p for p in got)
    return tuple(sorted(pairs))


def test_agrees_with_show(runs):
    shown = ss.load(runs / "run1").show()
    fleet = {r["quantity"]: r for r in rows(ss.load(runs / "run1").quantiles("*", [.5, .9, .99], by=[], to="dicts", wide=False))
             if r["stat"] == "p99"}
    for row in shown["latencies"]:
        assert math.isclose(fleet[row["canonical"]]["value"], row["p99"], rel_tol=1e-12)
        assert fleet[row["canonical"]]["n"] == row["count"]


def test_names_of_show(runs):
    """Every name that show prints is one of the reader's."""
    run = ss.load(runs / "run1")
    shown = run.show()
    names = {q["name"] for q in shown["quantities"] if q["value"] is not None} | {
        name for row in shown["latencies"] for name in (row["canonical"], row["name"])}
    assert len(names) > 12
    for name in sorted(names):
        assert rows(run.stats(name, by=[], to="dicts")), name


def test_several(runs):
    frame = ss.load(f"base={runs / 'run1'}", f"pr={runs / 'run2'}").quantiles("ttft", [.5, .99], every="10s", to="dicts")
    assert {r["run"] for r in frame} == {"base", "pr"} and len(frame) == 2 * 2 * 2 * 13
    for name in ("base", "pr"):
        assert sorted({r["t_s"] for r in frame if r["run"] == name}) == [10 * i for i in range(12)]


def test_sums(runs):
    frame = ss.load(runs / "run1").stats("ttft", stats=["count"], by=["replica"], every=10, to="dicts")
    for target in ("a", "b"):
        own = [r for r in frame if r["target"] == target]
        assert sum(r["value"] for r in own if r["span"] == "slice") == next(r["value"] for r in own if r["span"] == "window")


@pytest.mark.parametrize("to", BACKENDS)
def test_wide(runs, to):
    frame = rows(ss.load(runs / "run1").quantiles("ttft", [.5, .99], every="30s", wide=True, to=to))
    long = rows(ss.load(runs / "run1").quantiles("ttft", [.5, .99], every="30s", to="dicts"))
    assert len(frame) == len(long) // 2
    want = {(r["target"], r["span"], r["t_s"], r["stat"]): r["value"] for r in long}
    for r in frame:
        for stat in ("p50", "p99"):
            assert r[stat] == want[(r["target"], r["span"], r["t_s"], stat)]


def test_types(runs):
    frame = ss.load(runs / "run1").quantiles("ttft", to="pandas")
    assert str(frame["start"].dtype) == "datetime64[ns, UTC]" and isinstance(frame["labels"][0], dict)
    frame["value"] = 0.0  # a copy: what is kept stays
    assert ss.load(runs / "run1").quantiles("ttft", to="pandas")["value"].max() > 0


def test_other_tables(runs):
    run = ss.load(runs / "run1")
    samples = run.samples("running", to="arrow")
    assert set(samples["metric_name"].to_pylist()) == {"vllm:num_requests_running"} and len(samples) > 200
    assert len(run.requests(to="arrow")) == 0
    assert {r["kind"] for r in run.derived(to="dicts")} == {"derived"}
    assert next(f for f in run.families() if f["quantity"] == "ttft_s")["kind"] == "histogram"
    assert [p["name"] for p in run.phases()] == ["profiling"] and run.id and run.warnings == []


def test_formats_agree(runs, tmp_path):
    import duckdb
    import pandas

    args = ("query", "long", "-m", "ttft", "--stat", "p50,p99", "--by", "target", "--every", "10s")
    program(*args, "--format", "parquet", "-o", str(tmp_path / "stats.parquet"), cwd=runs)
    program(*args, "--format", "csv", "-o", str(tmp_path / "stats.csv"), cwd=runs)
    sql = (f"select run, target, t_s, value from '{tmp_path}/stats.parquet' "
           "where quantity='ttft_s' and stat='p99' and span='slice'")
    got = duckdb.sql(sql).fetchall()
    assert len(got) == 60
    csv = pandas.read_csv(tmp_path / "stats.csv", float_precision="round_trip")
    want = csv[(csv["stat"] == "p99") & (csv["span"] == "slice")]
    assert sorted(v for *_, v in got) == sorted(want["value"])
    lines = [json.loads(line) for line in program(*args, "--format", "jsonl", cwd=runs).splitlines()]
    assert lines == rows(ss.load(runs / "long").quantiles("ttft", [.5, .99], every="10s", to="dicts"))


def test_nothing_imported():
    """The package needs the standard library alone, also where no site-packages are."""
    folder = Path(ss.__file__).resolve().parent.parent
    code = (f"import sys; sys.path.insert(0, {str(folder)!r}); before = set(sys.modules); import scrapestat; "
            "print(sorted(m for m in set(sys.modules) - before if m.split('.')[0] in "
            "('pandas', 'polars', 'pyarrow', 'numpy')))")
    assert subprocess.run([sys.executable, "-S", "-c", code], capture_output=True, text=True, check=True).stdout == "[]\n"
