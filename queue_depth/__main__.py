"""The program: `queue-depth`, and `python -m queue_depth`."""

import os
import signal
import sys


def main() -> int:
    """Run the command that the arguments name, and return the exit code."""
    if sys.argv[1:2] == ["serve"]:
        # As the first process of a container it would ignore SIGTERM until the server handles it, and be killed long
        # after. Before that there is nothing to finish.
        for number in (signal.SIGTERM, signal.SIGINT):
            signal.signal(number, lambda *_: os._exit(0))

    from queue_depth import cli  # noqa: PLC0415 - loads every library; a signal may come meanwhile

    return cli.main()


if __name__ == "__main__":
    sys.exit(main())
