"""A child process of the demo, with its output in a file."""

import os
import signal
import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TypedDict

# What the user's shell says to the exporter, to libpq and to DBOS must not reach the demo's.
_SCRUBBED = ("QUEUE_DEPTH_", "PG", "DBOS_")

_LOG_LINES = 15


class DemoError(Exception):
    """The demo cannot go on; the text says what happened and shows the end of the log that tells why."""


class RunAs(TypedDict, total=False):
    """The user a child runs as, in `subprocess`'s own words."""

    user: int
    group: int
    extra_groups: list[int]


class Child:
    """A process that runs until it is ended.

    It is in a process group of its own: Ctrl-C in a terminal reaches the demo alone, which ends its children in
    order. Its standard input is a pipe that closes with the demo, however that ends.

    Args:
        command: Program and arguments.
        log: The file that gets its output; its folder is the working directory.
        environment: Variables over the user's own.
        run_as: Another user, when this one is root and the program refuses that.
    """

    def __init__(
        self,
        command: Sequence[str | Path],
        *,
        log: Path,
        environment: Mapping[str, str] | None = None,
        run_as: RunAs | None = None,
    ) -> None:
        self._log = log
        with log.open("ab") as output:
            self._process = subprocess.Popen(  # noqa: S603 - our own commands
                command,
                stdin=subprocess.PIPE,
                stdout=output,
                stderr=output,
                cwd=log.parent,
                env=_clean_environment() | dict(environment or {}),
                process_group=0,
                **(run_as or {}),
            )

    @property
    def exit_code(self) -> int | None:
        """None while it runs."""
        return self._process.poll()

    def has_said(self, text: str) -> bool:
        """Whether its log holds this text."""
        return text in self._log.read_text(encoding="utf-8", errors="replace")

    def close_input(self) -> None:
        """Close its standard input, which a worker takes as the request to finish and end."""
        if self._process.stdin is not None:
            self._process.stdin.close()

    def end(self, number: signal.Signals, patience_seconds: float) -> None:
        """Send a signal, wait, and kill what has not ended by then."""
        self.close_input()
        self._process.send_signal(number)
        try:
            self._process.wait(patience_seconds)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()

    def failure(self, what: str) -> DemoError:
        """An error with the end of the log."""
        return failure(what, self._log)


def failure(what: str, log: Path) -> DemoError:
    """An error with the end of a log."""
    lines = log.read_text(encoding="utf-8", errors="replace").splitlines() if log.exists() else []
    return DemoError("\n  ".join([f"{what}; {log.name} ends with:", *lines[-_LOG_LINES:]]))


def _clean_environment() -> dict[str, str]:
    """The user's environment without what would configure a part of the demo."""
    return {name: value for name, value in os.environ.items() if not name.startswith(_SCRUBBED)}
