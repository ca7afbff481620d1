"""Runs AIPerf's own collector for the bench harness: one ServerMetricsDataCollector
for each URL, as AIPerf's manager starts them, with a callback that keeps nothing.

Usage: collect.py INTERVAL SECONDS URL...
"""

import asyncio
import logging
import sys
import time

from aiperf.server_metrics.data_collector import ServerMetricsDataCollector


async def keep_nothing(records, collector_id):
    pass


async def main(interval, seconds, urls):
    end = time.monotonic() + seconds
    collectors = [
        ServerMetricsDataCollector(
            endpoint_url=u, collection_interval=interval, reachability_timeout=5.0,
            record_callback=keep_nothing, collector_id=f"c{i}",
        )
        for i, u in enumerate(urls)
    ]
    for c in collectors:
        await c.initialize()
        await c.start()
    await asyncio.sleep(max(0.0, end - time.monotonic()))
    for c in collectors:
        await c.stop()


logging.disable(logging.WARNING)
asyncio.run(main(float(sys.argv[1]), float(sys.argv[2]), sys.argv[3:]))
