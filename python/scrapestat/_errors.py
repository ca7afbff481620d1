"""Errors; those of a command have what it was called with and what it said."""

from __future__ import annotations

from collections.abc import Sequence


class ScrapestatError(RuntimeError):
    """The program could not do it. The message is the last line that it wrote to stderr."""

    def __init__(self, message: str, argv: Sequence[str] = (), returncode: int | None = None, stderr: str = "") -> None:
        super().__init__(message)
        self.argv = list(argv)
        self.returncode = returncode
        self.stderr = stderr


class UsageError(ScrapestatError):
    """A flag, selector, phase or label that cannot be meant (exit code 2)."""


class NoData(ScrapestatError):
    """Nothing in the runs has such a name, or data is missing (exit code 4)."""


class NotARun(ValueError):
    """A path that holds no recording."""


class BinaryNotFound(RuntimeError):
    """The program is nowhere; the message lists where it was looked for."""


class VersionMismatch(RuntimeError):
    """Package and program are of different releases."""


class CheckFailed(AssertionError):
    """A limit is not kept, or could not be judged; the message is the verdict."""

    def __init__(self, message: str, returncode: int) -> None:
        super().__init__(message)
        self.returncode = returncode
