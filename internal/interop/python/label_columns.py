"""pandas, pyarrow, polars and DuckDB read labels that are named as columns are, or as
each other but for case, from both layouts, and tell eight series apart by them.
"""

import json
from pathlib import Path

import pyarrow.parquet as pq

from interop_common import Report
from table_readers import FIXED, READERS, as_map

LABELS = ["value", "count", "sum", "timestamp_ns", "endpoint_url", "Model", "model"]


def expected():
    """By the value of a series: its labels."""
    out = {}
    for i, differs in enumerate(["", *LABELS]):
        out[float(i)] = {n: "another" if n == differs else "of " + n for n in LABELS}
    return out


def main(folder):
    report = Report(folder)
    wide, tidy = Path(folder) / "server_metrics_export.parquet", Path(folder) / "tidy.parquet"
    names = json.loads(pq.read_schema(wide).metadata[b"scrapestat.labels"])
    for reader, read in READERS.items():
        columns = {c.strip('"'): v for c, v in read(wide, None).items()}
        folded = {c.lower() for c in columns}
        report.check(len(folded) == len(columns), reader, "columns are equal but for case:", *columns)
        # DuckDB's own names of columns would show if two were equal to it.
        labels = {names.get(c, c): c for c in columns if c not in FIXED}
        report.check(set(labels) == set(LABELS), reader, "wide: labels", *labels)
        seen = {}
        for row in range(len(columns["value"])):
            seen[columns["value"][row]] = {n: columns[c][row] for n, c in labels.items()}
        report.check(seen == expected(), reader, "wide:", seen)
        columns = read(tidy, ["value", "labels"])
        seen = {v: dict(as_map(m)) for v, m in zip(columns["value"], columns["labels"], strict=True)}
        report.check(seen == expected(), reader, "tidy:", seen)
    return report.finish()
