"""AIPerf's models load our files of phases and our lines of JSONL, and have of each
phase the tokens that the lines of the recording say.
"""

from pathlib import Path

from aiperf.common.models.server_metrics_models import ServerMetricsResults, SlimRecord

from interop_common import Report, load

TOKENS = {"warmup": 4000.0, "low": 20000.0, "rewarm": 10000.0, "high": 40000.0}


def main(folder):
    report = Report("aiperf_phases")
    entries = load(folder, "phase_manifest.json")["phases"]
    report.check([e["phase_name"] for e in entries] == list(TOKENS), "phases", entries)
    for entry in entries:
        name = entry["phase_name"]
        data = ServerMetricsResults.model_validate(load(folder, entry["server_metrics_json"])["data"])
        report.check(not data.model_extra, name, "unknown keys", data.model_extra)
        for field in ("phase_index", "profiling_index", "phase_name", "phase_kind"):
            report.check(getattr(data, field) == entry[field], name, field, getattr(data, field))
        (endpoint,) = data.endpoint_summaries.values()
        total = endpoint.metrics["vllm:generation_tokens"].series[0].stats.total
        report.check(total == TOKENS[name], name, total)
    kinds = {}
    for line in Path(folder, "server_metrics_export.jsonl").read_bytes().splitlines():
        record = SlimRecord.model_validate_json(line)
        if record.phase_name is not None:
            kinds[record.phase_name] = (str(record.phase_kind), record.phase_index, record.profiling_index)
    wanted = {"warmup": ("warmup", 0, None), "low": ("profiling", 1, 0), "rewarm": ("warmup", 2, None), "high": ("profiling", 3, 1)}
    report.check(kinds == wanted, "phases of the lines", kinds)
    return report.finish()
