"""The files of `contract/`, read from the installed package."""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from importlib.resources.abc import Traversable
from typing import Any, Literal, NoReturn

SchemaName = Literal["queue-depth", "queues", "pools", "problem"]
SCHEMA_NAMES: tuple[SchemaName, ...] = ("queue-depth", "queues", "pools", "problem")

Scaling = Literal["backlog", "running", "replicas", "wait", "never"]


@dataclass(frozen=True, slots=True)
class Example:
    """One example file: `name` is the file's stem, `text` its content as it stands."""

    name: str
    text: str


@dataclass(frozen=True, slots=True)
class Counterexample:
    """An answer that breaks the contract, and what its `.why.json` says of it.

    Attributes:
        name: The file's stem.
        text: The file's content; not always JSON.
        why: What is wrong with it.
        breaks: Who would be hurt by such an answer, and how.
        keyword: The JSON Schema keyword that refuses it, or `json` where it is not JSON at all.
        path: The JSONPath of the offending place.
    """

    name: str
    text: str
    why: str
    breaks: str
    keyword: str
    path: str


@dataclass(frozen=True, slots=True)
class Field:
    """What the contract says of one field of the flat answer.

    Attributes:
        name: The field's name on the wire.
        type: Its JSON Schema type.
        scaling: What a trigger may do with it (`x-scaling` in the schema).
        required: Whether every answer has it.
    """

    name: str
    type: str
    scaling: Scaling
    required: bool


def text(path: str) -> str:
    """One published file, by its path inside `contract/`."""
    return _root().joinpath(path).read_text(encoding="utf-8")


@cache
def schema(name: SchemaName) -> Mapping[str, Any]:
    """One JSON Schema (2020-12), parsed. Not to be changed by the caller."""
    parsed: dict[str, Any] = json.loads(text(f"{name}.schema.json"))
    return parsed


@cache
def fields() -> Mapping[str, Field]:
    """The fields of the flat answer, by name, in the order of the schema."""
    flat = schema("queue-depth")
    return {
        name: Field(name, told["type"], told["x-scaling"], name in flat["required"])
        for name, told in flat["properties"].items()
    }


@cache
def examples(name: SchemaName) -> tuple[Example, ...]:
    """The valid answers of one schema, ordered by name."""
    return tuple(
        Example(entry.name.removesuffix(".json"), entry.read_text(encoding="utf-8"))
        for entry in _sorted(f"examples/valid/{name}")
    )


@cache
def counterexamples(name: SchemaName) -> tuple[Counterexample, ...]:
    """The invalid answers of one schema, ordered by name."""
    folder = f"examples/invalid/{name}"
    stems = [entry.name.removesuffix(".json") for entry in _sorted(folder) if not entry.name.endswith(".why.json")]
    return tuple(
        Counterexample(stem, text(f"{folder}/{stem}.json"), **json.loads(text(f"{folder}/{stem}.why.json")))
        for stem in stems
    )


def strict_json(body: str) -> object:
    """Parse JSON as RFC 8259 has it: NaN and Infinity, which Python and KEDA let pass, are refused.

    Raises:
        ValueError: The text is not JSON.
    """
    try:
        parsed: object = json.loads(body, parse_constant=_no_constant)
    except RecursionError:
        raise ValueError("nested too deeply") from None
    return parsed


def _no_constant(name: str) -> NoReturn:
    raise ValueError(f"{name} is not JSON")


def _root() -> Traversable:
    return files(__package__).joinpath("published")


def _sorted(folder: str) -> list[Traversable]:
    return sorted(_root().joinpath(folder).iterdir(), key=lambda entry: entry.name)
