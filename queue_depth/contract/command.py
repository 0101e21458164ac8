"""`queue-depth contract show` and `queue-depth contract verify`."""

import os
from argparse import ArgumentParser, ArgumentTypeError, Namespace, RawDescriptionHelpFormatter
from collections.abc import Collection, Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from queue_depth.contract import manifests, published, triggers
from queue_depth.contract.evidence import from_examples
from queue_depth.contract.live import from_exporter
from queue_depth.contract.reading import Evidence

if TYPE_CHECKING:
    from argparse import _SubParsersAction

GOOD, VIOLATED = 0, 1

_SHOWN = {
    "schema": "queue-depth.schema.json",
    "openapi": "openapi.json",
    "example": "examples/valid/queue-depth/backlog-beside-full-workers.json",
}


def add_parser(subparsers: "_SubParsersAction[ArgumentParser]") -> None:
    """Add `contract` to the program's commands; the parsed `handler` takes the namespace and gives the exit code."""
    contract = subparsers.add_parser("contract", help="show the HTTP contract, or check manifests against it")
    commands = contract.add_subparsers(required=True, metavar="COMMAND")

    show = commands.add_parser("show", help="print the contract that this release keeps")
    show.add_argument("--format", choices=tuple(_SHOWN), default="schema", help="what to print (default: %(default)s)")
    show.set_defaults(handler=_show)

    verify = commands.add_parser(
        "verify",
        help="check the KEDA triggers in Kubernetes manifests",
        description=(
            "Check every metrics-api trigger of ScaledObjects and ScaledJobs that points at this service:\n"
            "its URL's path is one of the exporter's, or its host is a Service named by --service."
        ),
        epilog="exit codes: 0 all good, 1 a violation or nothing to check, 2 wrong usage",
        formatter_class=RawDescriptionHelpFormatter,
    )
    verify.add_argument(
        "paths",
        nargs="+",
        metavar="PATH",
        type=_path,
        help="rendered manifests: a file, a directory (*.yaml, *.yml, *.json below it), or - for standard input",
    )
    verify.add_argument(
        "--url",
        metavar="URL",
        type=_exporter,
        help="ask the exporter at URL instead of the published examples; QUEUE_DEPTH_TOKEN is sent as a bearer token",
    )
    verify.add_argument(
        "--allow-unknown",
        action="store_true",
        help="with --url: a queue or pool that the exporter does not know is about to be configured; another's answer"
        " is held against its triggers",
    )
    verify.add_argument(
        "--service",
        dest="services",
        metavar="NAME",
        action="append",
        help="a Kubernetes Service of the exporter, may be repeated (default: queue-depth)",
    )
    verify.set_defaults(handler=_verify)


def _show(arguments: Namespace) -> int:
    print(published.text(_SHOWN[arguments.format]), end="")  # noqa: T201 - the command's output
    return GOOD


@dataclass(slots=True)
class _Tally:
    checked: int = 0
    others: int = 0
    violations: int = 0
    unreadable: int = 0
    lines: list[str] = field(default_factory=list)

    @property
    def good(self) -> bool:
        return self.checked > 0 and not self.violations and not self.unreadable

    def summary(self, services: Collection[str]) -> str:
        counted = [
            _count(self.checked, "trigger") + " checked",
            _count(self.violations, "violation"),
            *([_count(self.unreadable, "part") + " unreadable"] if self.unreadable else []),
            *([_count(self.others, "trigger") + " of other services left alone"] if self.others else []),
        ]
        told = ", ".join(counted)
        if self.checked:
            return told
        return (
            f"nothing to check: no metrics-api trigger has a path of the exporter or a host named {', '.join(services)}"
            f" (--service NAME says another); {told}"
        )


def _verify(arguments: Namespace) -> int:
    services = tuple(arguments.services or ("queue-depth",))
    evidence: Evidence = from_examples
    if arguments.url:
        token = os.environ.get("QUEUE_DEPTH_TOKEN")
        evidence = from_exporter(arguments.url, token, allow_unknown=arguments.allow_unknown)
    tally = _judge(manifests.read(arguments.paths), services, evidence)
    for line in (*tally.lines, tally.summary(services)):
        # A lone surrogate in a name must not end in a traceback on a strict terminal.
        print(line.encode("utf-8", "backslashreplace").decode())  # noqa: T201 - the command's output
    return GOOD if tally.good else VIOLATED


def _judge(
    found: Iterable[manifests.Trigger | manifests.Unreadable], services: Collection[str], evidence: Evidence
) -> _Tally:
    tally = _Tally()
    for item in found:
        if isinstance(item, manifests.Unreadable):
            tally.unreadable += 1
            tally.lines.append(_line(str(item)))
        elif triggers.ours(item, services):
            tally.checked += 1
            for violation in triggers.check(item, evidence):
                tally.violations += 1
                tally.lines.append(_line(f"{item}: {violation}"))
        else:
            tally.others += 1
    return tally


def _line(message: str) -> str:
    """A message on one line, without what a manifest might do to a terminal."""
    return "".join(character if character.isprintable() else " " for character in message)


def _count(number: int, thing: str) -> str:
    return f"{number} {thing}" + ("" if number == 1 else "s")


def _path(text: str) -> str:
    if text != manifests.STDIN and not Path(text).exists():
        raise ArgumentTypeError(f"no such file or directory: {text}")
    return text


def _exporter(text: str) -> str:
    try:
        from_exporter(text, None)
    except ValueError as error:
        raise ArgumentTypeError(str(error)) from None
    return text
