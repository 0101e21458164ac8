"""The worker processes, in the place of a Deployment and its pods."""

import itertools
import signal
import sys
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from types import TracebackType
from typing import Self

from queue_depth.demo.application import READY
from queue_depth.demo.process import Child


@dataclass(slots=True)
class Worker:
    """A worker process.

    Attributes:
        name: Its executor id.
        process: It.
        running: Workflows that it holds, by DBOS's table.
        ready: It has launched DBOS and polls the queues.
        leaving: It was told to end and finishes what it runs.
    """

    name: str
    process: Child = field(repr=False)
    running: int = 0
    ready: bool = False
    leaving: bool = False


class Fleet:
    """Starts and stops workers. Names are never used again, like pods' names.

    Args:
        database_url: The application's database.
        folder: Gets a log for each worker.
    """

    def __init__(self, database_url: str, folder: Path) -> None:
        self._database_url = database_url
        self._folder = folder
        self._names = (f"worker-{number}" for number in itertools.count())
        self.workers: list[Worker] = []

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        for worker in self.workers:
            worker.process.end(signal.SIGKILL, patience_seconds=5)

    def observe(self, running: Mapping[str, int]) -> None:
        """Note who runs how much, and forget those that have left.

        Raises:
            DemoError: A worker ended without being told to.
        """
        for worker in list(self.workers):
            worker.running = running.get(worker.name, 0)
            worker.ready = worker.ready or worker.process.has_said(READY)
            code = worker.process.exit_code
            if code is None:
                continue
            if not worker.leaving or code != 0:
                raise worker.process.failure(f"{worker.name} ended with exit code {code}")
            self.workers.remove(worker)

    def scale(self, replicas: int) -> None:
        """Start workers, or tell some to leave.

        Idle ones leave first. A real HPA picks blindly, and only pod deletion cost tells it which are busy.
        """
        staying = sorted((worker for worker in self.workers if not worker.leaving), key=lambda one: one.running)
        for worker in staying[: max(0, len(staying) - replicas)]:
            worker.leaving = True
            worker.process.close_input()
        for _ in range(replicas - len(staying)):
            self._start(next(self._names))

    def _start(self, name: str) -> None:
        process = Child(
            [sys.executable, "-m", "queue_depth.demo.worker", self._database_url],
            log=self._folder / f"{name}.log",
            environment={"DBOS__VMID": name},
        )
        self.workers.append(Worker(name, process))
