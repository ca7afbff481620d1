"""Takes as long as it is told, counts tokens, and fails when it is asked to."""
import json
import time

from ts.metrics.metric_type_enum import MetricTypes


def handle(data, context):
    if data is None:
        return None
    requests = [row.get("body") or row.get("data") for row in data]
    requests = [json.loads(r) if isinstance(r, (bytes, bytearray)) else r for r in requests]
    if any(r.get("fail") for r in requests):
        raise RuntimeError("asked to fail")
    longest = max(r["ms"] for r in requests)
    time.sleep(longest / 1000)
    metrics = context.metrics
    metrics.get_metric("MyTokens", metric_type=MetricTypes.COUNTER).add_or_update(
        sum(r["tokens"] for r in requests), ["toy", "gen"])
    metrics.get_metric("MyLatency", metric_type=MetricTypes.HISTOGRAM).add_or_update(longest, ["toy"])
    return [{"n": len(requests)}] * len(requests)
