"""A real prometheus_client server with as many families as a vLLM server of three
engines has, for the bench harness.

Usage: server.py. It prints its port, and answers each line on stdin with the
nanoseconds of processor time from the beginning of each request since the last
such line to the beginning of the next.
"""

import random
import sys
import threading
import time
from wsgiref.simple_server import WSGIRequestHandler, make_server

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram
from prometheus_client.exposition import ThreadingWSGIServer, make_wsgi_app

registry = CollectorRegistry()
rnd = random.Random(1)  # values as uneven as a server's are: gzip minds
NAMES = ("model_name", "engine")
EDGES = (0.01, 0.02, 0.05, 0.1, 0.2, 0.3, 0.5, 0.8, 1, 1.5, 2, 2.5, 5, 10, 15, 20, 30)
for i in range(15):
    h = Histogram(f"vllm:histogram_{i}_seconds", "Histogram of what the engine did in seconds.", NAMES, buckets=EDGES, registry=registry)
    c = Counter(f"vllm:counter_{i}", "Number of things the engine did.", NAMES, registry=registry)
    g = Gauge(f"vllm:gauge_{i}", "Number of things the engine has.", NAMES, registry=registry)
    for engine in range(3):
        for k in range(2000):
            h.labels("meta-llama/Llama-3.1-8B", str(engine)).observe(rnd.expovariate(4 / (i + 1)))
        c.labels("meta-llama/Llama-3.1-8B", str(engine)).inc(rnd.randrange(10**7))
        g.labels("meta-llama/Llama-3.1-8B", str(engine)).set(rnd.random())

began = []
app = make_wsgi_app(registry)


def counted(environ, start_response):
    began.append(time.process_time_ns())
    return app(environ, start_response)


class Handler(WSGIRequestHandler):
    def log_message(self, format, *args):
        pass


httpd = make_server("127.0.0.1", 0, counted, ThreadingWSGIServer, handler_class=Handler)
threading.Thread(target=httpd.serve_forever, daemon=True).start()
print(httpd.server_port, flush=True)
for line in sys.stdin:
    print(*(b - a for a, b in zip(began, began[1:])), flush=True)
    began.clear()
