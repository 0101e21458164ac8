"""The image of the benchmark's worker: a DBOS process whose `job` takes as long as its argument says.

Told to go it ends at once, as a program without a handler does outside of a container, unless DRAIN_SECONDS says
otherwise.
"""

from __future__ import annotations

import os
import signal
import threading
import time

DRAIN_SECONDS = int(os.environ.get("DRAIN_SECONDS", "0"))
TERMINATED = 128 + signal.SIGTERM

LAUNCHED = "launched at "

leaving = threading.Event()


def _leave(*_: object) -> None:
    if DRAIN_SECONDS == 0:
        os._exit(TERMINATED)
    leaving.set()


def main() -> None:
    """Serve the queue until SIGTERM."""
    signal.signal(signal.SIGTERM, _leave)

    from dbos import DBOS  # noqa: PLC0415 - only now: process 1 of a container ignores signals without a handler

    @DBOS.step(name="work")
    def work(seconds: float) -> None:
        time.sleep(seconds)

    @DBOS.workflow(name="job")
    def job(seconds: float) -> None:
        work(seconds)

    DBOS(
        config={
            "name": "shop",
            "system_database_url": os.environ["DBOS_SYSTEM_DATABASE_URL"].replace(
                "postgresql://", "postgresql+psycopg://", 1
            ),
            "run_migrations": False,
            "sys_db_pool_size": 2,
        }
    )
    DBOS.launch()
    print(f"{LAUNCHED}{time.time()}", flush=True)
    leaving.wait()
    DBOS.destroy(workflow_completion_timeout_sec=DRAIN_SECONDS)


if __name__ == "__main__":
    main()
