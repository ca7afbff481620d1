"""What InferenceX's aggregation (843c625) reads of our JSON: metrics[NAME].series[].{stats,labels,endpoint_url}, of counters the
first of total, sum, max, avg, of gauges the first of max, avg, total, by names without _total. A change of names, of
the order of statistics or of series fails here."""

import json
import math

import pytest
from conftest import FIXTURES, program

COUNTER, GAUGE = ("total", "sum", "max", "avg"), ("max", "avg", "total")


def values(doc, name, order, **labels):
    """The first statistic of each series that has these labels."""
    for series in doc["metrics"].get(name, {}).get("series", []):
        own = series.get("labels") or {}
        if all(own.get(k) == v for k, v in labels.items()):
            yield next(series["stats"][s] for s in order if s in series["stats"])


def total(doc, name, **labels):
    return sum(values(doc, name, COUNTER, **labels))


def share(part, whole):
    return part / whole if whole else 0.0


def usage(doc, name):
    top = max(values(doc, name, GAUGE))
    return top / 100 if top > 1.5 else top  # a gauge above 1.5 is taken for a percentage


def read(doc):
    """The numbers of the adapter that the names call for."""
    names = doc["metrics"]
    if any(n.startswith("sglang:") for n in names):
        prompt = total(doc, "sglang:prompt_tokens")
        return "sglang", {"total_prompt_tokens": prompt, "total_generation_tokens": total(doc, "sglang:generation_tokens"),
                          "gpu_kv_cache_usage_pct": usage(doc, "sglang:token_usage"),
                          "server_gpu_cache_hit_rate": share(total(doc, "sglang:cached_tokens", cache_source="device"), prompt),
                          "server_overall_cache_hit_rate": share(total(doc, "sglang:cached_tokens"), prompt)}
    hits = share(total(doc, "vllm:prefix_cache_hits"), total(doc, "vllm:prefix_cache_queries"))
    external = share(total(doc, "vllm:external_prefix_cache_hits"), total(doc, "vllm:external_prefix_cache_queries"))
    adapter = "dynamo-vllm" if any(n.startswith("dynamo_") for n in names) else "vllm"
    return adapter, {"total_prompt_tokens": total(doc, "vllm:prompt_tokens"),
                     "total_generation_tokens": total(doc, "vllm:generation_tokens"),
                     "gpu_kv_cache_usage_pct": usage(doc, "vllm:kv_cache_usage_perc"), "server_gpu_cache_hit_rate": hits,
                     "server_overall_cache_hit_rate": hits, "server_external_cache_hit_rate": external}


def exported(run, folder):
    return json.loads(program("export", run, "--formats", "json", "-o", "-", cwd=folder))


@pytest.mark.parametrize("kind", ["vllm", "sglang", "dynamo-worker"])
def test_reads(runs, tmp_path, kind):
    want = json.loads((FIXTURES / "inferencex_expected.json").read_text())["runs"][kind]
    folder, run = (runs, "long") if kind == "vllm" else (tmp_path, "r")
    if kind != "vllm":
        program("simulate", f"a={kind},rate=6", "--record", "r", "--duration", "1m", cwd=folder)
    doc = exported(run, folder)
    adapter, got = read(doc)
    assert adapter == want["adapter"]
    for name, value in got.items():
        assert math.isclose(value, want["flat"][name], rel_tol=1e-9, abs_tol=1e-12), name
    # The servers that look up prefixes.
    sources = {s["endpoint_url"] for s in doc["metrics"].get("vllm:prefix_cache_queries", {}).get("series", [])}
    assert len(sources) == want["sources"]


def test_real_sglang(tmp_path):
    """A server whose cached tokens appear between two polls: total alone, no device invented."""
    body = (FIXTURES.parents[1] / "bodies" / "sglang-driven.prom").read_text().splitlines()
    dump = [line for line in body if line.startswith("#")]
    for at, left_out in ((1_700_000_000, "sglang:cached_tokens_total"), (1_700_000_060, "")):
        dump += [f"{line} {at}" for line in body if line and line[0] != "#" and not (left_out and line.startswith(left_out))]
    (tmp_path / "dump.txt").write_text("\n".join(dump) + "\n")
    program("import", "openmetrics", "dump.txt", "-o", "r", cwd=tmp_path)
    doc = exported("r", tmp_path)
    series = doc["metrics"]["sglang:cached_tokens"]["series"]
    assert [s["labels"]["cache_source"] for s in series] == ["total"] and read(doc)[0] == "sglang"
