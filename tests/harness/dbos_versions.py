"""Real DBOS schemas, made by launching the real DBOS of each version."""

from __future__ import annotations

import importlib.metadata
import os
import sys
from functools import partial
from pathlib import Path
from urllib.parse import urlsplit, urlunsplit

import uv

from harness.cache import cached
from harness.program import run

VERSIONS = (
    "1.3.0",
    "1.10.0",
    "2.2.0",
    "2.14.0",
    "2.16.0",
    "2.20.0",
    "2.27.0",
    "2.29.0",
    "2.30.0",
    "2.31.1",
    "3.0.0",
    "3.4.0",
)
"""DBOS for Python: the oldest supported, each version that brought a column the exporter uses, the newest."""

LAUNCHER = Path(__file__).with_name("launch_dbos.py")


def dbos_python(version: str) -> Path:
    """Return a Python interpreter that has this version of dbos, in a cached environment of its own."""
    if version == importlib.metadata.version("dbos"):
        return Path(sys.executable)
    return dbos_venv(version) / "bin/python"


def dbos_venv(version: str) -> Path:
    """Return a cached throw-away virtual environment with this version of dbos, made on first use."""
    python = ".".join(map(str, sys.version_info[:2]))
    return cached(f"dbos-{version}-python-{python}", partial(_make_venv, version)) / "venv"


def launch_schema(version: str, dsn: str, *, schema: str | None = None, queue: str | None = None) -> None:
    """Launch DBOS of a version once on a database, which makes or migrates its tables, and shut it down.

    Args:
        version: One of `VERSIONS`, or any other that the package index has.
        dsn: The database, as a URI.
        schema: Schema name where it is not `dbos` (DBOS 2.0 and newer).
        queue: A queue to register; before 2.20, without a table for it, it is only declared in code.
    """
    command: list[str | Path] = [dbos_python(version), LAUNCHER, _with_password(dsn)]
    command += ["--schema", schema] if schema else []
    command += ["--queue", queue] if queue else []
    run(command, timeout=120, env=_environment())


def _make_venv(version: str, folder: Path) -> None:
    program = uv.find_uv_bin()
    venv = folder / "venv"
    run([program, "venv", "--quiet", "--python", sys.executable, venv])
    run([program, "pip", "install", "--quiet", "--python", venv / "bin/python", f"dbos=={version}"])


def _with_password(dsn: str) -> str:
    """Return the URI with some password: DBOS 1.3 refuses to start without one, needed or not."""
    parts = urlsplit(dsn)
    if parts.password is not None:
        return dsn
    who, at, where = parts.netloc.rpartition("@")
    return urlunsplit(parts._replace(netloc=f"{who}:unused{at}{where}"))


def _environment() -> dict[str, str]:
    """Return this process' environment without what would change how another Python or DBOS starts."""
    return {
        name: value
        for name, value in os.environ.items()
        if not name.startswith(("DBOS_", "PG", "PYTHON", "VIRTUAL_ENV", "COV_"))
    }
