"""AIPerf's storage, statistics and Parquet exporter on polls of the bench harness.

Usage: analyse.py DIR TARGETS PARQUET. It loads the polls of that many targets from our
JSONL, their types from our JSON, and answers lines on stdin: a slice width in seconds
with the processor time of computing all statistics and of its JSON and CSV files, and
0 with that of writing PARQUET. An answer is: nanoseconds, series or rows. Filling its
storage, and carrying the statistics from process to process as AIPerf does, is left
out, in its favour.
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


def load(folder, targets):
    hierarchy = ServerMetricsHierarchy()
    known = orjson.loads((folder / "server_metrics_export.json").read_bytes())["metrics"]
    first = last = None
    urls = [f"http://127.0.0.1:{8000 + target}/metrics" for target in range(targets)]
    with open(folder / "server_metrics_export.jsonl", "rb") as file:
        for line in file:
            if not any(url.encode() in line[:200] for url in urls):
                continue
            poll = orjson.loads(line)
            metrics = {
                name: MetricFamily.model_construct(
                    type=PrometheusMetricType(known[name]["type"]),
                    description=known[name]["description"],
                    samples=[
                        MetricSample.model_construct(
                            labels=s.get("labels"), value=s.get("value"), buckets=s.get("buckets"),
                            sum=s.get("sum"), count=s.get("count"),
                        )
                        for s in samples
                    ],
                )
                for name, samples in poll["metrics"].items()
                if name in known
            }
            at = poll["timestamp_ns"]
            hierarchy.add_record(
                ServerMetricsRecord.model_construct(
                    endpoint_url=poll["endpoint_url"], timestamp_ns=at, endpoint_latency_ns=poll["endpoint_latency_ns"],
                    metrics=metrics, request_sent_ns=at, first_byte_ns=at, is_duplicate=False,
                )
            )
            first, last = first or at, at
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
        benchmark_id="bench", endpoint_summaries=summaries, warmup_endpoint_summaries=None,
        start_ns=span.start_ns, end_ns=span.end_ns, warmup_start_ns=None, warmup_end_ns=None,
        endpoints_configured=list(hierarchy.endpoints), endpoints_successful=list(hierarchy.endpoints),
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
        model_dump=lambda **_: {}, get_model_names=lambda: ["m"], get_profiling_phases=list,
        phases=[SimpleNamespace(concurrency=1)],
    )
    run = SimpleNamespace(cfg=config, benchmark_id="bench")
    accumulator = SimpleNamespace(run=run, get_hierarchy_for_export=lambda: hierarchy)
    asyncio.run(ServerMetricsParquetExporter(accumulator, span).export())
    return pq.read_metadata(path).num_rows


logging.disable(logging.WARNING)
hierarchy, span = load(Path(sys.argv[1]), int(sys.argv[2]))
for line in sys.stdin:
    start = time.process_time_ns()
    n = statistics(hierarchy, span, float(line)) if int(line) else parquet(hierarchy, span, sys.argv[3])
    print(time.process_time_ns() - start, n, flush=True)
