"""Recording a run around a block of Python."""

from __future__ import annotations

import atexit
import contextlib
import json
import os
import subprocess
import time
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import Any

from ._errors import ScrapestatError
from ._find import _checked, binary, call, failure
from ._run import Run

_READY = 30.0  # seconds that targets have to answer
_END = 30.0  # seconds that the collector has to write its files, beside --settle


class Collector:
    """A recording. Entering waits until every target was scraped once; leaving ends the run and keeps it."""

    def __init__(self, targets: Sequence[str], out: str | os.PathLike[str] | None, flags: Sequence[str]) -> None:
        self._targets, self._flags = list(targets), list(flags)
        self.path = Path(out) if out is not None else Path("runs") / time.strftime("%Y%m%dT%H%M%SZ", time.gmtime())
        self._child: subprocess.Popen[bytes] | None = None
        self._talk: Any = None
        self._pid = os.getpid()
        self._run: Run | None = None

    @property
    def run(self) -> Run:
        """The recorded run, also while it is recorded."""
        if self._run is None:
            self._run = Run(str(self.path))
        return self._run

    def __enter__(self) -> Collector:
        import tempfile  # takes as long to load as all else

        folder = tempfile.mkdtemp(prefix="scrapestat-")
        ready = os.path.join(folder, "ready.json")
        argv = [_checked(binary()), "collect", "--live=off", "--require-targets=any", f"--ready-file={ready}",
                f"--out={self.path}", *self._flags, *self._targets]
        self._talk = tempfile.TemporaryFile()  # closed with the run
        self._child = subprocess.Popen(argv, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=self._talk)
        atexit.register(self._kill)
        try:
            self._await(argv, ready)
        except BaseException:
            self._kill()
            raise
        finally:
            with contextlib.suppress(OSError):
                os.remove(ready)
            with contextlib.suppress(OSError):
                os.rmdir(folder)
        return self

    def _await(self, argv: Sequence[str], ready: str) -> None:
        assert self._child is not None
        until = time.monotonic() + _READY
        while not os.path.exists(ready):
            code = self._child.poll()
            if code is not None:
                raise failure(argv, code, self._said())
            if time.monotonic() > until:
                raise ScrapestatError(f"no target answered within {_READY:g} s: {self._said()[-500:]}", argv)
            time.sleep(0.02)

    def _said(self) -> str:
        self._talk.seek(0)
        return str(self._talk.read().decode("utf-8", "replace"))

    def mark(self, name: str) -> None:
        """Begins a phase."""
        call(["mark", "--", str(self.path), name])

    @contextlib.contextmanager
    def phase(self, name: str) -> Iterator[None]:
        """A phase for the time of a block; what follows it is the phase after-NAME."""
        self.mark(name)
        try:
            yield
        finally:
            self.mark(f"after-{name}")

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None,
                 trace: TracebackType | None) -> None:
        if self._child is None or os.getpid() != self._pid:
            return
        try:
            self._end()
        except Exception:
            if error is None:
                raise
        finally:
            self._kill()

    def _end(self) -> None:
        assert self._child is not None
        if self._child.poll() is None:
            self.mark("end")
        try:
            code = self._child.wait(_END)
        except subprocess.TimeoutExpired:
            text = f"the collector did not end within {_END:g} s; what it recorded is in {self.path}"
            raise ScrapestatError(text) from None
        if code:
            raise failure(["scrapestat", "collect"], code, self._said())

    def _kill(self) -> None:
        if self._child is not None and os.getpid() == self._pid:
            if self._child.poll() is None:
                self._child.terminate()
                with contextlib.suppress(subprocess.TimeoutExpired):
                    self._child.wait(5)
                if self._child.poll() is None:
                    self._child.kill()
                    self._child.wait()
            self._child = None
            self._talk.close()
            atexit.unregister(self._kill)

    async def __aenter__(self) -> Collector:
        import asyncio

        return await asyncio.to_thread(self.__enter__)

    async def __aexit__(self, kind: type[BaseException] | None, error: BaseException | None,
                        trace: TracebackType | None) -> None:
        import asyncio

        await asyncio.to_thread(self.__exit__, kind, error, trace)


def collect(*targets: str, warmup: str | None = None, out: str | os.PathLike[str] | None = None,
            interval: str | None = None, tags: Mapping[str, object] | None = None,
            flags: Sequence[str] = ()) -> Collector:
    """A recording of targets; use it in a with statement. flags are those of `scrapestat collect`."""
    argv = [f"--{name}={value}" for name, value in (("warmup", warmup), ("interval", interval)) if value is not None]
    argv += [f"--tag={key}={value}" for key, value in (tags or {}).items()]
    return Collector(targets, out, [*argv, *flags])
