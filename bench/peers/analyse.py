"""AIPerf's storage, statistics and Parquet exporter on polls that the bench
harness wrote.

Usage: analyse.py POLLS TARGETS PARQUET. It loads the polls, which are of two
targets and stand for TARGETS of them, and answers lines on stdin: a slice width in
seconds with the processor time of computing all statistics and of its JSON and CSV files,
and 0 with that of writing PARQUET. An answer is: nanoseconds, series or rows. Filling
its storage, and carrying the statistics from process to process as AIPerf does, is
left out, in its favour.
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
from aiperf.common.models.server_metrics_models import ServerMetricsResults
from aiperf.server_metrics.accumulator import ServerMetricsAccumulator
from aiperf.server_metrics.csv_exporter import ServerMetricsCsvExporter
from aiperf.server_metrics.json_exporter import ServerMetricsJsonExporter
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


def bare(cls, **fields):
    """An AIPerf object without the services that its constructor asks for."""
    made = cls.__new__(cls)
    for name, value in fields.items():
        object.__setattr__(made, name, value)
    return made


def statistics(hierarchy, span, width):
    accumulator = bare(ServerMetricsAccumulator, _server_metrics_hierarchy=hierarchy)
    summaries = accumulator.compute_endpoint_summaries(span.start_ns, span.end_ns, width)
    results = ServerMetricsResults.model_construct(
        benchmark_id="bench", endpoint_summaries=summaries, warmup_endpoint_summaries=None, start_ns=span.start_ns, end_ns=span.end_ns,
        warmup_start_ns=None, warmup_end_ns=None, endpoints_configured=list(hierarchy.endpoints), endpoints_successful=list(hierarchy.endpoints),
    )
    config = SimpleNamespace(model_dump=lambda **_: {})
    quiet = {"is_enabled_for": lambda _: False, "debug": lambda _: None}
    for exporter in ServerMetricsJsonExporter, ServerMetricsCsvExporter:
        text = bare(exporter, _server_metrics_results=results, _cfg=config, **quiet)._generate_content()
        assert len(text) > 0
        Path(sys.argv[3] + exporter.__name__).write_text(text)
    return sum(len(metric.series) for summary in summaries.values() for metric in summary.metrics.values())


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
