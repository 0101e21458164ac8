"""What the user gave, where, and under which name."""

import json
import re
from collections.abc import Hashable, Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path

import yaml

from queue_depth.log import redact
from queue_depth.settings.model import NESTED, Settings, settings_of

PREFIX = "QUEUE_DEPTH_"
CONFIG_VARIABLE = f"{PREFIX}CONFIG"

# With service links on, Kubernetes tells every pod of each Service in its namespace under names such as these.
# A Service named queue-depth, or queue-depth-and-anything, writes among our own variables; that no setting's
# name ends as these do keeps the two apart.
_SERVICE_LINK = re.compile(
    rf"""{PREFIX}(\w+_)?(
        SERVICE_HOST=.*
        | SERVICE_PORT(_\w+)?=\d+
        | PORT=(tcp|udp|sctp)://.*
        | PORT_\d+_(TCP|UDP|SCTP)(_(PROTO|PORT|ADDR))?=.*
    )""",
    re.VERBOSE,
)


@dataclass(frozen=True, slots=True)
class Given:
    """One setting as the user gave it.

    Attributes:
        where: The kind of place, for messages.
        name: The setting's name as it is written there.
        value: The value, before validation.
    """

    where: str
    name: str
    value: object


class SourceError(ValueError):
    """A file or a variable cannot be read at all; the text says where and why, and repeats no values."""


def variable(setting: str) -> str:
    """The environment variable of a setting."""
    return PREFIX + setting.upper()


def flag(setting: str) -> str:
    """The flag of a setting."""
    return "--" + setting.replace("_", "-")


def from_flags(flags: Mapping[str, str]) -> dict[str, Given]:
    """Settings given as flags.

    Args:
        flags: The flags' values as they were written, by setting.
    """
    return {setting: Given("flag", flag(setting), value) for setting, value in flags.items()}


def from_variable(setting: str, environ: Mapping[str, str]) -> dict[str, Given]:
    """The setting, if its environment variable is set.

    Raises:
        SourceError: The setting is a mapping and the variable's value is not JSON.
    """
    name = variable(setting)
    text = environ.get(name)
    if text is None:
        return {}
    value: object = text
    if setting in NESTED:
        try:
            value = json.loads(text, object_pairs_hook=_distinct)
        except json.JSONDecodeError as error:
            raise SourceError(f"environment variable {name}: expected JSON ({error.msg}, {_at(error)})") from None
        except ValueError as error:
            raise SourceError(f"environment variable {name}: {error}") from None
    return {setting: Given("environment variable", name, value)}


def from_file(path: str) -> dict[str, Given]:
    """All settings of a YAML file, unknown ones too; keys that are not text are shown as text.

    Raises:
        SourceError: It cannot be read, or holds no mapping in YAML.
    """
    where = redact(f"file {path}")  # somebody may have given the URL for a path
    try:
        content = yaml.load(Path(path).read_text(encoding="utf-8"), Loader=_DistinctKeysLoader)  # noqa: S506 - a SafeLoader
    except OSError as error:
        raise SourceError(f"{where}: cannot be read ({error.strerror})") from None
    except UnicodeDecodeError:
        raise SourceError(f"{where}: expected text in UTF-8") from None
    except yaml.MarkedYAMLError as error:
        # Not the error's own text: it quotes the line, which may hold the database's password.
        mark = error.problem_mark
        place = f" (line {mark.line + 1}, column {mark.column + 1})" if mark else ""
        problem = redact(error.problem or "cannot be parsed")
        raise SourceError(f"{where}: expected YAML: {problem}{place}; put text with signs in quotes") from None
    except (yaml.YAMLError, RecursionError):
        raise SourceError(f"{where}: expected YAML of printable characters") from None
    if content is None:
        return {}
    if not isinstance(content, dict):
        raise SourceError(f"{where}: expected a mapping from setting to value, such as `refresh_seconds: 5`")
    return {str(key): Given(where, _on_one_line(str(key)), value) for key, value in content.items()}


def unknown_variables(environ: Iterable[tuple[str, str]]) -> list[str]:
    """Names of environment variables that look like settings and are none, without those of Kubernetes."""
    known = {CONFIG_VARIABLE, *(variable(setting) for setting in settings_of(Settings))}
    return sorted(
        name
        for name, value in environ
        if name.startswith(PREFIX) and name not in known and not _SERVICE_LINK.fullmatch(f"{name}={value}")
    )


def _on_one_line(name: str) -> str:
    return name if name.isprintable() else repr(name)


def _at(error: json.JSONDecodeError) -> str:
    return f"line {error.lineno}, column {error.colno}"


def _distinct(pairs: list[tuple[str, object]]) -> dict[str, object]:
    found: dict[str, object] = {}
    for key, value in pairs:
        if key in found:
            raise ValueError(f"the key {key!r} is given twice")
        found[key] = value
    return found


class _DistinctKeysLoader(yaml.SafeLoader):
    """YAML, where the second of two equal keys is an error; PyYAML would silently take the last."""

    def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> dict[Hashable, object]:  # noqa: FBT001, FBT002 - PyYAML's signature
        seen: set[str] = set()
        for key, _ in node.value:
            if isinstance(key, yaml.ScalarNode):
                if key.value in seen and key.tag != "tag:yaml.org,2002:merge":
                    raise yaml.constructor.ConstructorError(
                        None, None, f"the key {key.value!r} is given twice", key.start_mark
                    )
                seen.add(key.value)
        return super().construct_mapping(node, deep=deep)
