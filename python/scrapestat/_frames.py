"""Tables as frames of pandas, polars or Arrow, or as plain dicts. None of them is imported before it is asked for."""

from __future__ import annotations

import importlib.util
import io
import json
import os
from collections.abc import Callable, Sequence
from typing import Any, Literal, Union, cast, get_args

Backend = Literal["pandas", "polars", "arrow", "dicts"]

# A frame is pandas.DataFrame, polars.DataFrame, pyarrow.Table or list[dict], by the backend.
Frame = Any

_CATEGORIES = ("run", "run_id", "level", "target", "endpoint_url", "engine", "metric", "quantity", "kind", "phase",
               "span", "stat", "unit", "source", "status", "flags")


def _has(*modules: str) -> bool:
    return all(importlib.util.find_spec(m) is not None for m in modules)


def backend(to: Backend | None) -> Backend:
    """The backend that is asked for, by SCRAPESTAT_FRAME, or the first that is installed."""
    name = to or os.environ.get("SCRAPESTAT_FRAME")
    if name:
        if name not in get_args(Backend):
            raise ValueError(f"backend {name!r}: want one of {', '.join(get_args(Backend))}")
        return cast(Backend, name)
    if _has("pandas", "pyarrow"):
        return "pandas"
    if _has("polars"):
        return "polars"
    return "arrow" if _has("pyarrow") else "dicts"


def decode(data: bytes, to: Backend) -> Frame:
    """A frame of a Parquet file, or dicts of JSON columns."""
    if to == "dicts":
        return _dicts(data)
    if to == "polars":
        import polars

        return polars.read_parquet(io.BytesIO(data))
    import pyarrow.parquet

    table = pyarrow.parquet.read_table(io.BytesIO(data))
    return table if to == "arrow" else _pandas(table)


def _dicts(data: bytes) -> list[dict[str, Any]]:
    columns = json.loads(data)["columns"]
    names = list(columns)
    return [dict(zip(names, row)) for row in zip(*columns.values())]


def _pandas(table: Any) -> Frame:
    import pandas

    frame = table.to_pandas(maps_as_pydicts="strict",
                            categories=[c for c in _CATEGORIES if c in table.column_names and
                                        str(table.schema.field(c).type) in ("string", "large_string")])
    for name in ("start", "end"):
        if f"{name}_ns" in frame.columns:
            at = list(frame.columns).index(f"{name}_ns")
            frame.insert(at, name, pandas.to_datetime(frame[f"{name}_ns"], unit="ns", utc=True))
    return frame


_KEYS = ("run", "level", "target", "metric", "quantity", "phase", "span", "slice", "start_ns", "end_ns", "t_s", "n")


def widen(frame: Frame, to: Backend, stats: Sequence[str]) -> Frame:
    """The statistics as columns: a row for each thing and span."""
    make: dict[str, Callable[[], Frame]] = {
        "pandas": lambda: _widen_pandas(frame, stats),
        "polars": lambda: frame.pivot(on="stat", index=_KEYS, values="value"),
    }
    if to in make:
        return make[to]()
    rows = frame.to_pylist() if to == "arrow" else frame
    out: dict[tuple[Any, ...], dict[str, Any]] = {}
    for row in rows:
        wide = out.setdefault(tuple(row[k] for k in _KEYS), {k: row[k] for k in _KEYS})
        wide[row["stat"]] = row["value"]
    result = [dict.fromkeys(stats) | row for row in out.values()]
    if to == "arrow":
        import pyarrow

        return pyarrow.Table.from_pylist(result)
    return result


def _widen_pandas(frame: Frame, stats: Sequence[str]) -> Frame:
    keys = list(_KEYS)
    out = frame[keys].drop_duplicates().reset_index(drop=True)
    for stat in stats:
        part = frame.loc[frame["stat"] == stat, [*keys, "value"]].rename(columns={"value": stat})
        out = out.merge(part, on=keys, how="left")
    return out


Duration = Union[str, float, None]
