"""The HTTP servers that are measured, as the programs that operators run."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import tempfile
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import httpx
import uv
import yaml

from harness.cache import cached
from harness.ports import HOST, claim_port
from harness.program import run
from harness.waiting import wait_until

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from harness.ports import ClaimedPort

QUERY_EXPORTER = "5.0.2"
"""The newest that Python 3.11 runs."""


class Server:
    """A running server.

    Args:
        process: Its process.
        url: Where it listens.
    """

    def __init__(self, process: subprocess.Popen[bytes], url: str) -> None:
        self._process = process
        self.url = url

    def memory(self, field: str = "VmRSS") -> float:
        """A field of /proc/PID/status, such as VmRSS or VmHWM, in MB of 10^6 bytes."""
        status = Path(f"/proc/{self._process.pid}/status").read_text(encoding="ascii")
        found = re.search(rf"^{field}:\s+(\d+) kB$", status, re.MULTILINE)
        assert found is not None
        return int(found[1]) * 1024 / 1e6


@contextmanager
def queue_depth(dsn: str, *, core: int | None = None, refresh_seconds: float = 5) -> Iterator[Server]:
    """Run `queue-depth serve`, and wait until it has served data.

    Args:
        dsn: The database, as a role that may read it.
        core: The core it is kept to.
        refresh_seconds: From one refresh to the next.
    """
    port = claim_port()
    settings = {
        "QUEUE_DEPTH_DATABASE_URL": dsn,
        "QUEUE_DEPTH_LISTEN": f"{HOST}:{port.number}",
        "QUEUE_DEPTH_REFRESH_SECONDS": str(refresh_seconds),
        "QUEUE_DEPTH_MAX_AGE_SECONDS": "60",
        "QUEUE_DEPTH_LOG_LEVEL": "warning",
    }
    command: list[str | Path] = [Path(sys.executable).with_name("queue-depth"), "serve"]
    with _running(command, port, settings, core) as server:
        wait_until(lambda: _get(f"{server.url}/readyz") is not None, 30, "queue-depth serves data")
        yield server


@contextmanager
def query_exporter(dsn: str, statement: str, *, core: int | None = None) -> Iterator[Server]:
    """Run query-exporter with one query every 5 s, whose results it keeps and serves, and wait until it has some.

    Args:
        dsn: The database.
        statement: Selects the labels `queue_name` and `status`, and `count`.
        core: The core it is kept to.
    """
    port = claim_port()
    metric = "dbos_queue_workflows"
    config = {
        "databases": {"dbos": {"dsn": dsn.replace("postgresql://", "postgresql+psycopg://", 1)}},
        "metrics": {metric: {"type": "gauge", "description": "Workflows.", "labels": ["queue_name", "status"]}},
        "queries": {
            "depth": {
                "interval": 5,
                "databases": ["dbos"],
                "metrics": [metric],
                "sql": statement.replace("count(*)", f"count(*) AS {metric}"),
            }
        },
    }
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "config.yaml"
        path.write_text(yaml.safe_dump(config), encoding="utf-8")
        command: list[str | Path] = [
            _query_exporter_venv() / "bin/query-exporter",
            *("--host", HOST, "--port", str(port.number), "--log-level", "error", "--config", str(path)),
        ]
        with _running(command, port, {}, core) as server:
            series = f"{metric}{{".encode()
            wait_until(lambda: series in (_get(f"{server.url}/metrics") or b""), 30, "query-exporter has results")
            yield server


@contextmanager
def _running(
    command: Sequence[str | Path], port: ClaimedPort, settings: Mapping[str, str], core: int | None
) -> Iterator[Server]:
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("QUEUE_DEPTH_", "PG", "QE_"))}
    process = subprocess.Popen(command, env={**kept, **settings}, stdin=subprocess.DEVNULL)
    try:
        if core is not None:
            # Threads that it starts from now on inherit it, and an interpreter that has just begun has none.
            os.sched_setaffinity(process.pid, {core})
        yield Server(process, f"http://{HOST}:{port.number}")
    finally:
        process.terminate()
        try:
            process.wait(15)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
        port.release()


def _get(url: str) -> bytes | None:
    """The body of a good answer; None for any other, and for none."""
    try:
        answer = httpx.get(url)
    except httpx.TransportError:
        return None
    return answer.content if answer.is_success else None


def _query_exporter_venv() -> Path:
    python = ".".join(map(str, sys.version_info[:2]))
    return cached(f"query-exporter-{QUERY_EXPORTER}-python-{python}", _make_venv) / "venv"


def _make_venv(folder: Path) -> None:
    program = uv.find_uv_bin()
    venv = folder / "venv"
    run([program, "venv", "--quiet", "--python", sys.executable, venv])
    packages = [f"query-exporter=={QUERY_EXPORTER}", "psycopg[binary]"]
    run([program, "pip", "install", "--quiet", "--python", venv / "bin/python", *packages])
