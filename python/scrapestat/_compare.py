"""Run against run, as `scrapestat compare` has it."""

from __future__ import annotations

import json
import os
from typing import Any

from ._find import call
from ._frames import Backend, Frame, backend


class Comparison:
    """The document of `scrapestat compare --format json`."""

    def __init__(self, document: dict[str, Any]) -> None:
        self.document = document

    @property
    def headline(self) -> list[dict[str, Any]]:
        """The judged values, with their verdicts."""
        return list(self.document.get("headline") or [])

    @property
    def verdict(self) -> dict[str, str]:
        """The verdict of each judged value, by its name: ttft_p99."""
        return {"_".join(filter(None, (r["id"], r.get("stat")))): str(r.get("verdict")) for r in self.headline}

    @property
    def changed(self) -> list[dict[str, Any]]:
        """The rows of families and derived quantities of which the program says that they changed."""
        same = ("same", "needs repeats", "incomparable")
        return [r for r in self.document.get("rows") or [] if r.get("verdict") not in same]

    def frame(self, to: Backend | None = None) -> Frame:
        """All rows."""
        chosen = backend(to)
        rows: list[dict[str, Any]] = self.document.get("rows") or []
        if chosen == "dicts":
            return rows
        if chosen == "polars":
            import polars

            return polars.DataFrame(rows, infer_schema_length=None)
        if chosen == "arrow":
            import pyarrow

            return pyarrow.Table.from_pylist(rows)
        import pandas

        return pandas.DataFrame(rows)

    def __repr__(self) -> str:
        return f"scrapestat.Comparison({self.verdict})"


def compare(*sides: str | os.PathLike[str], flags: tuple[str, ...] = ()) -> Comparison:
    """Compares runs or sides of runs ([NAME=]RUN[@WHAT])."""
    out, _ = call(["compare", "--format=json", *flags, "--", *(os.fspath(s) for s in sides)])
    return Comparison(json.loads(out))
