"""One worker process: `python -m queue_depth.demo.worker DATABASE_URL`, named by `DBOS__VMID`.

When its standard input closes it takes nothing new, finishes what it runs, and ends: a drain. A process that was
killed instead would leave its workflows PENDING until something recovers them.
"""

import sys

from dbos import DBOS

from queue_depth.demo.application import READY, configuration, register_workflows

_DRAIN_SECONDS = 30


def main() -> None:
    """Run workflows until standard input closes."""
    (database_url,) = sys.argv[1:]
    DBOS(config=configuration(database_url))
    register_workflows()
    DBOS.launch()
    print(READY, flush=True)  # noqa: T201 - for the fleet, which reads the log
    sys.stdin.buffer.read()
    DBOS.destroy(workflow_completion_timeout_sec=_DRAIN_SECONDS)


if __name__ == "__main__":
    main()
