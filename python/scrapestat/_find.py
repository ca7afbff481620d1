"""Where the program is, and how it is called."""

from __future__ import annotations

import functools
import os
import subprocess
import sysconfig
from collections.abc import Iterator, Sequence
from pathlib import Path

from ._errors import BinaryNotFound, NoData, ScrapestatError, UsageError, VersionMismatch
from ._version import __version__

_NAME = "scrapestat.exe" if os.name == "nt" else "scrapestat"


def _places() -> Iterator[Path]:
    yield Path(sysconfig.get_path("scripts")) / _NAME
    scheme = sysconfig.get_preferred_scheme("user")
    yield Path(sysconfig.get_path("scripts", scheme=scheme)) / _NAME
    beside = Path(__file__).resolve().parent.parent  # pip install --target
    yield beside / ("Scripts" if os.name == "nt" else "bin") / _NAME


def binary() -> str:
    """The path of the program: SCRAPESTAT_BIN, that of this installation, or the one on PATH."""
    given = os.environ.get("SCRAPESTAT_BIN")
    if given:
        return given
    places = list(_places())
    for place in places:
        if place.is_file():
            return str(place)
    import shutil  # takes as long to load as all else

    found = shutil.which(_NAME)
    if found:
        return found
    raise BinaryNotFound("the program scrapestat is not installed; looked at SCRAPESTAT_BIN, " +
                         ", ".join(map(str, places)) + " and PATH")


@functools.lru_cache(maxsize=8)
def _checked(program: str) -> str:
    if not __version__.startswith("0+"):
        out = subprocess.run([program, "version"], capture_output=True, text=True, check=False).stdout
        words = out.split()
        theirs = words[1] if len(words) > 1 else "?"
        if _pep440(theirs) != __version__:
            raise VersionMismatch(f"{program} is version {theirs}, the package {Path(__file__).parent} is {__version__}")
    return program


def _pep440(version: str) -> str:
    base, _, pre = version.removeprefix("v").partition("-")
    return base + pre.replace("rc.", "rc").replace("beta.", "b").replace("alpha.", "a")


def failure(argv: Sequence[str], code: int, stderr: str) -> ScrapestatError:
    """The error of a command that ended with a code."""
    lines = [line for line in stderr.strip().splitlines() if not line.startswith("Try: ")]
    message = (lines[-1] if lines else f"exit code {code}").removeprefix("scrapestat: ")
    kind = {2: UsageError, 4: NoData}.get(code, ScrapestatError)
    return kind(message, argv, code, stderr)


def call(args: Sequence[str], accept: Sequence[int] = (0,)) -> tuple[bytes, int]:
    """What the program writes to stdout, and its exit code, which is one of accept."""
    argv = [_checked(binary()), *args]
    with subprocess.Popen(argv, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as child:
        try:
            out, talk = child.communicate()
        except BaseException:
            child.kill()
            raise
    stderr = talk.decode("utf-8", "replace")
    if child.returncode not in accept:
        raise failure(argv, child.returncode, stderr)
    return out, child.returncode
