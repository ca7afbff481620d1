"""Runs, their errors, notebooks, comparisons and recordings."""

import asyncio
import os
import re
import shutil
import socket
import subprocess
import time
import urllib.request

import pytest
import scrapestat as ss
from conftest import program


def test_refusals(runs, tmp_path):
    with pytest.raises(FileNotFoundError):
        ss.load(tmp_path / "nowhere")
    with pytest.raises(ss.NotARun, match="run.db"):
        ss.load(tmp_path)
    run = ss.load(runs / "run1")
    with pytest.raises(ss.NoData, match="did you mean .*ttft.*engines seen: vllm") as e:
        run.quantiles("tftt", to="dicts")
    assert e.value.returncode == 4 and "query" in e.value.argv and "tftt" in e.value.stderr
    with pytest.raises(ValueError, match="did you mean 0.99"):
        run.quantiles("ttft", [99])
    with pytest.raises(ValueError, match="needs a unit"):
        run.quantiles("ttft", every="10")
    with pytest.raises(ss.UsageError, match="no such part"):
        ss.load(f"{runs / 'run1'}@nophase").stats("ttft", to="dicts")
    with pytest.raises(ss.UsageError, match="two runs are called"):
        ss.load(runs / "run1", runs / "run1").stats("ttft", to="dicts")
    with pytest.raises(ValueError, match="want one of pandas"):
        run.stats("ttft", to="R")


def test_names_are_no_flags(runs):
    with pytest.raises(ss.NoData):
        ss.load(runs / "run1").stats("--limit=1", to="dicts")


def test_kept(runs, tmp_path, monkeypatch):
    """A result is asked for once, and again when the recording grew."""
    shutil.copytree(runs / "run1", tmp_path / "r")
    run = ss.load(tmp_path / "r")
    first = run.stats("ttft", to="dicts")
    monkeypatch.setenv("SCRAPESTAT_BIN", "/nonexistent")
    assert run.stats("ttft", to="dicts") == first
    os.utime(tmp_path / "r" / "run.db", ns=(1, 1))
    with pytest.raises(OSError):
        run.stats("ttft", to="dicts")


def test_not_found(monkeypatch):
    monkeypatch.delenv("SCRAPESTAT_BIN")
    monkeypatch.setenv("PATH", "")
    with pytest.raises(ss.BinaryNotFound, match="SCRAPESTAT_BIN.*PATH"):
        ss.binary()


def test_compare(runs, tmp_path):
    c = ss.compare(runs / "run1", runs / "run2")
    assert "ttft_p99" in c.verdict and len(c.frame(to="pandas")) == len(c.frame(to="dicts")) > 100
    slo = tmp_path / "slo.yaml"
    run = ss.load(runs / "run1")
    slo.write_text("checks:\n  - ttft p99 < 10s\n")
    assert "pass" in run.check(slo)
    slo.write_text("checks:\n  - ttft p99 < 1ms\n")
    with pytest.raises(ss.CheckFailed, match="ttft") as e:
        run.check(slo)
    assert e.value.returncode == 3
    assert run.report(tmp_path / "r.html").read_text().startswith("<!DOCTYPE html>")


def test_html(tmp_path):
    text = "# TYPE vllm:generation_tokens counter\n" + "".join(
        f'vllm:generation_tokens_total{{model_name="<script>alert(1)</script>"}} {100 * i} {1700000000 + 10 * i}\n'
        for i in range(4)) + "# EOF\n"
    dump = tmp_path / "dump.txt"
    dump.write_text(text)
    program("import", "openmetrics", str(dump), "-o", str(tmp_path / "r"))
    page = ss.load(tmp_path / "r")._repr_html_()
    assert "<script" not in page and "&lt;script" in page and len(page.encode()) <= 30_000


def test_html_never_raises(runs, tmp_path, monkeypatch):
    run = ss.load(runs / "run1")
    page = run._repr_html_()
    shown = run.show()["latencies"][0]
    assert f"{shown['p99']:.4g} [" in page
    other = ss.load(runs / "run2")
    monkeypatch.setenv("SCRAPESTAT_BIN", "/nonexistent")
    assert other._repr_html_().startswith("<pre>")


@pytest.fixture(scope="module")
def server(tmp_path_factory):
    """A simulated server on loopback."""
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        port = s.getsockname()[1]
    child = subprocess.Popen([os.environ["SCRAPESTAT_BIN"], "simulate", "vllm", "--rate", "50", "--listen", f"127.0.0.1:{port}"],
                             stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    url = f"127.0.0.1:{port}"
    for _ in range(500):
        try:
            urllib.request.urlopen(f"http://{url}/metrics", timeout=5).read()
            break
        except OSError:
            time.sleep(0.02)
    assert child.poll() is None
    yield url
    child.terminate()
    child.wait()


def test_collect(server, tmp_path):
    with pytest.raises(KeyError, match="mine"):
        with ss.collect(server, out=tmp_path / "r", interval="50ms", tags={"tp": 4}, flags=["--settle=100ms"]) as rec:
            with rec.phase("c8"):
                time.sleep(0.3)
            raise KeyError("mine")
    run = rec.run
    assert "c8" in [p["name"] for p in run.phases()] and run.tags["tp"] == "4"
    assert (tmp_path / "r" / "manifest.json").exists()
    assert run.show()["targets"][0]["ok"] > 2 and rec._child is None


def test_collect_async(server, tmp_path):
    async def drive():
        async with ss.collect(server, out=tmp_path / "r", interval="50ms", flags=["--settle=100ms"]) as rec:
            await asyncio.sleep(0.2)
        return rec.run

    assert asyncio.run(drive()).id


def test_collect_nobody(tmp_path):
    with pytest.raises(ss.ScrapestatError) as e:
        with ss.collect("127.0.0.1:1", out=tmp_path / "r"):
            raise KeyError("the block is not reached")
    assert e.value.returncode == 5


def test_version():
    assert re.match(r"\d", ss.__version__)
    out = subprocess.run([os.sys.executable, "-m", "scrapestat", "version"], capture_output=True, text=True, check=True,
                         env={**os.environ, "PYTHONPATH": os.path.dirname(os.path.dirname(ss.__file__))}).stdout
    assert out.startswith("scrapestat ")
