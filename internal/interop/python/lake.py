"""Compares what an engine computes over a lake with the JSON of export --estimator linear --slice-duration 60s.

lake.py ENGINE TOOL LAKE EXPORT: ENGINE is duckdb, clickhouse or spark, TOOL the command. Each value of the JSON is
looked up: what SQL lacks is a difference. Totals, counts and buckets must be equal, others to 1e-9.
"""

import json
import math
import subprocess
import sys

EXACT = ("total", "count", "buckets")


def statement(tool, engine, lake, statistic, *flags):
    text = subprocess.run([tool, "lake", "sql", "--dialect", engine, "--statistic", statistic, "--lake", lake, *flags],
                          check=True, capture_output=True, text=True).stdout
    return text.rstrip().rstrip(";")


def duckdb_engine():
    import duckdb
    connection = duckdb.connect()
    connection.execute("SET TimeZone='UTC'")

    def ask(text):
        cursor = connection.execute(text)
        names = [d[0] for d in cursor.description]
        return [dict(zip(names, row)) for row in cursor.fetchall()]
    return ask


def clickhouse_engine():
    import chdb

    def ask(text):
        out = str(chdb.query(text + " SETTINGS output_format_json_quote_denormals=1, "
                             "output_format_json_quote_64bit_integers=0", "JSONEachRow"))
        return [json.loads(line) for line in out.splitlines()]
    return ask


def spark_engine():
    from pyspark.sql import SparkSession
    session = (SparkSession.builder.master("local-cluster[2,1,1024]").config("spark.ui.enabled", "false")
               .config("spark.sql.shuffle.partitions", "4").config("spark.default.parallelism", "4").getOrCreate())
    session.sparkContext.setLogLevel("ERROR")
    return lambda text: [row.asDict(recursive=True) for row in session.sql(text).collect()]


class Differences:
    def __init__(self):
        self.compared, self.worst, self.found = {}, {}, []

    def number(self, what, where, got, want):
        kind = what.split()[0]
        self.compared[kind] = self.compared.get(kind, 0) + 1
        if got is None or want is None:
            if got is not want:
                self.found.append(f"{where} {what}: {got}, want {want}")
            return
        got, want = float(got), float(want)
        off = abs(got - want) / max(abs(want), 1e-300) if got != want else 0.0
        scale = 1e-9
        if kind in EXACT and want == int(want):
            scale = 0.0
        if what.endswith("deviation") and abs(got - want) < 1e-12:
            off = 0.0  # of values that hardly differ
        self.worst[kind] = max(self.worst.get(kind, 0.0), off)
        if off > scale:
            self.found.append(f"{where} {what}: {got!r}, want {want!r}")


def labels(pairs):
    return tuple(sorted((pairs or {}).items()))


def bound(text):
    return math.inf if text == "+Inf" else float(text)


def compare(ask, tool, engine, lake, export):
    with open(export, encoding="utf-8") as f:
        tree = json.load(f)
    ours = tree["scrapestat"]
    sql = lambda statistic, *flags: ask(statement(tool, engine, lake, statistic, *flags))
    diff = Differences()
    urls = [e["url"] for e in ours["endpoints"]]
    own = {(s["metric"], urls[s["endpoint"]], labels(s.get("labels"))): s for s in ours["series"]}
    totals, histograms, gauges = sql("totals"), sql("histograms"), sql("gauges")
    quantiles, slices = sql("quantiles"), sql("slices", "--slice-duration", "60s")
    identity = {}
    for row in totals + histograms:
        identity[row["series_id"]] = (row["metric_name"], row["endpoint_url"], labels(row["labels"]))
    by_key = {"counter": {identity[r["series_id"]]: r for r in totals},
              "histogram": {identity[r["series_id"]]: r for r in histograms}}
    q = {(r["series_id"], r["percentile"]): r for r in quantiles}
    sliced = {}
    for r in slices:
        sliced.setdefault(r["series_id"], {})[r["start_ns"]] = r
    by_gauge = {}
    for r in gauges:
        by_gauge[r["metric_name"], r["endpoint_url"], labels(r["labels"])] = r
    for metrics in (tree["metrics"].items(), ((m["name"], m) for m in ours["metrics"])):
        for name, m in metrics:
            for s in m["series"]:
                key = (name, s["endpoint_url"], labels(s.get("labels")))
                more = own.get(key, {})
                grown = more.get("increase")
                stats, where = s.get("stats", {}), " ".join(map(str, key))
                if m["type"] == "counter" and "total" in stats or m["type"] == "counter" and grown:
                    counter(diff, where, by_key["counter"].get(key, {}), stats, grown, s, sliced)
                elif m["type"] in ("histogram", "summary") and "count" in stats:
                    histogram(diff, where, by_key["histogram"].get(key, {}), stats, grown, s, more, q, sliced, m["type"])
                elif m["type"] in ("gauge", "unknown") and "avg" in stats:
                    gauge(diff, where, by_gauge.get(key, {}), stats, s, sliced)
    return diff, tree


def counter(diff, where, row, stats, grown, s, sliced):
    if grown:
        if grown["status"] in ("refused", "lower_bound", "ambiguous"):
            return
        diff.number("total increase", where, row.get("total"), grown["value"])
        return  # the AIPerf part counts otherwise there
    diff.number("total", where, row.get("total"), stats["total"])
    diff.number("rate", where, row.get("polled_rate") or 0.0, stats.get("rate", 0.0) or 0.0)
    for x in s.get("timeslices", []):
        got = sliced.get(row.get("series_id"), {}).get(x["start_ns"])
        if got is None and x["total"] == 0:
            continue
        diff.number("total of slice", where, (got or {}).get("total"), x["total"])


def histogram(diff, where, row, stats, grown, s, more, q, sliced, kind):
    if grown and grown["status"] in ("refused", "lower_bound", "ambiguous"):
        return
    if grown:
        diff.number("count increase", where, row.get("observations"), grown["value"])
        if "sum" in grown:
            diff.number("sum increase", where, row.get("total_sum"), grown["sum"])
        s = {"buckets": grown.get("buckets", {})}
        stats = {"count": grown["value"]} | ({"sum": grown["sum"]} if "sum" in grown else {})
    diff.number("count", where, row.get("observations"), stats["count"])
    if "sum" in stats:
        diff.number("sum", where, row.get("total_sum"), stats["sum"])
    if stats["count"] and "avg" in stats:
        diff.number("avg", where, row.get("average"), stats["avg"])
    if kind == "histogram":
        counts = {bound(str(b)) if b not in ("inf", None) else math.inf: n
                  for b, n in zip(row.get("bounds", []), row.get("bucket_counts", []))}
        for text, n in s.get("buckets", {}).items():
            diff.number("buckets", where + " " + text, counts.get(bound(text)), n)
        for name, p in more.get("percentiles", {}).items():
            got = q.get((row.get("series_id"), float(name[1:])), {})
            diff.number("percentile " + name, where, got.get("value"), p["value"])
    for x in s.get("timeslices", []):
        got = sliced.get(row.get("series_id"), {}).get(x["start_ns"])
        if got is None and x["count"] == 0:
            continue
        diff.number("count of slice", where, (got or {}).get("observations"), x["count"])
        if "sum" in x:
            diff.number("sum of slice", where, (got or {}).get("total_sum"), x["sum"])


def gauge(diff, where, row, stats, s, sliced):
    for name, column in (("avg", "average"), ("min", "least"), ("max", "most"), ("std", "deviation")):
        diff.number("gauge " + column, where, row.get(column), stats[name])
    for name, value in stats.items():
        if name[0] == "p" and name[1:].isdigit():
            diff.number("gauge " + name, where, row.get(name), value)
    for x in s.get("timeslices", []):
        got = sliced.get(row.get("series_id"), {}).get(x["start_ns"], {})
        for name, column in (("avg", "average"), ("min", "least"), ("max", "most")):
            diff.number("gauge slice", where, got.get(column), x[name])


def hostile(ask, tool, engine, lake):
    """No name leaves its literal: each finds nothing, in the engine's own parser."""
    for name in ("it's", "\\", "\\'", "'; select 1; --", "a\nb", "`", "''", "é\"", "\\\\'", "$1 {x}", "%s"):
        for statistic in ("totals", "quantiles", "gauges"):
            flags = ["--metric", name]
            if statistic != "gauges":
                flags += ["--by", name.replace(",", "").replace('"', "").replace("\n", "")]
            rows = ask(statement(tool, engine, lake, statistic, *flags))
            assert rows == [], (name, statistic, rows)


def main():
    engine, tool, lake, export = sys.argv[1:5]
    ask = {"duckdb": duckdb_engine, "clickhouse": clickhouse_engine, "spark": spark_engine}[engine]()
    diff, _ = compare(ask, tool, engine, lake, export)
    for kind, n in sorted(diff.compared.items()):
        print(f"{engine} {kind}: {n} compared, worst {diff.worst.get(kind, 0):.2g}")
    if engine != "spark" or len(sys.argv) > 5:
        hostile(ask, tool, engine, lake)
    for text in diff.found[:40]:
        print("differs:", text)
    if sum(diff.compared.values()) < 1000:
        print("differs: too little was compared")
    sys.exit(1 if diff.found or sum(diff.compared.values()) < 1000 else 0)


if __name__ == "__main__":
    main()
