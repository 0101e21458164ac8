"""Long-running programs of the cluster, each with a log of its own."""

from __future__ import annotations

import subprocess
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

TAIL_LINES = 25


class ClusterError(AssertionError):
    """A part of the cluster does not do what it must; the text shows the end of the log that tells why."""


class Process:
    """One program. Whatever happens it ends with the sandbox, so that its end needs no care.

    Args:
        command: Program and arguments.
        log: Gets its output.
        environment: Its environment in place of the tests' own.
    """

    def __init__(self, command: Sequence[str | Path], log: Path, environment: Mapping[str, str] | None = None) -> None:
        self.name = log.stem
        self._log = log
        with log.open("ab") as output:
            self._process = subprocess.Popen(
                command, stdin=subprocess.DEVNULL, stdout=output, stderr=output, env=environment
            )

    def check(self) -> None:
        """See that it runs.

        Raises:
            ClusterError: It does not.
        """
        code = self._process.poll()
        if code is not None:
            raise ClusterError(f"{self.name} ended with {code}; its log ends with:\n{self.tail()}")

    def tail(self) -> str:
        """Return the end of its log."""
        return "\n".join(self._log.read_text(errors="replace").splitlines()[-TAIL_LINES:])

    def kill(self) -> None:
        """Kill it and wait."""
        self._process.kill()
        self._process.wait()
