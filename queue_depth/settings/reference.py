"""`docs/configuration.md` and `docs/example-config.yaml`, written from the settings' own descriptions."""

import json
import textwrap
from collections.abc import Iterable

import yaml
from pydantic import BaseModel
from pydantic.fields import FieldInfo

from queue_depth.settings.model import NESTED, SECRET, PoolSettings, QueueSettings, Settings, settings_of
from queue_depth.settings.sources import flag, variable

_INTRODUCTION = """# Configuration

Every setting can be given in three places; a flag wins over the environment, the environment over the file:

* a flag of `queue-depth serve` and `queue-depth check`: `--refresh-seconds 5`,
* an environment variable: `QUEUE_DEPTH_REFRESH_SECONDS=5`,
* a YAML file that `--config` or `QUEUE_DEPTH_CONFIG` names: `refresh_seconds: 5`
  (see [example-config.yaml](example-config.yaml)).

A mapping (`queues`, `pools`) is taken whole from the environment or the file, never merged from both.

The database's address is all that must be given.
Whatever is wrong is reported at once, and the program ends with exit code 2.
An unknown key in the file is an error.
An unknown `QUEUE_DEPTH_…` variable is a warning,
except those that Kubernetes itself sets beside a Service named `queue-depth` or `queue-depth-…`
(`QUEUE_DEPTH_PORT=tcp://…`, `QUEUE_DEPTH_SERVICE_HOST`, …): they do no harm.

An executor's process writes no heartbeat, so `in_flight_window_seconds` is the one setting to think about:
set it longer than the longest workflow you run.
"""

_AFTERWORD = """## Secrets

`database_url` and the tokens never appear in logs, errors, metrics or `--help`.
A file that is mounted from a Secret is the best place for both: it can be rotated without a restart.
While a token is rotated, the file lists the old and the new one.

## Exit codes

| code | meaning |
| --- | --- |
| 0 | `serve` was asked to stop (SIGTERM, SIGINT); `check` found no error |
| 1 | `serve` cannot listen or met a defect; `check` found an error |
| 2 | wrong usage, or wrong settings |
"""

_WIDTH = 110


def markdown() -> str:
    """The reference."""
    parts = [_INTRODUCTION, "## Settings\n"]
    for name, field in settings_of(Settings).items():
        parts.append(f"### `{name}`\n")
        parts.append(f"{_sentences(field)}\n")
        parts.append("\n".join(_facts(name, field)) + "\n")
    parts += ["## A queue\n", _table(QueueSettings), "`rate_limit` and `partition_rate_limit` hold:\n"]
    parts += [_table(NESTED["rate_limit"]), "## A pool\n", _table(PoolSettings), _AFTERWORD]
    return "\n".join(parts)


def example() -> str:
    """A configuration file with every setting at its default, and examples of the others as comments."""
    lines = ["# Every setting of queue-depth. What is not a comment is the default."]
    for name, field in settings_of(Settings).items():
        lines += ["", *(f"# {line}" for line in textwrap.wrap(_plain(field), _WIDTH))]
        if name in NESTED or field.default is None:
            text = yaml.safe_dump({name: field.examples[0] if field.examples else None}, sort_keys=False)
            lines += [f"#{line}" for line in text.splitlines()]
        else:
            lines.append(f"{name}: {default_of(field)}")
    return "\n".join(lines) + "\n"


def default_of(field: FieldInfo) -> str:
    """A setting's default as it is written; empty where there is none."""
    return "" if field.default in (None, {}, ()) else str(field.default)


def _facts(name: str, field: FieldInfo) -> Iterable[str]:
    default = default_of(field)
    yield f"* Default: `{default}`" if default else "* Default: none"
    yield f"* Environment: `{variable(name)}`"
    if name not in SECRET and name not in NESTED:
        yield f"* Flag: `{flag(name)}`"
    if name in NESTED:
        yield f"* Example: `{variable(name)}='{json.dumps(field.examples[0])}'`" if field.examples else ""
    else:
        yield "* Example: " + ", ".join(f"`{example}`" for example in field.examples or ())


def _table(model: type[BaseModel]) -> str:
    lines = ["| key | meaning | example |", "| --- | --- | --- |"]
    for name, field in settings_of(model).items():
        shown = json.dumps((field.examples or [None])[0])
        lines.append(f"| `{name}` | {field.description} | `{shown}` |")
    return "\n".join(lines) + "\n"


def _sentences(field: FieldInfo) -> str:
    return (field.description or "").replace(". ", ".\n")


def _plain(field: FieldInfo) -> str:
    return (field.description or "").replace("`", "")
