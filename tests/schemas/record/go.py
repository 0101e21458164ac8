"""Record the schemas of DBOS for Go.

Usage, from the repository's root, with Go on PATH: PYTHONPATH=tests python tests/schemas/record/go.py
"""

from __future__ import annotations

import shutil
import tempfile
from functools import partial
from pathlib import Path

from recording import record

from harness.program import run

MODULE = "github.com/dbos-inc/dbos-transact-golang"
VERSIONS = ("1.3.0", "1.8.0")
SCRIPT = Path(__file__).with_name("launch.go")


def launch(version: str, dsn: str) -> None:
    """Build the launcher against that version in a temporary folder and run it."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        shutil.copy(SCRIPT, folder / "main.go")
        run(["go", "mod", "init", "launch"], cwd=folder)
        run(["go", "get", f"{MODULE}/dbos@v{version}"], cwd=folder)
        run(["go", "mod", "tidy"], cwd=folder)
        run(["go", "run", ".", dsn], cwd=folder)


if __name__ == "__main__":
    for version in VERSIONS:
        record(
            f"go-{version}",
            f"Go, module {MODULE} v{version}",
            "PYTHONPATH=tests python tests/schemas/record/go.py",
            partial(launch, version),
        )
