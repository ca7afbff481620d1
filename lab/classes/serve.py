"""Serves the released metric classes of an engine, without the engine: serve.py sglang|omni PORT.

POST /drive gives each of their counters and histograms known numbers and answers with the sums."""
import enum
import http.server
import importlib.util
import json
import random
import sys
import types
from unittest.mock import MagicMock

from prometheus_client import GC_COLLECTOR, REGISTRY, generate_latest
from prometheus_client.metrics import Counter, Gauge, Histogram, Summary

KIND, PORT = sys.argv[1], int(sys.argv[2])
LABELS = {"model_name": "tiny", "engine_type": "unified", "tp_rank": "0", "pp_rank": "0", "moe_ep_rank": "0",
          "is_streaming": "true", "cache_source": "total", "priority": ""}


def package(name, inside=None):
    """A package that is not run when it is imported; its modules are those of the folder inside."""
    module = types.ModuleType(name)
    module.__path__ = [] if inside is None else [inside]
    sys.modules[name] = module
    return module


def stand_in(name, **known):
    """A module of the engine that the classes name and do not need."""
    module = package(name)
    module.__dict__.update(known)
    module.__getattr__ = lambda attribute: MagicMock()


class Settings:
    """Switches everything on."""

    def __getattr__(self, name):
        if name.startswith("__"):
            raise AttributeError(name)
        if any(part in name for part in ("bucket", "allowed", "rule", "loggers")):
            return None
        if "max_delay" in name:
            return 30
        if "size" in name:
            return 2
        return "null" if "mode" in name else True


def folder(name):
    return importlib.util.find_spec(name).submodule_search_locations[0]


def sglang():
    root = folder("sglang")
    for inner in ("", ".srt", ".srt.observability"):
        package("sglang" + inner, root + inner.replace(".", "/"))
    mode = enum.Enum("DisaggregationMode", {"NULL": "null", "PREFILL": "prefill", "DECODE": "decode"})
    stand_in("sglang.srt.disaggregation.utils", DisaggregationMode=mode)
    stand_in("sglang.srt.model_executor.forward_batch_info", ForwardMode=MagicMock())
    stand_in("sglang.srt.server_args", ServerArgs=object)
    stand_in("torch")
    stand_in("sglang.srt.utils", get_bool_env_var=lambda *a, **k: False)
    sys.modules["sglang.srt.utils"].__path__ = [root + "/srt/utils"]
    stand_in("sglang.srt.utils.nvtx_utils")
    names = ("observability", "schedule", "parallel", "serving", "disagg")
    context = MagicMock(is_config_namespace_published=lambda name: False)
    stand_in("sglang.srt.runtime_context", exports_expert_balancedness_to_prometheus=lambda *a, **k: True,
             get_context=lambda: context, **{"get_" + name: Settings for name in names})
    import sglang.srt.observability.metrics_collector as classes
    model = {"model_name": "tiny"}
    ranks = {name: LABELS[name] for name in ("model_name", "engine_type", "tp_rank", "pp_rank", "moe_ep_rank")}
    return [classes.SchedulerMetricsCollector(ranks, Settings(), True, True, True),
            classes.TokenizerMetricsCollector(Settings(), model), classes.StorageMetricsCollector(model),
            classes.RadixCacheMetricsCollector({**model, "cache_type": "radix"}),
            classes.EncoderMetricsCollector(model), classes.ExpertDispatchCollector(4)]


def omni():
    root = folder("vllm_omni")
    package("vllm_omni", root)
    package("vllm_omni.metrics", root + "/metrics")
    from vllm_omni.metrics import modality, prometheus, realtime, transfer
    return [prometheus.OmniPrometheusMetrics("tiny"), modality.OmniModalityMetrics("tiny"),
            transfer.OmniTransferMetrics("tiny"), realtime.RealtimeVADMetrics("tiny")]


def drive(seed):
    """Gives each counter, histogram and summary ten numbers, and each gauge too, which ends at 0 as that of an engine
    that has answered: a gauge of requests that stays above 0 is load that goes on after this one."""
    numbers, sums = random.Random(seed), {}
    for collector in sorted(collectors, key=lambda c: c._name):
        names = collector._labelnames
        child = collector.labels(**{n: LABELS.get(n, "0") for n in names}) if names else collector
        for _ in range(10):
            if isinstance(collector, Counter):
                n = numbers.randrange(1, 9)
                child.inc(n)
                gains = {"total": n}
            elif isinstance(collector, Gauge):
                child.set(numbers.random())
                child.set(0)
                gains = {}
            else:
                n = numbers.random()
                child.observe(n)
                gains = {"count": 1, "sum": n}
            for stat, n in gains.items():
                ask = f"{collector._name} {stat}"
                sums[ask] = sums.get(ask, 0) + n
    return sums


class Handler(http.server.BaseHTTPRequestHandler):
    def answer(self, text):
        self.send_response(200)
        self.send_header("Content-Length", str(len(text)))
        self.end_headers()
        self.wfile.write(text)

    def do_GET(self):
        self.answer(generate_latest(REGISTRY))

    def do_POST(self):
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        self.answer(json.dumps(drive(body["seed"])).encode())

    def log_message(self, *words):
        pass


REGISTRY.unregister(GC_COLLECTOR)
kept = {"sglang": sglang, "omni": omni}[KIND]()
collectors = {c for c in REGISTRY._collector_to_names if isinstance(c, (Counter, Gauge, Histogram, Summary))}
http.server.HTTPServer.request_queue_size = 64
http.server.HTTPServer(("127.0.0.1", PORT), Handler).serve_forever()
