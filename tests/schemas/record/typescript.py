"""Record the schemas of DBOS for TypeScript.

Usage, from the repository's root: PYTHONPATH=tests python tests/schemas/record/typescript.py
"""

from __future__ import annotations

import shutil
import tempfile
from functools import partial
from pathlib import Path

from recording import record

from harness.npm import node_bin, npm
from harness.program import run

PACKAGE = "@dbos-inc/dbos-sdk"
VERSIONS = ("2.10.24", "4.16.7", "5.3.0")
SCRIPT = Path(__file__).with_name("launch.mjs")


def launch(version: str, dsn: str) -> None:
    """Install that version into a temporary folder and launch it."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        npm("init", "--yes", cwd=folder)
        npm("install", "--silent", "--no-audit", "--no-fund", f"{PACKAGE}@{version}", cwd=folder)
        shutil.copy(SCRIPT, folder)
        run([node_bin() / "node", SCRIPT.name, dsn], cwd=folder)


if __name__ == "__main__":
    for version in VERSIONS:
        record(
            f"typescript-{version}",
            f"TypeScript, npm {PACKAGE} {version}",
            "PYTHONPATH=tests python tests/schemas/record/typescript.py",
            partial(launch, version),
        )
