"""The exporter under show: `queue-depth serve` in a process of its own, asked over HTTP as KEDA asks it."""

import http.client
import json
import signal
import socket
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from queue_depth.demo.application import APPLICATION
from queue_depth.demo.process import Child

_HOST = "127.0.0.1"
_POOL = "workers"
_TIMEOUT_SECONDS = 2


@dataclass(frozen=True, slots=True)
class Depth:
    """The answer's fields that the demo shows and follows, named as on the wire."""

    name: str
    queue_length: int
    in_flight: int
    runnable: int
    busy_workers: int
    floor_replicas: int
    wanted_replicas: int
    stranded: int
    delayed: int
    delayed_due: int
    oldest_enqueued_seconds: int


class Exporter:
    """A running exporter.

    Args:
        database_url: The database it reads.
        port: Loopback port; 0: a free one.
        log: The file that gets its log.
        pause: Waits a moment; called until the exporter is ready. Raises to give up.
    """

    def __init__(self, database_url: str, port: int, log: Path, pause: Callable[[], None]) -> None:
        self._database_url = database_url
        self._port = port or _free_port()
        self._log = log
        self._pause = pause
        self._process: Child | None = None

    @property
    def url(self) -> str:
        """Where it answers."""
        return f"http://{_HOST}:{self._port}"

    def __enter__(self) -> Self:
        settings = {
            "QUEUE_DEPTH_DATABASE_URL": self._database_url,
            "QUEUE_DEPTH_LISTEN": f"{_HOST}:{self._port}",
            "QUEUE_DEPTH_REFRESH_SECONDS": "1",
            "QUEUE_DEPTH_LOG_FORMAT": "text",
            "QUEUE_DEPTH_POOLS": json.dumps({_POOL: {"application": APPLICATION}}),
        }
        self._process = Child([sys.executable, "-m", "queue_depth", "serve"], log=self._log, environment=settings)
        try:
            while self._get("/readyz") is None:
                self._pause()
        except BaseException:
            self._stop()
            raise
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self._stop()

    def pool(self) -> Depth | None:
        """The numbers of the application's workers; None while the exporter does not know."""
        body = self._get(f"/v1/pools/{_POOL}")
        return None if body is None else _depth(json.loads(body))

    def queues(self) -> tuple[Depth, ...]:
        """The numbers of every queue; empty while the exporter does not know."""
        body = self._get("/v1/queues")
        return () if body is None else tuple(_depth(item) for item in json.loads(body)["queues"])

    def _get(self, path: str) -> bytes | None:
        if self._process is not None and self._process.exit_code is not None:
            raise self._process.failure(f"the exporter ended with exit code {self._process.exit_code}")
        connection = http.client.HTTPConnection(_HOST, self._port, timeout=_TIMEOUT_SECONDS)
        try:
            connection.request("GET", path)
            response = connection.getresponse()
            body = response.read()
        except (OSError, http.client.HTTPException):
            return None
        finally:
            connection.close()
        return body if response.status == http.client.OK else None

    def _stop(self) -> None:
        if self._process is not None:
            self._process.end(signal.SIGTERM, patience_seconds=3)


def _depth(fields: dict[str, Any]) -> Depth:
    return Depth(**{name: fields[name] for name in Depth.__dataclass_fields__})


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind((_HOST, 0))
        port: int = probe.getsockname()[1]
        return port
