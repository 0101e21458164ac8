"""Record the schema of DBOS for Java.

Usage, from the repository's root, with a JDK of at least 17 and Maven on PATH:
PYTHONPATH=tests python tests/schemas/record/java.py
"""

from __future__ import annotations

import shutil
import tempfile
from functools import partial
from pathlib import Path
from urllib.parse import urlsplit

from recording import record

from harness.program import run

ARTIFACT = "dev.dbos:transact"
VERSIONS = ("1.1.0-m6",)
SOURCES = Path(__file__).parent


def launch(version: str, dsn: str) -> None:
    """Build the launcher against that version in a temporary folder and run it."""
    where = urlsplit(dsn)
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        shutil.copy(SOURCES / "pom.xml", folder)
        shutil.copy(SOURCES / "Launch.java", folder)
        run(
            [
                "mvn",
                "--batch-mode",
                "--quiet",
                f"-Dtransact.version={version}",
                "dependency:copy-dependencies",
                "-DoutputDirectory=jars",
            ],
            cwd=folder,
        )
        run(
            [
                "java",
                "--class-path",
                "jars/*",
                "Launch.java",
                f"jdbc:postgresql://{where.hostname}:{where.port}{where.path}",
                where.username or "",
                where.password or "",
            ],
            cwd=folder,
        )


if __name__ == "__main__":
    for version in VERSIONS:
        record(
            f"java-{version}",
            f"Java, Maven {ARTIFACT} {version}",
            "PYTHONPATH=tests python tests/schemas/record/java.py",
            partial(launch, version),
        )
