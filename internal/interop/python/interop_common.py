"""What the scripts of this folder share."""

import json
import math
from pathlib import Path

TOLERANCE = 1e-9  # relative


class Report:
    """Counts comparisons and collects differences."""

    def __init__(self, name):
        self.name = name
        self.checks = 0
        self.differences = []
        self.notes = {}

    def check(self, ok, *where):
        self.checks += 1
        if not ok:
            self.differences.append(" ".join(str(w) for w in where))

    def close(self, got, want, *where, scale=0.0):
        """got and want differ by less than TOLERANCE of the larger one or of scale."""
        limit = TOLERANCE * max(abs(got), abs(want), scale)
        self.check(abs(got - want) <= limit and not math.isnan(got), *where, "got", repr(got), "want", repr(want))

    def note(self, text):
        """Counts something that is left out or known to differ, with its reason."""
        self.notes[text] = self.notes.get(text, 0) + 1

    def finish(self):
        """Prints what differs, and returns whether all agrees."""
        for text, n in sorted(self.notes.items()):
            print(f"{self.name}: {n} x {text}")
        for text in self.differences[:40]:
            print(f"{self.name}: DIFFERENCE {text}")
        print(f"{self.name}: {self.checks} comparisons, {len(self.differences)} differences")
        return self.checks > 0 and not self.differences


def load(folder, name="server_metrics_export.json"):
    return json.loads(Path(folder, name).read_text(encoding="utf-8"))


def label_key(labels):
    return tuple(sorted((labels or {}).items()))


def all_series(metrics):
    """Yields (key, series) of a JSON document; key is (endpoint, metric, type, labels)."""
    for name, metric in metrics.items():
        for series in metric["series"]:
            yield (series["endpoint_url"], name, metric["type"], label_key(series.get("labels"))), series


def series_notes(document):
    """Returns what the JSON says of series beyond their statistics, by key without type."""
    urls = [e["url"] for e in document["scrapestat"]["endpoints"]]
    return {(urls[n["endpoint"]], n["metric"], label_key(n.get("labels"))): n for n in document["scrapestat"]["series"]}


def windows(document):
    """Returns (start, end) of the statistics of each endpoint."""
    return {e["url"]: (e["window"]["start_ns"], e["window"]["end_ns"]) for e in document["scrapestat"]["endpoints"]}
