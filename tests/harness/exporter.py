"""The exporter as its users run it: `queue-depth serve` in a process of its own."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

import httpx

from harness.waiting import wait_until

if TYPE_CHECKING:
    from collections.abc import Sequence

COMMAND = Path(sys.executable).with_name("queue-depth")


class ExporterEndedError(AssertionError):
    """The exporter ended before it listened; the message carries its log."""


class Exporter:
    """A context manager: entered it listens, left it is gone, whatever happened in between.

    Args:
        arguments: Flags of `queue-depth serve`.
        environ: Its environment besides PATH.
        listen: Where it listens; port 0 is a free one.
        command: The program to run in place of `queue-depth serve`.
    """

    def __init__(
        self,
        *arguments: str,
        environ: dict[str, str],
        listen: str = "127.0.0.1:0",
        command: Sequence[str | Path] = (COMMAND, "serve"),
    ) -> None:
        self._command = [*command, "--listen", listen, *arguments]
        self._environ = {"PATH": os.environ["PATH"], **environ}
        self._log = Path(tempfile.mkstemp(prefix="queue-depth-", suffix=".log")[1])
        self._process: subprocess.Popen[bytes] | None = None
        self.port = 0

    def __enter__(self) -> Self:
        with self._log.open("wb") as log:
            self._process = subprocess.Popen(self._command, env=self._environ, stdout=log, stderr=log)
        try:
            self.port = wait_until(self._listening_port, message="the exporter listens")
        except BaseException:
            self.__exit__()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        self.process.kill()
        self.process.wait()
        self._log.unlink()

    @property
    def process(self) -> subprocess.Popen[bytes]:
        """The process."""
        assert self._process is not None, "not started"
        return self._process

    @property
    def log(self) -> str:
        """Everything it said so far."""
        return self._log.read_text()

    @property
    def events(self) -> list[dict[str, Any]]:
        """Its log, parsed."""
        return [json.loads(line) for line in self.log.splitlines()]

    @property
    def url(self) -> str:
        """Where it answers, on loopback."""
        return f"http://127.0.0.1:{self.port}"

    def get(self, path: str, **options: Any) -> httpx.Response:  # noqa: ANN401 - httpx's own
        """Ask on a new connection."""
        return httpx.get(self.url + path, **options)

    def wait_until_ready(self, timeout: float = 30) -> None:
        """Wait for the first numbers.

        Raises:
            TimeoutError: There are none; carries the reason that `/readyz` gives, and the log.
        """
        try:
            wait_until(lambda: self.get("/readyz").status_code == httpx.codes.OK, timeout)
        except TimeoutError as error:
            raise TimeoutError(f"not ready: {self.get('/readyz').text}\n{self.log}") from error

    def stop(self, number: signal.Signals = signal.SIGTERM, timeout: float = 10) -> int:
        """Ask it to end, and return its exit code."""
        self.process.send_signal(number)
        return self.process.wait(timeout)

    def _listening_port(self) -> int:
        if self.process.poll() is not None:
            raise ExporterEndedError(f"exit code {self.process.returncode}\n{self.log}")
        found = re.search(r"listens on .*:(\d+),", self.log)
        return int(found[1]) if found else 0
