"""Launch DBOS of any supported version once, so that it makes its system tables.

Runs inside the throw-away environment of that version: standard library and dbos only.

Usage: python launch_dbos.py DSN [--schema NAME] [--queue NAME]
"""

from __future__ import annotations

import argparse
from typing import Any

from dbos import DBOS, DBOSConfig, Queue

APPLICATION = "harness"
EXECUTOR = "harness-executor"
VERSION = "harness-version"
CONCURRENCY = 6
WORKER_CONCURRENCY = 2


def main() -> None:
    """Launch, which migrates the database, and shut down again."""
    arguments = argparse.ArgumentParser(description=__doc__)
    arguments.add_argument("dsn", help="URI of the database that gets the system tables")
    arguments.add_argument("--schema", help="name of the schema, where the version lets one choose (2.0 on)")
    arguments.add_argument("--queue", help="a queue to register, or declare in code where there is no table")
    given = arguments.parse_args()

    known = DBOSConfig.__annotations__
    has_queues_table = hasattr(DBOS, "register_queue")
    if given.queue and not has_queues_table:
        Queue(given.queue, concurrency=CONCURRENCY, worker_concurrency=WORKER_CONCURRENCY)
    DBOS(config=configuration(known, given.dsn, given.schema))
    DBOS.launch()
    if given.queue and has_queues_table:
        DBOS.register_queue(given.queue, concurrency=CONCURRENCY, worker_concurrency=WORKER_CONCURRENCY)
    DBOS.destroy()


def configuration(known: dict[str, Any], dsn: str, schema: str | None) -> Any:  # noqa: ANN401 - differs by version
    """Return the configuration in the words of this version of DBOS.

    `system_database_url` came with 1.10; before it the system database had a name beside the application's
    URL, and the two may be one database. `dbos_system_schema` came with 2.0.
    """
    url = dsn.replace("postgresql://", "postgresql+psycopg://", 1)
    config: dict[str, Any] = {
        "name": APPLICATION,
        "executor_id": EXECUTOR,
        "application_version": VERSION,
        "run_admin_server": False,
        "log_level": "WARNING",
        "system_database_url": url,
    }
    if "application_database_url" not in known:
        config["database_url"] = url
        config["sys_db_name"] = url.rsplit("/", 1)[1].split("?", 1)[0]
    if schema is not None:
        if "dbos_system_schema" not in known:
            raise SystemExit("this version of DBOS always uses the schema 'dbos'")
        config["dbos_system_schema"] = schema
    return {name: value for name, value in config.items() if name in known}


if __name__ == "__main__":
    main()
