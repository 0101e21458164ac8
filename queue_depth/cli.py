"""The command line."""

import argparse
import logging
import os
import sys
from collections.abc import Collection, Sequence
from importlib import import_module
from typing import NoReturn

from queue_depth import __version__, log, wiring
from queue_depth.postgres.statements import grants
from queue_depth.settings.load import SettingsError, load, load_schema, warnings
from queue_depth.settings.model import NESTED, SECRET, Settings, settings_of
from queue_depth.settings.reference import default_of
from queue_depth.settings.sources import CONFIG_VARIABLE, flag, variable

_log = logging.getLogger(__name__)

GOOD, FAILED, USAGE = 0, 1, 2
"""Exit codes: done; a check or the service failed; wrong usage or settings."""

_DESCRIPTION = """\
True backlog and in-flight numbers of DBOS queues, for KEDA and Prometheus.

Reads DBOS's workflow table every few seconds and answers from memory:
  /dbos-queue-depth/QUEUE, /v1/queues, /v1/pools   JSON for KEDA's metrics-api scaler
  /metrics                                         Prometheus and OpenMetrics
  /livez, /readyz                                  probes
"""

_SETTINGS_EPILOG = """\
Every setting may be given as a flag, as an environment variable or in a YAML file:
  --refresh-seconds 5   QUEUE_DEPTH_REFRESH_SECONDS=5   refresh_seconds: 5
A flag wins over the environment, the environment over the file. The database's URL is
QUEUE_DEPTH_DATABASE_URL or --database-url-file FILE; without both, libpq's variables
(PGHOST, PGUSER, PGPASSWORD, PGDATABASE, ...) are used. Limits of queues that are declared
in code, and pools, are mappings: QUEUE_DEPTH_QUEUES and QUEUE_DEPTH_POOLS as JSON, or
`queues` and `pools` in the file.

"""

_SERVE_CODES = "Exit codes: 0 asked to stop (SIGTERM, SIGINT), 1 cannot listen or a defect, 2 wrong usage or settings."
_CHECK_CODES = "Exit codes: 0 no error (warnings allowed), 1 an error, 2 wrong usage or settings."

_COMMANDS_OF_PACKAGES = {
    "contract": "show the HTTP contract, or check manifests against it",
    "demo": "watch a real DBOS application being counted (needs queue-depth[demo])",
}
"""Commands that `queue_depth/NAME/command.py` adds; loaded only when asked for."""

_METAVARS = {"file": "FILE", "seconds": "SECONDS", "listen": "HOST:PORT", "schema": "NAME"}
"""What a flag takes, by the last word of its name."""

_SETTING = "setting."
"""Where argparse keeps the flags that are settings."""


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command and return the exit code."""
    given = sys.argv[1:] if arguments is None else list(arguments)
    options = _parser(given[0] if given else None).parse_args(given)
    try:
        code: int = options.handler(options)
        sys.stdout.flush()
    except BrokenPipeError:
        # Whoever read the output has seen enough; Python's own flush at the end must not fail again.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return FAILED
    return code


class _Parser(argparse.ArgumentParser):
    """A parser whose errors repeat no password of a URL among the arguments."""

    def error(self, message: str) -> NoReturn:
        """End with exit code 2."""
        super().error(log.redact(message))


def _parser(command: str | None) -> argparse.ArgumentParser:
    parser: argparse.ArgumentParser = _Parser(
        prog="queue-depth",
        description=_DESCRIPTION,
        epilog="`queue-depth COMMAND --help` tells more.",
        formatter_class=argparse.RawDescriptionHelpFormatter,
        allow_abbrev=False,
    )
    parser.add_argument("--version", action="version", version=f"queue-depth {__version__}")
    commands = parser.add_subparsers(required=True, metavar="COMMAND")

    serve = commands.add_parser(
        "serve",
        help="read the table and serve the numbers until SIGTERM",
        description="Read DBOS's workflow table every few seconds and serve the numbers until SIGTERM.",
        epilog=_SETTINGS_EPILOG + _SERVE_CODES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
        allow_abbrev=False,
    )
    serve.set_defaults(handler=_serve)
    check = commands.add_parser(
        "check",
        help="check settings, connection, role, schema, indexes and queues",
        description=(
            "Check what `serve` needs, with the same settings: connection, role, schema, indexes, queues.\n"
            "Says what is missing, and which number is less exact for it."
        ),
        epilog=_SETTINGS_EPILOG + _CHECK_CODES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
        allow_abbrev=False,
    )
    check.set_defaults(handler=_check)
    for subparser in (serve, check):
        _add_settings(subparser, only=settings_of(Settings).keys())
    granting = commands.add_parser(
        "grants",
        help="print the SQL that lets a role read what is counted, and no more",
        description=(
            "Print the SQL that lets a role read the columns that are counted, and nothing else. Run it as the\n"
            "owner of the DBOS tables, again after a DBOS upgrade:\n"
            '  queue-depth grants ROLE | psql -v ON_ERROR_STOP=1 "$OWNER_URL"'
        ),
        formatter_class=argparse.RawDescriptionHelpFormatter,
        allow_abbrev=False,
    )
    granting.add_argument("role", help="the role that the exporter logs in as; it must exist")
    _add_settings(granting, only={"schema"})
    granting.set_defaults(handler=_grants)
    for name, help_text in _COMMANDS_OF_PACKAGES.items():
        if command == name:
            import_module(f"queue_depth.{name}.command").add_parser(commands)
        else:
            commands.add_parser(name, help=help_text)
    return parser


def _add_settings(parser: argparse.ArgumentParser, *, only: Collection[str]) -> None:
    group = parser.add_argument_group("settings")
    group.add_argument("--config", metavar="FILE", help=f"YAML file with settings ({CONFIG_VARIABLE})")
    for name, field in settings_of(Settings).items():
        if name not in only:
            continue
        if name in SECRET:
            group.add_argument(flag(name), action=_RefuseSecret, help=argparse.SUPPRESS)
        elif name not in NESTED:
            default = default_of(field)
            told = f"{field.description} ({variable(name)}{f'; default: {default}' if default else ''})"
            group.add_argument(
                flag(name),
                dest=_SETTING + name,
                metavar=_METAVARS.get(name.rpartition("_")[2], "VALUE"),
                default=argparse.SUPPRESS,
                help=told.replace("%", "%%"),
            )


class _RefuseSecret(argparse.Action):
    """Refuse a secret among the arguments without repeating it."""

    def __call__(self, parser: argparse.ArgumentParser, *_: object) -> NoReturn:
        """Refuse."""
        parser.error(
            f"{flag(self.dest)}: arguments are visible to every user of the machine (ps); "
            f"give the secret as {variable(self.dest)}, or in a file named by {flag(self.dest)}-file"
        )


def _flags(options: argparse.Namespace) -> dict[str, str]:
    return {name.removeprefix(_SETTING): value for name, value in vars(options).items() if name.startswith(_SETTING)}


def _load(options: argparse.Namespace) -> Settings | None:
    """The settings; None when they are wrong, and that is said."""
    try:
        settings = load(_flags(options), config=options.config)
    except SettingsError as error:
        print("\n".join([str(error), *warnings()]), file=sys.stderr)  # noqa: T201 - before there is a log
        return None
    log.configure(settings.log_format, settings.log_level)
    return settings


def _serve(options: argparse.Namespace) -> int:
    settings = _load(options)
    if settings is None:
        return USAGE
    for warning in warnings():
        _log.warning("%s", warning)
    return GOOD if wiring.serve(settings) else FAILED


def _grants(options: argparse.Namespace) -> int:
    try:
        schema = load_schema(_flags(options), config=options.config)
    except SettingsError as error:
        print(error, file=sys.stderr)  # noqa: T201 - there is no log
        return USAGE
    print(grants(schema=schema, role=options.role))  # noqa: T201 - the command's output
    return GOOD


def _check(options: argparse.Namespace) -> int:
    settings = _load(options)
    if settings is None:
        return USAGE
    findings = wiring.check(settings)
    lines = [("warning", "settings", text) for text in warnings()]
    lines += [(finding.level, finding.subject, finding.text) for finding in findings]
    for level, subject, text in lines:
        print(f"{level:<8}{subject}: {text}")  # noqa: T201 - the command's output
    return FAILED if any(finding.level == "error" for finding in findings) else GOOD
