"""Runs and the tables of their numbers."""

from __future__ import annotations

import json
import os
import re
import warnings
from collections import OrderedDict
from collections.abc import Mapping, Sequence
from datetime import timedelta
from pathlib import Path
from types import MappingProxyType
from typing import Any, Literal, Union

from ._errors import CheckFailed, NoData, NotARun
from ._find import call
from ._frames import Backend, Frame, backend, decode, widen

Estimator = Literal["refined", "polynomial", "linear"]
Every = Union[str, float, timedelta, None]

_MANY = 5_000_000  # rows
_UNITS = re.compile(r"(\d+(\.\d*)?(ns|us|µs|ms|s|m|h))+")
_CACHED, _CACHED_BYTES = 64, 256 << 20


def _duration(name: str, value: Every) -> str | None:
    """A duration as the program takes it; a number is seconds."""
    if value is None:
        return None
    if isinstance(value, timedelta):
        value = value.total_seconds()
    if isinstance(value, (int, float)):
        return f"{value:.9f}".rstrip("0").rstrip(".") + "s"
    if not _UNITS.fullmatch(value):
        raise ValueError(f"{name}={value!r}: a duration needs a unit, as in {name}='10s'; a number is seconds: {name}=10")
    return value


def _percentile(q: float) -> str:
    if not 0 <= q <= 1:
        hint = f"; did you mean {q / 100:g}?" if 1 < q <= 100 else ""
        raise ValueError(f"q={q:g} is not between 0 and 1{hint}")
    return f"p{100 * q:.6g}"


def _path_of(spec: str) -> Path:
    """The run directory that a selector names: [NAME=]RUN[@WHAT]."""
    if os.path.isdir(spec):
        return Path(spec)
    name, eq, rest = spec.partition("=")
    if eq and name and "/" not in name and "@" not in name:
        spec = rest
    if not os.path.exists(spec):
        spec = spec.rpartition("@")[0] or spec
    return Path(spec)


def _look(spec: str) -> Path:
    path = _path_of(spec)
    if path.is_file() and path.name == "run.db":
        path = path.parent
    if not path.exists():
        raise FileNotFoundError(f"{path}: no such run")
    if not (path / "run.db").is_file():
        raise NotARun(f"{path} is no run directory: it has no run.db")
    return path


class Runs:
    """Several runs, whose tables have a column run. Results are kept until a recording grows."""

    def __init__(self, specs: Sequence[str]) -> None:
        self._specs = list(specs)
        self._paths = [_look(s) for s in specs]
        self._kept: OrderedDict[tuple[Any, ...], tuple[int, Any]] = OrderedDict()

    def __repr__(self) -> str:
        return f"scrapestat.Runs({', '.join(self._specs)})"

    def stats(self, metrics: str | Sequence[str] | None = None, *, stats: Sequence[str] | None = None,
              by: Sequence[str] | None = None, every: Every = None, phase: str | None = None,
              start: str | None = None, end: str | None = None, warmup: str | None = None,
              estimator: Estimator | None = None, to: Backend | None = None) -> Frame:
        """Statistics, a row each. by takes series together that agree in these labels; [] takes all."""
        argv = [f"--metric={m}" for m in ([metrics] if isinstance(metrics, str) else metrics or [])]
        if stats is not None:
            argv.append("--stat=" + ",".join(stats))
        if by is not None:
            argv.append("--by=" + ",".join("target" if b == "replica" else b for b in by))
        for flag, value in (("every", _duration("every", every)), ("phase", phase), ("from", start), ("to", end),
                            ("warmup", warmup), ("estimator", estimator)):
            if value is not None:
                argv.append(f"--{flag}={value}")
        return self.query(*argv, to=to)

    def quantiles(self, metric: str, q: Sequence[float] = (0.5, 0.9, 0.99), *, by: Sequence[str] | None = ("target",),
                  every: Every = None, wide: bool = False, to: Backend | None = None, **window: Any) -> Frame:
        """Percentiles with their bounds; wide has them as columns."""
        names = [_percentile(x) for x in q]
        frame = self.stats(metric, stats=names, by=by, every=every, to=to, **window)
        return widen(frame, backend(to), names) if wide else frame

    def derived(self, *, every: Every = None, to: Backend | None = None, **window: Any) -> Frame:
        """The derived quantities of each target."""
        return self.stats("derived:*", every=every, to=to, **window)

    def families(self) -> list[dict[str, Any]]:
        """What the runs have: metric, quantity, kind, unit, number of series, statistics."""
        out: list[dict[str, Any]] = json.loads(call(["query", "--list", "--format=json", "--", *self._specs])[0])
        return out

    def query(self, *argv: str, to: Backend | None = None) -> Frame:
        """The table of `scrapestat query` with these flags."""
        chosen = backend(to)
        key = (*argv, chosen, *self._state())
        if key not in self._kept:
            form = "json" if chosen == "dicts" else "parquet"
            data, _ = call(["query", *argv, f"--format={form}", "--", *self._specs])
            frame = decode(data, chosen)
            if len(frame) > _MANY:
                warnings.warn(f"{len(frame)} rows: a wider every= gives fewer", stacklevel=2)
            self._keep(key, len(data), frame)
        self._kept.move_to_end(key)
        frame = self._kept[key][1]
        return frame.copy() if chosen == "pandas" else list(frame) if chosen == "dicts" else frame

    def _keep(self, key: tuple[Any, ...], size: int, frame: Frame) -> None:
        self._kept[key] = (size, frame)
        while len(self._kept) > _CACHED or len(self._kept) > 1 and sum(s for s, _ in self._kept.values()) > _CACHED_BYTES:
            self._kept.popitem(last=False)

    def _state(self) -> tuple[Any, ...]:
        """Changes when a recording does."""
        out: list[Any] = []
        for path in self._paths:
            for name in ("run.db", "run.db-wal"):
                try:
                    info = os.stat(path / name)
                    out.append((info.st_size, info.st_mtime_ns))
                except FileNotFoundError:
                    out.append(None)
        return tuple(out)

    def requests(self, *, to: Backend | None = None) -> Frame:
        """What clients saw, a row for each request."""
        return self._table("requests", (), to)

    def _table(self, table: str, metrics: Sequence[str], to: Backend | None) -> Frame:
        chosen = backend(to)
        argv = ["query", f"--table={table}", "--format=parquet", *(f"--metric={m}" for m in metrics), "--", *self._specs]
        data, _ = call(argv)
        if chosen != "dicts":
            return decode(data, chosen)
        if backend(None) == "dicts":
            raise ImportError(f"{table} need pyarrow or polars")
        try:
            return decode(data, "arrow").to_pylist()
        except ImportError:
            return decode(data, "polars").to_dicts()

    def report(self, file: str | os.PathLike[str]) -> Path:
        """Writes the HTML report."""
        call(["report", f"--out={os.fspath(file)}", "--", *self._specs])
        return Path(file)


class Run(Runs):
    """A recorded run, or a part of one: what load returns for one selector."""

    def __init__(self, spec: str) -> None:
        super().__init__([spec])
        self.path = self._paths[0]
        self._shown: tuple[Any, dict[str, Any]] | None = None

    def __repr__(self) -> str:
        return f"scrapestat.Run({self._specs[0]!r})"

    def show(self) -> dict[str, Any]:
        """The document of `scrapestat show --format json`."""
        state = self._state()
        if self._shown is None or self._shown[0] != state:
            self._shown = (state, json.loads(call(["show", "--format=json", "--", self._plain])[0]))
        return self._shown[1]

    @property
    def _plain(self) -> str:
        """The selector without NAME=."""
        spec = self._specs[0]
        name, eq, rest = spec.partition("=")
        return rest if eq and not os.path.isdir(spec) and "/" not in name and "@" not in name else spec

    @property
    def id(self) -> str:
        """The recording's id."""
        return str(self.show()["run"]["id"])

    @property
    def tags(self) -> Mapping[str, str]:
        """The tags of the run."""
        return MappingProxyType(dict(self.show()["run"].get("tags") or {}))

    @property
    def warnings(self) -> list[str]:
        """What is to be known of the data, of the run and of its targets."""
        shown = self.show()
        out = [w["text"] if isinstance(w, dict) else str(w) for w in shown.get("warnings") or []]
        return out

    def phases(self) -> list[dict[str, Any]]:
        """The phases of the run: name, start_ns, end_ns."""
        return list(self.show()["run"].get("phases") or [])

    def samples(self, *metrics: str, to: Backend | None = None) -> Frame:
        """Raw samples, cumulative, with what they gained since the window began."""
        return self._table("samples", metrics, to)

    def check(self, slo: str | os.PathLike[str], *flags: str) -> str:
        """Holds the run against a file of limits and returns the verdict; raises CheckFailed with it."""
        out, code = call(["check", f"--slo={os.fspath(slo)}", *flags, "--", *self._specs], accept=(0, 3, 4))
        text = out.decode("utf-8", "replace")
        if code:
            raise CheckFailed(text, code)
        return text

    def log_mlflow(self, run: Any = None, **options: Any) -> str:
        """Logs the numbers into a run of MLflow, the active one or a new one: see scrapestat.track."""
        from .track import log_mlflow

        return log_mlflow(self, run, **options)

    def log_wandb(self, run: Any = None, **options: Any) -> str:
        """Logs the numbers into a run of W&B, the active one or a new one: see scrapestat.track."""
        from .track import log_wandb

        return log_wandb(self, run, **options)

    def _repr_html_(self) -> str:
        from ._html import mini_report

        try:
            return mini_report(self.show())
        except Exception as error:  # a repr never raises
            from html import escape

            return f"<pre>{escape(str(error)[:1000])}</pre>"


def load(*specs: str | os.PathLike[str]) -> Any:
    """A Run of one selector ([NAME=]RUN[@WHAT]), Runs of several."""
    if not specs:
        raise TypeError("load() wants a run directory")
    texts = [os.fspath(s) for s in specs]
    return Run(texts[0]) if len(texts) == 1 else Runs(texts)


__all__ = ["Estimator", "NoData", "Run", "Runs", "load"]
