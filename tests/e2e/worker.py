"""The image of a DBOS worker: drains on SIGTERM, as the example chart asks for.

A `job` runs until the test finishes it by a message, so that a test decides how long work takes.
"""

from __future__ import annotations

import os
import signal
import threading

from dbos import DBOS

APPLICATION = "shop"

A_WHOLE_TEST_SECONDS = 3600


@DBOS.workflow(name="job")
def job() -> str:
    """Run until told to finish, and return where."""
    DBOS.recv(timeout_seconds=A_WHOLE_TEST_SECONDS)
    return os.environ["DBOS__VMID"]


def main() -> None:
    """Serve the queues until SIGTERM, then finish what runs."""
    stop = threading.Event()
    signal.signal(signal.SIGTERM, lambda *_: stop.set())
    DBOS(
        config={
            "name": APPLICATION,
            "system_database_url": os.environ["DBOS_SYSTEM_DATABASE_URL"].replace(
                "postgresql://", "postgresql+psycopg://", 1
            ),
            "run_migrations": False,
            "sys_db_pool_size": 4,
        }
    )
    if queues := os.environ.get("QUEUES"):
        DBOS.listen_queues(queues.split())
    DBOS.launch()
    stop.wait()
    DBOS.destroy(workflow_completion_timeout_sec=int(os.environ["DRAIN_SECONDS"]))


if __name__ == "__main__":
    main()
