"""Times prometheus_client as AIPerf 0.13.0 calls it, for the bench harness.

Usage: parse.py DIR. It loads the bodies in DIR and answers each line on stdin, a
number of bodies to parse, with a line: nanoseconds of
processor time, samples. The call is that of
ServerMetricsDataCollector._parse_families: the parser alone, without the models
AIPerf makes of its result.
"""

import pathlib
import sys
import time

from prometheus_client.parser import text_string_to_metric_families

texts = [p.read_text() for p in sorted(pathlib.Path(sys.argv[1]).glob("*.prom"))]
at = 0
for line in sys.stdin:
    samples = 0
    start = time.process_time_ns()
    for _ in range(int(line)):
        families = list(text_string_to_metric_families(texts[at % len(texts)]))
        samples += sum(len(f.samples) for f in families)
        at += 1
    print(time.process_time_ns() - start, samples, flush=True)
