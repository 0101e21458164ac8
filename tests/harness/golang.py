"""The Go toolchain, which builds what has no wheel and fetches what is only a module."""

from __future__ import annotations

import os
import shutil
from typing import TYPE_CHECKING

from harness.program import ProgramFailedError, run

if TYPE_CHECKING:
    from pathlib import Path

# Cold, a Kubernetes takes many minutes on two cores.
LONGEST_SECONDS = 3600


def go(*words: str | Path, cwd: Path, **environment: str) -> str:
    """Run `go` in a folder, and return what it printed.

    Args:
        words: Its arguments.
        cwd: The folder: a module's, or an empty one.
        environment: Variables besides, such as GOBIN.

    Raises:
        ProgramFailedError: There is no Go, or it failed; carries what it said.
    """
    if shutil.which("go") is None:
        raise ProgramFailedError(
            "the control plane and Helm are built from source: put Go (https://go.dev/dl) on the PATH"
        )
    # GOFLAGS is the user's; GOWORK would have go look at a workspace above the folder.
    variables = {**os.environ, "CGO_ENABLED": "0", "GOFLAGS": "", "GOWORK": "off", **environment}
    return run(["go", *words], cwd=cwd, env=variables, timeout=LONGEST_SECONDS)
