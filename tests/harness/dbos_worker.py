"""A real DBOS worker whose workflows, once started, run for ever, so that what was started can be counted.

Usage: python dbos_worker.py DSN --application NAME --version VERSION --executor ID [--listen QUEUE ...]
"""

from __future__ import annotations

import argparse
import threading

from dbos import DBOS

WORKFLOW = "hold"


@DBOS.workflow(name=WORKFLOW)
def hold() -> None:
    """Run until the process is killed; the row stays PENDING."""
    threading.Event().wait()


def main() -> None:
    """Serve queues until killed."""
    arguments = argparse.ArgumentParser(description=__doc__)
    arguments.add_argument("dsn", help="URI of the database with DBOS's tables")
    arguments.add_argument("--application", required=True)
    arguments.add_argument("--version", required=True)
    arguments.add_argument("--executor", required=True)
    arguments.add_argument("--listen", action="append", help="a queue to serve; all of the application by default")
    given = arguments.parse_args()
    DBOS(
        config={
            "name": given.application,
            "system_database_url": given.dsn.replace("postgresql://", "postgresql+psycopg://", 1),
            "application_version": given.version,
            "executor_id": given.executor,
            # One thread polls each queue; with less than that many connections they take turns.
            "sys_db_pool_size": 4,
            "log_level": "ERROR",
        }
    )
    if given.listen:
        DBOS.listen_queues(given.listen)
    DBOS.launch()
    threading.Event().wait()


if __name__ == "__main__":
    main()
