"""pandas, pyarrow, polars and DuckDB read both layouts of the Parquet file, see
the same rows, and agree with the JSON on every series.
"""

import math
import struct
from pathlib import Path

import duckdb
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq

from interop_common import Report, all_series, label_key, load, series_notes, windows

FIXED = ["endpoint_url", "metric_name", "metric_type", "unit", "description", "timestamp_ns",
         "value", "sum", "count", "bucket_le", "bucket_count"]
TIDY = ["series_id", "endpoint_url", "endpoint_name", "metric_name", "metric_type", "unit", "labels", "timestamp_ns", "phase",
        "in_window", "component", "above", "le", "le_text", "quantile", "value", "value_uint64", "gain", "process", "sample_ms"]


def with_pandas(path, columns):
    frame = pd.read_parquet(path, dtype_backend="pyarrow")
    return {c: [None if v is pd.NA else v for v in frame[c].tolist()] for c in columns or frame.columns}


def with_pyarrow(path, columns):
    table = pq.read_table(path)
    return {c: table.column(c).to_pylist() for c in columns or table.column_names}


def with_polars(path, columns):
    frame = pl.read_parquet(path)
    return {c: frame[c].to_list() for c in columns or frame.columns}


def with_duckdb(path, columns):
    # DuckDB ignores case in names: labels A and a would be A and a_1.
    relation = duckdb.sql(f"select {', '.join(columns) if columns else '*'} from read_parquet('{path}')")
    return dict(zip(relation.columns, zip(*relation.fetchall()), strict=True)) if relation.shape[0] else {}


READERS = {"pandas": with_pandas, "pyarrow": with_pyarrow, "polars": with_polars, "duckdb": with_duckdb}


def bits(v):
    """A float as its bits: NaN equals NaN, and -0 is not 0."""
    return None if v is None else struct.pack("<d", v)


def as_map(v):
    """The forms that readers give a MAP."""
    if isinstance(v, dict):
        return tuple(sorted(v.items()))
    return tuple(sorted((e["key"], e["value"]) if isinstance(e, dict) else tuple(e) for e in v))


def aiperf_rows(columns):
    labels = [c for c in columns if c not in FIXED]
    rows = []
    fixed = [columns[c] for c in FIXED]
    for i in range(len(fixed[0])):
        pairs = tuple(sorted((c, columns[c][i]) for c in labels if columns[c][i] is not None))
        rows.append((*(c[i] for c in fixed), pairs))
    return rows


def tidy_rows(columns):
    at = TIDY.index("labels")
    return [(*row[:at], as_map(row[at]), *row[at + 1:]) for row in zip(*(columns[c] for c in TIDY), strict=True)]


def comparable(rows):
    return [tuple(bits(v) if isinstance(v, float) else v for v in row) for row in rows]


def percentiles(report, stats, values, where):
    values = np.array(values)
    report.close(values.mean(), stats["avg"], *where, "avg", scale=np.abs(values).max())
    report.close(values.min(), stats["min"], *where, "min")
    report.close(values.max(), stats["max"], *where, "max")
    std = values.std(ddof=1) if len(values) > 1 else 0.0
    # The deviation of equal values is rounding: numpy gives 5.6e-17 for 0.333.
    report.close(std, stats["std"], *where, "std", scale=np.abs(values).max())
    for p in (1, 5, 10, 25, 50, 75, 90, 95, 99):
        report.close(np.percentile(values, p), stats[f"p{p}"], *where, f"p{p}")


def buckets(report, series, final, where, exact=True):
    """final is the increase of each bucket up to the last sample, by le."""
    for le, n in series.get("buckets", {}).items():
        if le not in final:
            report.check(False, *where, "no row for bucket", le)
        elif exact:
            report.close(final[le], n, *where, "bucket", le)


def check_aiperf(report, document, rows):
    """AIPerf's layout has max(value - reference, 0) also across restarts."""
    found = {}
    ends = windows(document)
    for url, name, typ, _, _, at, value, total, count, le, n, labels in rows:
        if at <= ends[url][1]:
            found.setdefault((url, name, typ, labels), []).append((at, value, total, count, le, n))
    notes = series_notes(document)
    wanted = {}
    for key, series in all_series(document["metrics"]):
        # A label that is named as a fixed column has one of another name.
        shown = (*key[:3], tuple(sorted(("label_" + n if n in FIXED else n, v) for n, v in key[3])))
        wanted[shown] = series, notes.get((key[0], key[1], key[3]), {})
    for key in found.keys() - wanted.keys():
        report.check(False, *key, "is in the table only")
    for key, (series, note) in wanted.items():
        stats = series.get("stats", {})
        if key not in found:
            if key[2] == "histogram" and not series.get("buckets"):
                report.note("histogram without buckets: AIPerf's layout has no row for it")
                continue
            if key[2] == "histogram" and stats.get("count") == 0:
                report.note("histogram without a sample in the window")
                continue
            report.check(False, *key, "is in the JSON only")
            continue
        samples = found[key]
        last = [s for s in samples if s[0] == samples[-1][0]]
        if key[2] in ("gauge", "unknown"):
            percentiles(report, stats, [s[1] for s in samples], key)
        elif note.get("resets"):
            report.note("series with a restart: AIPerf's layout does not count across it")
        elif key[2] == "counter":
            report.close(samples[-1][1], stats.get("total", 0.0), *key, "total")
        else:
            report.close(last[-1][3], stats["count"], *key, "count")
            if stats["count"]:
                report.close(last[-1][2], max(stats["sum"], 0.0), *key, "sum")
            changed = any(w["code"] == "buckets_changed" for w in note.get("warnings", []))
            if changed:
                report.note("histogram whose buckets changed: only count and sum are compared")
            buckets(report, series, {s[4]: s[5] for s in last}, key, exact=not changed)


def check_tidy(report, document, rows):
    found = {}
    for row in rows:
        r = dict(zip(TIDY, row, strict=True))
        key = (r["endpoint_url"], r["metric_name"], r["metric_type"], r["labels"])
        if r["in_window"]:
            found.setdefault(key, []).append(r)
        else:
            report.check(r["gain"] is None, *key, "delta outside the window")
    ends = windows(document)
    notes = series_notes(document)
    clamp = document["scrapestat"]["options"]["counter_resets"] == "clamp"
    for key, series in all_series(document["metrics"]):
        stats = dict(series.get("stats", {}))
        # What is not as AIPerf counts it stands beside: births from zero, and across restarts under clamp.
        ours = notes.get((key[0], key[1], key[3]), {}).get("increase", {})
        if "value" in ours:
            series = {**series, "buckets": ours.get("buckets", series.get("buckets", {}))}
            stats["total" if key[2] == "counter" else "count"] = ours["value"]
            stats["sum"] = ours.get("sum", stats.get("sum"))
        if key not in found:
            report.check(key[2] == "histogram" and stats.get("count") == 0, *key, "is in the JSON only")
            continue
        samples = found[key]
        report.check(all(ends[key[0]][0] <= r["timestamp_ns"] <= ends[key[0]][1] for r in samples), *key, "in_window")
        gained = [r for r in samples if r["gain"] is not None]
        final = {(r["component"], r["le_text"]): r["gain"] for r in gained}
        if key[2] in ("gauge", "unknown"):
            percentiles(report, stats, [r["value"] for r in samples if math.isfinite(r["value"])], key)
        elif key[2] == "counter":
            report.close(final["value", None], stats.get("total", 0.0), *key, "total")
        else:
            report.close(final["count", None], stats["count"], *key, "count")
            if stats["count"]:
                report.close(final["sum", None], stats["sum"], *key, "sum", scale=abs(final["sum", None]))
            note = notes.get((key[0], key[1], key[3]), {})
            changed = any(w["code"] == "buckets_changed" for w in note.get("warnings", []))
            if changed and clamp:
                report.note("histogram whose buckets changed: AIPerf's arithmetic freezes the first ones")
            native = {(r["above"], r["le"]): r["gain"] for r in gained if r["component"] == "native_bucket"}
            if native:
                below = {le: sum(d for (_, upper), d in native.items() if upper <= float(le)) for le in series["buckets"]}
                report.check(len(below) > 3, *key, "has buckets", below)
                buckets(report, series, below, key)
                continue
            buckets(report, series, {le: d for (part, le), d in final.items() if part == "bucket"}, key, exact=not (changed and clamp))


def check_others(report, document, rows):
    """The types that AIPerf does not know are in the tidy layout only."""
    found = {}
    for row in rows:
        r = dict(zip(TIDY, row, strict=True))
        if r["in_window"]:
            found.setdefault((r["endpoint_url"], r["metric_name"], r["metric_type"], r["labels"]), []).append(r)
    for metric in document["scrapestat"].get("metrics", []):
        for series in metric["series"]:
            key = (series["endpoint_url"], metric["name"], metric["type"], label_key(series.get("labels")))
            samples = found.get(key, [])
            report.check(len({r["timestamp_ns"] for r in samples}) == series["samples"], *key, "samples", len(samples), series["samples"])
            if samples:
                check_other(report, key, series, samples)


def check_other(report, key, series, samples):
    last = [r for r in samples if r["timestamp_ns"] == samples[-1]["timestamp_ns"]]
    of = {r["component"]: r for r in last}
    if key[2] == "summary":
        for part in ("count", "sum"):
            report.close(of[part]["gain"], series["stats"][part], *key, part)
        quantiles = {r["quantile"]: r["value"] for r in last if r["component"] == "quantile"}
        said = {float(q): v for q, v in series.get("server_quantiles", {}).items()}
        report.check(quantiles.keys() == said.keys(), *key, "quantiles", quantiles, said)
        for q, v in quantiles.items():
            report.check(v == said[q] or math.isnan(v) and said[q] is None, *key, "quantile", q, v, said[q])
    elif key[2] == "info":
        report.check(all(r["value"] == 1 for r in samples), *key, "an info is not 1")
    elif key[2] == "stateset":
        values = [r["value"] for r in samples]
        report.check(series["stats"]["active_last"] == (values[-1] == 1), *key, "active_last")
        report.check(series["stats"]["changes"] == sum(a != b for a, b in zip(values, values[1:], strict=False)), *key, "changes")
        report.check(min(values) <= series["stats"]["active_share"] <= max(values), *key, "active_share")
    else:
        stats = series["stats_of_last_sample"]
        for part in ("count", "sum"):
            report.close(of[part]["value"], stats[part], *key, part)
        for le, n in series["buckets"].items():
            if series.get("native"):
                got = sum(r["value"] for r in last if r["component"] == "native_bucket" and r["le"] <= float(le))
            else:
                got = next(r["value"] for r in last if r["component"] == "bucket" and r["le_text"] == le)
            report.close(got, n, *key, "bucket", le)


def check_derived(report, document, folder):
    """All readers see the quantities of the JSON in the file of derived ones."""
    path = Path(folder, "derived.parquet")
    frames = [pd.read_parquet(path, dtype_backend="pyarrow").to_dict("records"), pq.read_table(path).to_pylist(), pl.read_parquet(path).to_dicts(),
              duckdb.sql(f"select * from read_parquet('{path}')").arrow().read_all().to_pylist()]
    urls = [e["url"] for e in document["scrapestat"]["endpoints"]]
    wanted = document["scrapestat"].get("derived", [])
    fleet = [d for t in document["scrapestat"].get("fleet", []) for d in t["derived"]]
    taken = document["scrapestat"].get("latencies", []) + document["scrapestat"].get("aggregates", {}).get("groups", [])
    report.check(len(wanted) > 0 or len(taken) > 0 or len(frames[1]) == 0, "derived.parquet has rows that the JSON does not have")
    for rows in frames:
        got = {}
        together = [r for r in rows if r["level"] in ("fleet", "group")]
        report.check(len(together) == sum(1 + len(d.get("timeslices", [])) for d in fleet), "rows of fleets", len(together), len(fleet))
        report.check(all(r["low"] <= r["value"] + 1e-9 and r["value"] <= r["high"] + 1e-9 for r in rows
                         if r["level"] in ("latency", "aggregate") and r["low"] is not pd.NA and r["low"] is not None
                         and r["high"] is not pd.NA and r["high"] is not None), "percentiles lie within their bounds")
        counts = {(r["level"], r["name"], as_map(r["labels"])): r["value"] for r in rows if r["stat"] == "count"}
        for a in taken:
            if "count" in a and a["type"] == "histogram":
                level = "latency" if "canonical" in a else "aggregate"
                report.check(counts.get((level, a["metric"], label_key(a.get("labels")))) == a["count"], "count of", a["metric"], level)
        rows = [r for r in rows if r["level"] == "endpoint"]
        for r in rows:
            got[r["endpoint_url"], r["pack"], r["name"], as_map(r["labels"]), r["span"], r["start_ns"]] = {k: None if v is pd.NA else v for k, v in r.items()}
        report.check(len(got) == len(rows) == sum(1 + len(d.get("timeslices", [])) for d in wanted), "derived rows", len(got), len(rows))
        windows_of = {k[:4]: r for k, r in got.items() if k[4] == "window"}
        for d in wanted:
            key = (urls[d["endpoint"]], d["pack"], d["name"], label_key(d.get("labels")))
            same_quantity(report, windows_of.get(key), d, *key)
            for s in d.get("timeslices", []):
                same_quantity(report, got.get((*key, "slice", s["start_ns"])), s, *key, s["start_ns"], names=("status", "value"))
    print(f"derived.parquet: {len(wanted)} quantities, {len(frames[0])} rows")


def same_quantity(report, row, said, *where, names=("status", "value", "numerator", "denominator")):
    report.check(row is not None, *where, "is not in derived.parquet")
    if row is None:
        return
    for name in names:
        report.check(row[name] == said.get(name), *where, name, row[name], said.get(name))


def check_footer(report, folder):
    metadata = pq.read_metadata(Path(folder, "server_metrics_export.parquet")).metadata
    for key in ("schema_version", "version", "benchmark_id", "export_timestamp_utc", "exporter", "time_filter_start_ns", "time_filter_end_ns",
                "profiling_duration_seconds", "endpoint_urls", "label_columns", "metric_count", "metric_type_counts", "schema_note"):
        report.check(b"aiperf." + key.encode() in metadata, "footer key", key)
    tidy = pq.ParquetFile(Path(folder, "tidy.parquet"))
    report.check(b"scrapestat.run" in tidy.metadata.metadata, "footer key scrapestat.run")
    names = [tidy.schema.column(i).path for i in range(len(tidy.schema))]
    for i in range(tidy.metadata.num_row_groups):
        order = [names[s.column_index] for s in tidy.metadata.row_group(i).sorting_columns]
        report.check(order == ["series_id", "timestamp_ns"], "declared order", order)
    report.check(tidy.schema_arrow.field("timestamp").type == pa.timestamp("ns"), "timestamp is", tidy.schema_arrow.field("timestamp").type)


def check_duckdb(report, folder):
    """DuckDB reads nanoseconds without loss, labels as a MAP, and le as numbers."""
    path = Path(folder, "tidy.parquet")
    report.check(duckdb.sql(f"select distinct typeof(timestamp), typeof(labels) from '{path}'").fetchall()
                 == [("TIMESTAMP_NS", "MAP(VARCHAR, VARCHAR)")], "types in DuckDB")
    total, lost, whole = duckdb.sql(f"""select count(*), count(*) filter (epoch_ns(timestamp) <> timestamp_ns),
        count(*) filter (timestamp_ns % 1000 = 0) from '{path}'""").fetchall()[0]
    report.check(total > 0 and lost == 0, "nanoseconds lost in", lost, "of", total, "rows")
    report.check(whole < total / 10, "times are whole microseconds in", whole, "of", total, "rows")
    wrong = duckdb.sql(f"select count(*) from '{path}' where component = 'bucket' and le <> cast(le_text as double)").fetchall()[0][0]
    report.check(wrong == 0, "le differs from le_text in", wrong, "rows")
    unsorted = duckdb.sql(f"""select count(*) from (select series_id, timestamp_ns, lag(series_id) over (order by file_row_number) as s,
        lag(timestamp_ns) over (order by file_row_number) as t from read_parquet('{path}', file_row_number = true))
        where series_id < s or series_id = s and timestamp_ns < t""").fetchall()[0][0]
    report.check(unsorted == 0, unsorted, "rows out of order")


def main(folder):
    document = load(folder)
    report = Report("table_readers")
    for name, prepare, check, columns in (("server_metrics_export.parquet", aiperf_rows, check_aiperf, None), ("tidy.parquet", tidy_rows, check_tidy, TIDY)):
        first = None
        for reader, read in READERS.items():
            rows = prepare(read(Path(folder, name), columns))
            before = report.checks
            check(report, document, rows)
            print(f"{reader}: {name}: {len(rows)} rows, {report.checks - before} comparisons with the JSON")
            if first is None:
                first = comparable(rows)
            else:
                report.check(comparable(rows) == first, reader, "sees other rows than", next(iter(READERS)))
    check_others(report, document, rows)
    check_derived(report, document, folder)
    check_footer(report, folder)
    check_duckdb(report, folder)
    return report.finish()
