"""AIPerf's parser, storage and statistics, given the bodies that we recorded,
agree with our JSON in clamp mode on every statistic of every series, and its
Parquet exporter makes the rows of our file.
"""

import logging
from pathlib import Path
from types import SimpleNamespace

import orjson
import pyarrow.parquet as pq
from aiperf.common.mixins.base_metrics_collector_mixin import FetchResult, HttpTraceTiming
from aiperf.common.models.server_metrics_models import TimeRangeFilter
from aiperf.server_metrics.accumulator import ServerMetricsAccumulator
from aiperf.server_metrics.data_collector import ServerMetricsDataCollector
from aiperf.server_metrics.export_stats import compute_stats
from aiperf.server_metrics.parquet_exporter import ServerMetricsParquetExporter
from aiperf.server_metrics.storage import ServerMetricsHierarchy
from aiperf.server_metrics.units import infer_unit

from interop_common import Report, all_series, label_key, load, windows


def fill(bodies):
    """Returns AIPerf's storage with what its collector makes of the bodies."""
    hierarchy = ServerMetricsHierarchy()
    collectors = {}
    for line in Path(bodies).read_bytes().splitlines():
        fetch = orjson.loads(line)
        url = fetch["url"]
        if url not in collectors:
            collectors[url] = ServerMetricsDataCollector(endpoint_url=url, collection_interval=1.0, reachability_timeout=1.0)
        timing = HttpTraceTiming(start_ns=fetch["sent_ns"], start_perf_ns=1, first_byte_perf_ns=1 + fetch["at_ns"] - fetch["sent_ns"],
                                 end_perf_ns=1 + fetch["latency_ns"])
        record = collectors[url]._parse_metrics_to_records(
            FetchResult(text=fetch["body"], trace_timing=timing, is_duplicate=fetch["duplicate"], content_type=fetch["content_type"]))
        if record is not None:
            hierarchy.add_record(record)
    return hierarchy


def numbers(report, ours, theirs, *where):
    """Both have the same keys and numbers."""
    report.check(ours.keys() == theirs.keys(), *where, "keys", sorted(ours.keys() ^ theirs.keys()), "are on one side only")
    for key in ours.keys() & theirs.keys():
        if isinstance(theirs[key], dict):
            numbers(report, ours[key], theirs[key], *where, key)
        elif key in ("start_ns", "end_ns", "is_complete"):
            report.check(ours[key] == theirs[key], *where, key, ours[key], theirs[key])
        elif key == "std" or key == "rate_std":
            # Two-pass variance of equal values is rounding, relative to the values.
            report.close(ours[key], theirs[key], *where, key, scale=abs(theirs.get("max", theirs.get("rate_max", 0.0))))
        else:
            report.close(ours[key], theirs[key], *where, key)


def compare(report, key, ours, theirs):
    theirs = theirs.model_dump(mode="json", exclude_none=True)
    if key[2] == "histogram" and ours["stats"]["count"] < 0:
        # aiperf.md 2.4 and case 32 export a negative gain as it is. Release 0.13.0
        # clamps it to 0, which makes the series one without observations.
        report.check(theirs["stats"] == {"count": 0}, *key, "AIPerf no longer clamps negative counts")
        report.note("histogram that fell: AIPerf 0.13.0 says count 0, its description and we say the negative count")
        return
    if key[2] == "histogram" and ours["stats"].get("sum", 0.0) < 0:
        report.check(theirs["stats"]["sum"] == 0.0, *key, "AIPerf no longer clamps negative sums")
        report.note("histogram with a negative sum: AIPerf 0.13.0 says sum 0, its description and we say the negative sum")
        report.close(ours["stats"]["count"], theirs["stats"]["count"], *key, "count")
        numbers(report, ours.get("buckets", {}), theirs.get("buckets", {}), *key, "buckets")
        return
    numbers(report, ours["stats"], theirs["stats"], *key)
    report.check(("buckets" in ours) == ("buckets" in theirs), *key, "buckets are on one side only")
    numbers(report, ours.get("buckets", {}), theirs.get("buckets", {}), *key, "buckets")
    slices = ours.get("timeslices"), theirs.get("timeslices")
    report.check((slices[0] is None) == (slices[1] is None), *key, "slices are on one side only")
    report.check(len(slices[0] or []) == len(slices[1] or []), *key, "slices", len(slices[0] or []), len(slices[1] or []))
    for i, (a, b) in enumerate(zip(slices[0] or [], slices[1] or [], strict=False)):
        numbers(report, a, b, *key, "slice", i)


def check_rows(report, hierarchy, document, folder):
    """The rows that AIPerf's Parquet exporter makes are those of our file, in the same order."""
    exporter = ServerMetricsParquetExporter.__new__(ServerMetricsParquetExporter)
    exporter._accumulator = SimpleNamespace(get_hierarchy_for_export=lambda: hierarchy)
    window = document["scrapestat"]["window"]
    last = max(storage.last_update_ns for storage in hierarchy.endpoints.values())
    exporter._time_filter = TimeRangeFilter(start_ns=window["start_ns"], end_ns=max(window["phase_end_ns"], last))
    labels = exporter._discover_all_label_keys() - exporter._get_reserved_names()
    table = pq.read_table(Path(folder, "server_metrics_export.parquet"))
    kept = [f"label_{name}" for name in exporter._get_reserved_names() if f"label_{name}" in table.schema.names]
    for name in kept:
        report.note(f"column {name}: AIPerf drops a label that is called like one of its columns, we keep it")
    table = table.drop_columns(kept)
    report.check(table.schema.remove_metadata().equals(exporter._build_pyarrow_schema(labels)), "schema", table.schema.names)
    frozen = {n["metric"] for n in document["scrapestat"]["series"] if any(w["code"] == "buckets_changed" for w in n.get("warnings", []))}
    for name in frozen:
        report.note(f"{name}: AIPerf freezes the first buckets and shows a missing one as 0, we show what was there")
    wanted = [row for row in exporter._collect_all_rows(labels) if row["metric_name"] not in frozen]
    got = [row for row in table.to_pylist() if row["metric_name"] not in frozen]
    report.check(len(got) == len(wanted) > 0, "rows", len(got), "AIPerf has", len(wanted))
    for i, (a, b) in enumerate(zip(got, wanted, strict=False)):
        report.check(a == {**b, "metric_type": str(b["metric_type"])}, "row", i, a, "AIPerf has", b)
    print(f"{len(got)} rows of the Parquet, as AIPerf's exporter makes them")


def main(folder, bodies):
    logging.disable(logging.WARNING)
    document = load(folder)
    report = Report("aiperf_statistics")
    hierarchy = fill(bodies)
    width = document["scrapestat"]["options"]["slice_ns"]
    profiling = document["scrapestat"]["window"]
    wanted = dict(all_series(document["metrics"]))
    seen = set()
    estimates = 0
    for url, storage in hierarchy.endpoints.items():
        span = TimeRangeFilter(start_ns=profiling["start_ns"], end_ns=max(profiling["phase_end_ns"], storage.last_update_ns))
        report.check((span.start_ns, span.end_ns) == windows(document)[url], url, "window", span, windows(document)[url])
        info = ServerMetricsAccumulator._compute_endpoint_info(storage, None).model_dump(mode="json", exclude_none=True)
        numbers(report, document["summary"]["endpoint_info"][url], info, url, "endpoint_info")
        for metric, entry in storage.metrics.items():
            result = compute_stats(entry.metric_type, entry.data, span, labels=metric.labels_dict, slice_duration=width / 1e9 if width else None)
            key = (url, metric.name, entry.metric_type.value, label_key(metric.labels_dict))
            if result is None:
                report.check(key not in wanted, *key, "has no statistics in AIPerf")
                continue
            seen.add(key)
            if key not in wanted:
                report.check(False, *key, "is in AIPerf only")
                continue
            estimates += sum(name.endswith("_estimate") for name in wanted[key]["stats"])
            compare(report, key, wanted[key], result)
            described = document["metrics"][metric.name]
            unit = infer_unit(metric.name, entry.description)
            report.check(described.get("unit") == (unit.display_name() if unit else None), *key, "unit", described.get("unit"), unit)
            report.check(described["description"] == entry.description, *key, "description")
    for key in wanted.keys() - seen:
        report.check(False, *key, "is in ours only")
    check_rows(report, hierarchy, document, folder)
    print(f"{len(seen)} series, {estimates} percentile estimates of histograms")
    return report.finish()
