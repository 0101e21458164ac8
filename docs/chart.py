"""The parts of the chart that repeat what is said elsewhere: descriptions in its schema, the tables in its README."""  # noqa: INP001 - a script's part

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import yaml

from queue_depth.settings.model import PoolSettings, Settings

CHART = Path(__file__).parents[1] / "helm/queue-depth"

_NOT_IN_CONFIG = {"database_url", "database_url_file", "tokens_file", "listen", "pools"}
"""Settings that the chart gives by other values."""

_KEYWORDS = {"ge": "minimum", "le": "maximum", "gt": "exclusiveMinimum"}
"""Pydantic's own words, which it leaves in a schema behind a validator."""

_BEGIN, _END = "<!-- begin: docs/generate.py -->\n", "<!-- end -->\n"


class Value(NamedTuple):
    """One entry of `values.yaml`: its keys from the outside in, the comment above it, and what it is set to."""

    path: tuple[str, ...]
    comment: str
    default: object


def values(text: str) -> Iterator[Value]:
    """Every entry of `values.yaml` that has a comment above it, in order."""
    yield from _values(yaml.compose(text, yaml.SafeLoader), text.splitlines(), ())


def schema() -> str:
    """`values.schema.json`: its own types, the comments of `values.yaml`, and the exporter's own settings."""
    written = json.loads((CHART / "values.schema.json").read_text(encoding="utf-8"))
    settings = Settings.model_json_schema(ref_template="#/definitions/{model}")
    kept = {name: field for name, field in settings["properties"].items() if name not in _NOT_IN_CONFIG}
    written["definitions"] = _plain({name: part for name, part in settings["$defs"].items() if name != "PoolSettings"})
    written["properties"]["config"] = {
        "type": "object",
        "additionalProperties": False,
        "properties": _plain(kept),
    }
    pool = written["properties"]["pools"]["additionalProperties"]["properties"]
    pool.update(_plain(PoolSettings.model_json_schema()["properties"]))
    for value in values((CHART / "values.yaml").read_text(encoding="utf-8")):
        at = written
        for key in value.path:
            at = at["properties"][key]
        at["description"] = value.comment
    _require(written, yaml.safe_load((CHART / "values.yaml").read_text(encoding="utf-8")))
    return json.dumps(written, indent=2, ensure_ascii=False) + "\n"


def _require(schema: dict[str, Any], defaults: dict[str, Any]) -> None:
    """Refuse a null, which takes a default away, where the templates need the default.

    They do without what is empty anyway, and without what is Kubernetes' own and free in the schema, such as a
    security context that a platform sets by itself.
    """
    already = schema.get("required", [])
    required = []
    for name, default in defaults.items():
        field = schema["properties"][name]
        free = isinstance(default, dict) and "properties" not in field
        if name in already or (default not in ("", []) and not free):
            required.append(name)
        if isinstance(default, dict) and not free:
            _require(field, default)
    if required:
        schema["required"] = required


def readme() -> str:
    """`README.md`, with the tables of values between its markers."""
    head, rest = (CHART / "README.md").read_text(encoding="utf-8").split(_BEGIN)
    return head + _BEGIN + _tables() + _END + rest.split(_END)[1]


def _tables() -> str:
    described = json.loads(schema())["properties"]
    pool = described["pools"]["additionalProperties"]["properties"]
    found = list(values((CHART / "values.yaml").read_text(encoding="utf-8")))
    lines = ["", "### A pool", "", "| key | meaning | default |", "| --- | --- | --- |"]
    parents = {value.path[:-1] for value in found}
    set_already = {
        value.path[1:]: value.default
        for value in found
        if value.path[0] == "poolDefaults" and value.path not in parents
    }
    lines += _rows(pool, described["poolDefaults"]["properties"], set_already, ())
    lines += ["", "### Everything else", "", "| value | meaning | default |", "| --- | --- | --- |"]
    for path, comment, default in found:
        if path[0] in ("pools", "poolDefaults") and len(path) > 1:
            continue
        has_parts = any(other.path[:-1] == path for other in found)
        lines.append(f"| `{'.'.join(path)}` | {comment} | {'' if has_parts else _code(default)} |")
    lines += ["", "### The exporter's configuration (`config`)", "", "| key | meaning |", "| --- | --- |"]
    lines += [f"| `{name}` | {field['description']} |" for name, field in described["config"]["properties"].items()]
    return "\n".join([*lines, "", ""])


def _rows(
    properties: dict[str, Any], shared: dict[str, Any], defaults: dict[tuple[str, ...], object], path: tuple[str, ...]
) -> Iterator[str]:
    """Rows for a pool's keys: what is set in `poolDefaults` is described and defaulted there."""
    for key, field in properties.items():
        here = (*path, key)
        told = shared.get(key, {}) if "$ref" in field or "description" not in field else field
        inner = field.get("properties") or (told.get("properties") if key != "behavior" else None)
        if "description" in told:
            default = _code(defaults[here]) if here in defaults else ""
            yield f"| `{'.'.join(here)}` | {told['description']} | {default} |"
        if inner:
            yield from _rows(inner, told.get("properties", inner), defaults, here)


def _values(node: yaml.MappingNode, lines: list[str], path: tuple[str, ...]) -> Iterator[Value]:
    for key, value in node.value:
        here = (*path, key.value)
        comment = _comment(lines, key.start_mark.line, key.start_mark.column)
        inner = list(_values(value, lines, here)) if isinstance(value, yaml.MappingNode) and value.value else []
        if comment:
            loader = yaml.SafeLoader("")
            yield Value(here, comment, loader.construct_object(value, deep=True))  # type: ignore[no-untyped-call]
        yield from inner


def _comment(lines: list[str], key: int, column: int) -> str:
    found: list[str] = []
    while key and lines[key - 1].startswith(" " * column + "# "):
        key -= 1
        found.insert(0, lines[key][column + 2 :])
    return " ".join(found)


def _code(default: object) -> str:
    return f"`{json.dumps(default, ensure_ascii=False)}`"


def _plain(schema: Any) -> Any:  # noqa: ANN401 - JSON
    """A schema in JSON Schema's own words, and without titles, which only repeat the keys."""
    if isinstance(schema, dict):
        return {
            _KEYWORDS.get(key, key): _plain(value)
            for key, value in schema.items()
            if not (key == "title" and isinstance(value, str))
        }
    return [_plain(member) for member in schema] if isinstance(schema, list) else schema
