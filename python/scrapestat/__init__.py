"""Numbers of scrapestat's runs as data frames. The program computes them; this package calls it.

    import scrapestat as ss
    ss.load("run1").quantiles("ttft", [.5, .99], every="10s")
"""

from ._collect import Collector, collect
from ._compare import Comparison, compare
from ._errors import (
    BinaryNotFound,
    CheckFailed,
    NoData,
    NotARun,
    ScrapestatError,
    UsageError,
    VersionMismatch,
)
from ._find import binary
from ._frames import Backend, Frame
from ._run import Estimator, Run, Runs, load
from ._version import __version__

__all__ = [
    "Backend",
    "BinaryNotFound",
    "CheckFailed",
    "Collector",
    "Comparison",
    "Estimator",
    "Frame",
    "NoData",
    "NotARun",
    "Run",
    "Runs",
    "ScrapestatError",
    "UsageError",
    "VersionMismatch",
    "__version__",
    "binary",
    "collect",
    "compare",
    "load",
]
