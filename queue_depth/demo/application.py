"""The DBOS application: a shop with a queue for each kind of limit."""

import random
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from dbos import DBOS, DBOSClient, DBOSConfig

APPLICATION = "shop"
VERSION = "v1"

READY = "takes work"
"""What a worker logs once it polls the queues."""


@dataclass(frozen=True, slots=True)
class Job:
    """A queue and the workflow that runs on it.

    Attributes:
        queue: The queue's name.
        workflow: The workflow's registered name.
        seconds: The least and the most that a workflow takes.
        limits: Arguments of `register_queue`.
    """

    queue: str
    workflow: str
    seconds: tuple[float, float]
    limits: dict[str, Any] = field(default_factory=dict)


EMAILS = Job("emails", "send_email", (1.5, 3.5), {"worker_concurrency": 4})
REPORTS = Job("reports", "write_report", (2.5, 4.5), {"global_concurrency": 3, "worker_concurrency": 1})
EXPORTS = Job("exports", "export_customer", (1.0, 2.0), {"partition_concurrency": 1, "worker_concurrency": 2})
WEBHOOKS = Job(
    "webhooks", "call_webhook", (0.3, 0.8), {"limiter": {"limit": 4, "period": 3.0}, "worker_concurrency": 4}
)

JOBS = (EMAILS, REPORTS, EXPORTS, WEBHOOKS)

MISSPELT = "reprots"
"""A queue that nobody registered: what is enqueued there waits for ever, and is told as stranded."""


def register_queues(client: DBOSClient) -> None:
    """Write the queues and their limits into DBOS's `queues` table."""
    for job in JOBS:
        client.register_queue(job.queue, application_name=APPLICATION, **job.limits)


def register_workflows() -> None:
    """Tell DBOS what this process can run; before `DBOS.launch`."""
    for job in JOBS:
        DBOS.workflow(name=job.workflow)(_workflow(job))


def configuration(database_url: str) -> DBOSConfig:
    """How a worker launches. Its executor id is the environment's `DBOS__VMID`, as it would be in a pod."""
    return {
        "name": APPLICATION,
        "application_version": VERSION,
        "system_database_url": database_url,
        "run_migrations": False,
        "sys_db_pool_size": 5,
        "log_level": "WARNING",
    }


def _workflow(job: Job) -> Callable[[int], None]:
    def work(number: int) -> None:
        seconds = random.Random(number).uniform(*job.seconds)  # noqa: S311 - not a secret
        for step in ("prepare", "deliver"):
            DBOS.run_step({"name": step}, time.sleep, seconds / 2)

    return work
