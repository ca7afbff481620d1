"""A run on a small page, for notebooks: the numbers of `scrapestat show`."""

from __future__ import annotations

from collections.abc import Iterable
from html import escape
from typing import Any

_LONGEST = 200
_LARGEST = 30_000


def _text(value: Any) -> str:
    if value is None:
        return "-"
    if isinstance(value, float):
        return f"{value:.4g}"
    text = str(value)
    return escape(text if len(text) <= _LONGEST else text[:_LONGEST] + "…")


def _table(heads: Iterable[str], rows: Iterable[Iterable[Any]]) -> str:
    out = ["<table><tr>", *(f"<th>{escape(h)}</th>" for h in heads), "</tr>"]
    for row in rows:
        out.append("<tr>" + "".join(f"<td>{_text(c)}</td>" for c in row) + "</tr>")
    return "".join(out) + "</table>"


def _bounds(row: dict[str, Any], p: str) -> str:
    if row.get(p) is None:
        return "-"
    return f"{row[p]:.4g} [{_text(row.get(p + '_low'))}, {_text(row.get(p + '_high'))}]"


def mini_report(shown: dict[str, Any]) -> str:
    """HTML without scripts, at most 30,000 bytes."""
    run = shown["run"]
    window = run.get("window") or {}
    seconds = (window.get("end_ns", 0) - window.get("start_ns", 0)) / 1e9
    parts = [f"<b>{_text(run.get('title'))}</b> {_text(run.get('id'))} &middot; window {seconds:.1f} s"]
    targets = shown.get("targets") or []
    parts.append(_table(("target", "ok", "failed"), ((t["target"], t["ok"], t["failed"]) for t in targets[:10])))
    quantities = [q for q in shown.get("quantities") or [] if q.get("value") is not None]
    parts.append(_table(("engine", "quantity", "value", "unit"),
                        ((f"{q['engine']} {_of(q)}", q["name"], q["value"], q.get("unit")) for q in quantities[:5])))
    parts.append(_table(("latency", "p50", "p90", "p99", "unit", "n"),
                        ((f"{row['canonical']} {_of(row)}", _bounds(row, "p50"), _bounds(row, "p90"), _bounds(row, "p99"),
                          row.get("unit"), row.get("count")) for row in (shown.get("latencies") or [])[:10])))
    for w in (shown.get("warnings") or [])[:5]:
        parts.append(f"<div>warning: {_text(w.get('text') if isinstance(w, dict) else w)}</div>")
    size, out = 0, []
    for part in parts:
        size += len(part.encode())
        if size > _LARGEST - 100:
            out.append("<div>more: scrapestat show</div>")
            break
        out.append(part)
    return "".join(out)


def _of(row: dict[str, Any]) -> str:
    return " ".join((row.get("labels") or {}).values())
