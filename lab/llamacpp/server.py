"""Serves the model at a port of loopback: server.py MODEL PORT SLOTS."""
import signal
import sys

import xllamacpp

p = xllamacpp.CommonParams()
p.model.path, p.port, p.n_parallel = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
p.hostnames = ["127.0.0.1"] if isinstance(p.hostnames, list) else "127.0.0.1"
p.endpoint_metrics = True
p.n_ctx, p.cpuparams.n_threads, p.n_gpu_layers = 4096, 1, 0
server = xllamacpp.Server(p)
signal.pause()
