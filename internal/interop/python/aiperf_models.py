"""AIPerf's published models and its plot loader load our files, and nothing of
what the files say is lost on the way.
"""

from pathlib import Path

import orjson
from aiperf.common.models.server_metrics_models import ServerMetricsExportData, SlimRecord
from aiperf.plot.core.data_loader import DataLoader

from interop_common import Report, all_series, load


def kept(report, ours, theirs, *where):
    """Everything in ours is in theirs, with the same value."""
    if isinstance(ours, dict):
        for key, value in ours.items():
            if isinstance(theirs, dict) and key in theirs:
                kept(report, value, theirs[key], *where, key)
            else:
                report.check(False, *where, "key", key, "is not in AIPerf's model")
    elif isinstance(ours, list):
        report.check(isinstance(theirs, list) and len(ours) == len(theirs), *where, "length of a list")
        for i, (a, b) in enumerate(zip(ours, theirs, strict=False)):
            kept(report, a, b, *where, i)
    else:
        report.check(ours == theirs, *where, repr(ours), "became", repr(theirs))


def declared(model):
    return set(model.__class__.model_fields)


def check_declared(report, model, *where):
    """Below the top level there are only fields that the model declares."""
    report.check(not (model.model_extra or {}), *where, "unknown keys", sorted(model.model_extra or {}))


def check_json(report, folder, name, version):
    document = load(folder, name)
    data = ServerMetricsExportData.model_validate_json(Path(folder, name).read_bytes())
    report.check(data.schema_version == version, name, "schema", data.schema_version)
    dumped = orjson.loads(orjson.dumps(data.model_dump(mode="json", exclude_none=True)))
    for key in declared(data) & document.keys() - {"summary"}:
        kept(report, document[key], dumped[key], name, key)
    summary = document["summary"]
    for key in ("endpoints_configured", "endpoints_successful", "endpoint_info"):
        kept(report, summary[key], dumped["summary"][key], name, "summary", key)
    report.check(version == "1.1" or "phase_time_ranges" not in summary, name, "phase_time_ranges in schema 1.0")
    extra = document.keys() - declared(data)
    report.check(extra == {"scrapestat"}, name, "keys that AIPerf does not declare:", extra)
    for name_, metric in data.metrics.items():
        check_declared(report, metric, name, name_)
        for series in metric.series:
            report.check(series.stats is not None, name, name_, "series without stats")
            for part in (series, series.stats, *(series.timeslices or [])):
                check_declared(report, part, name, name_)
    return document


def check_jsonl(report, folder):
    lines = Path(folder, "server_metrics_export.jsonl").read_bytes().splitlines()
    for i, line in enumerate(lines):
        record = SlimRecord.model_validate_json(line)
        dumped = orjson.loads(orjson.dumps(record.model_dump(mode="json", exclude_none=True)))
        kept(report, orjson.loads(line), dumped, "jsonl line", i + 1)
    print(f"SlimRecord: {len(lines)} lines of JSONL")
    report.check(lines, "no line in the JSONL")


def check_plot(report, folder, document):
    """The loader of "aiperf plot" reads both files."""
    loader = DataLoader()
    frame, aggregated = loader._load_server_metrics_json(Path(folder, "server_metrics_export.json"))
    series = list(all_series(document["metrics"]))
    loaded = sum(len(labels) for endpoints in aggregated.values() for labels in endpoints.values())
    report.check(loaded == len(series), "plot loader: series of the JSON", loaded, "of", len(series))
    slices = sum(len(s.get("timeslices") or []) for _, s in series)
    rows = 0 if frame is None else len(frame)
    report.check(rows == slices, "plot loader: slices of the JSON", rows, "of", slices)
    frame, _ = loader._load_server_metrics_parquet(Path(folder, "server_metrics_export.parquet"))
    report.check(0 < len(set(frame["metric_name"])) <= len(document["metrics"]), "plot loader: metrics of the Parquet")
    report.check(set(frame["metric_name"]) <= document["metrics"].keys(), "plot loader: metrics that the JSON does not have")
    print(f"plot loader: {loaded} series and {rows} slices of the JSON, {len(frame)} rows of the Parquet")


def main(folder):
    report = Report("aiperf_models")
    document = check_json(report, folder, "server_metrics_export.json", "1.1")
    check_json(report, folder, "schema10.json", "1.0")
    check_jsonl(report, folder)
    check_plot(report, folder, document)
    return report.finish()
