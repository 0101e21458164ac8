"""Ends a server when the test process that started it is gone, however it went."""

from __future__ import annotations

import subprocess
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pathlib import Path

# Its standard input is a pipe that only the test process holds: it ends when that process does.
SCRIPT = 'read _; kill -QUIT "$(head -n 1 "$1")" 2>/dev/null; rm -rf "$0"'


@dataclass(slots=True)
class Watchdog:
    """Watches over one server from its making; a killed pytest runs no `finally` and no `atexit`.

    Attributes:
        folder: Deleted in the end.
        pid_file: File in whose first line the server, while it runs, keeps its process id.
    """

    folder: Path
    pid_file: Path
    _shell: subprocess.Popen[bytes] = field(init=False)

    def __post_init__(self) -> None:
        self._shell = subprocess.Popen(
            ["sh", "-c", SCRIPT, self.folder, self.pid_file],
            stdin=subprocess.PIPE,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
        )

    def finish(self) -> None:
        """End the server, if its pid file is still there, and delete the folder."""
        assert self._shell.stdin is not None
        self._shell.stdin.close()
        self._shell.wait()
