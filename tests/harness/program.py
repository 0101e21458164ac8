"""Running a program and showing what it said when it fails."""

from __future__ import annotations

import subprocess
from typing import TYPE_CHECKING, TypedDict

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path


class ProgramFailedError(AssertionError):
    """A program that the tests need ended badly; the message carries its output."""


class RunAs(TypedDict, total=False):
    """The user a child process runs as, in `subprocess`'s own words."""

    user: int
    group: int
    extra_groups: list[int]


def run(
    command: Sequence[str | Path],
    *,
    cwd: Path | None = None,
    env: Mapping[str, str] | None = None,
    timeout: float = 300,
    run_as: RunAs | None = None,
) -> str:
    """Run a program to its end and return its standard output.

    Raises:
        ProgramFailedError: It exited with another code than 0.
    """
    done = subprocess.run(
        command,
        cwd=cwd,
        env=env,
        timeout=timeout,
        capture_output=True,
        text=True,
        check=False,
        **(run_as or {}),
    )
    if done.returncode != 0:
        words = " ".join(str(word) for word in command)
        raise ProgramFailedError(f"{words} exited with {done.returncode}\n{done.stdout}\n{done.stderr}")
    return done.stdout
