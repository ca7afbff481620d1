"""AIPerf's storage, statistics and Parquet exporter on polls that the bench
harness wrote.

Usage: analyse.py POLLS TARGETS PARQUET. It loads the polls, which are of two
targets and stand for TARGETS of them, and answers lines on stdin: a slice width in
seconds with the processor time of computing all statistics and their JSON, and 0
with that of writing PARQUET. An answer is: nanoseconds, series or rows. The CSV
and what AIPerf does around its exporters is left out, in its favour.
"""

import asyncio
import logging
import sys
import time
from pathlib import Path
from types import SimpleNamespace

import orjson
import pyarrow.parquet as pq
from aiperf.common.enums import PrometheusMetricType, ServerMetricsFormat
from aiperf.common.models.server_metrics_models import MetricFamily, MetricSample, ServerMetricsRecord, TimeRangeFilter
from aiperf.server_metrics.export_stats import compute_stats
from aiperf.server_metrics.parquet_exporter import ServerMetricsParquetExporter
from aiperf.server_metrics.storage import ServerMetricsHierarchy


def load(path, targets):
    hierarchy = ServerMetricsHierarchy()
    first = last = None
    with open(path, "rb") as file:
        for line in file:
            poll = orjson.loads(line)
            metrics = {
                name: MetricFamily.model_construct(
                    type=PrometheusMetricType(family["type"]),
                    description=family["help"],
                    samples=[
                        MetricSample.model_construct(labels=s.get("l"), value=s.get("v"), buckets=s.get("b"), sum=s.get("s"), count=s.get("c"))
                        for s in family["samples"]
                    ],
                )
                for name, family in poll["metrics"].items()
            }
            for target in range(poll["target"], targets, 2):
                hierarchy.add_record(
                    ServerMetricsRecord.model_construct(
                        endpoint_url=f"http://127.0.0.1:{8000 + target}/metrics", timestamp_ns=poll["at"], endpoint_latency_ns=poll["took"],
                        metrics=metrics, request_sent_ns=poll["sent"], first_byte_ns=poll["at"], is_duplicate=False,
                    )
                )
            first, last = first or poll["at"], poll["at"]
    # The first poll is the reference before the window.
    return hierarchy, TimeRangeFilter(start_ns=first + 400_000_000, end_ns=last)


def statistics(hierarchy, span, width):
    out, n = {}, 0
    for url, storage in hierarchy.endpoints.items():
        for metric, entry in storage.metrics.items():
            result = compute_stats(entry.metric_type, entry.data, span, labels=metric.labels_dict, slice_duration=width)
            if result is not None:
                out.setdefault(metric.name, []).append({"endpoint_url": url, **result.model_dump(mode="json", exclude_none=True)})
                n += 1
    assert len(orjson.dumps(out, option=orjson.OPT_INDENT_2)) > 0
    return n


def parquet(hierarchy, span, path):
    config = SimpleNamespace(
        server_metrics=SimpleNamespace(enabled=True, formats=[ServerMetricsFormat.PARQUET]),
        artifacts=SimpleNamespace(server_metrics_export_parquet_file=Path(path)),
        model_dump=lambda **_: {}, get_model_names=lambda: ["m"], get_profiling_phases=list, phases=[SimpleNamespace(concurrency=1)],
    )
    accumulator = SimpleNamespace(run=SimpleNamespace(cfg=config, benchmark_id="bench"), get_hierarchy_for_export=lambda: hierarchy)
    asyncio.run(ServerMetricsParquetExporter(accumulator, span).export())
    return pq.read_metadata(path).num_rows


logging.disable(logging.WARNING)
hierarchy, span = load(sys.argv[1], int(sys.argv[2]))
for line in sys.stdin:
    start = time.process_time_ns()
    n = statistics(hierarchy, span, float(line)) if int(line) else parquet(hierarchy, span, sys.argv[3])
    print(time.process_time_ns() - start, n, flush=True)
