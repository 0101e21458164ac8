"""Kubernetes manifests, read from files, directories and standard input, down to the triggers of KEDA's objects."""

import json
import os
import re
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any, ClassVar, Literal

import yaml

STDIN = "-"

# A rendered chart with all its CRDs has a few MiB; the limit keeps a wrong path (a database dump) from hanging.
MAX_BYTES = 16 * 1024 * 1024
_EXTENSIONS = (".yaml", ".yml", ".json")
_RENDER_FIRST = "this is a template: render it first (helm template, kustomize build) and check the output"
_MARKER = re.compile(r"^---(?=\s|$)", re.MULTILINE)


@dataclass(frozen=True, slots=True)
class Place:
    """Where an object stands.

    Attributes:
        file: The path as given, or `-` for standard input.
        line: The first line of the object's YAML document, from 1.
        kind: The Kubernetes kind.
        namespace: `metadata.namespace`, or "" where the manifest leaves it to kubectl.
        name: `metadata.name`, or "" where there is none.
    """

    file: str
    line: int
    kind: Literal["ScaledObject", "ScaledJob"]
    namespace: str
    name: str

    def __str__(self) -> str:
        owner = f"{self.namespace}/{self.name}" if self.namespace else self.name
        return f"{self.file}:{self.line}: {self.kind} {owner or '(without a name)'}"


@dataclass(frozen=True, slots=True)
class Trigger:
    """One entry of `spec.triggers`, as written.

    Attributes:
        place: The object it belongs to.
        index: Its position in the list, from 0.
        body: The entry.
        composed: Whether the object has a `scalingModifiers` formula, which takes the place of every target.
    """

    place: Place
    index: int
    body: Mapping[Any, object]
    composed: bool

    def __str__(self) -> str:
        name = self.body.get("name")
        return f"{self.place}: trigger {self.index}" + (f" ({name})" if isinstance(name, str) and name else "")


@dataclass(frozen=True, slots=True)
class Unreadable:
    """Something that could not be read, so that what it holds is unchecked. `where` is `file` or `file:line`."""

    where: str
    problem: str

    def __str__(self) -> str:
        return f"{self.where}: {self.problem}"


def read(paths: Sequence[str]) -> Iterator[Trigger | Unreadable]:
    """Every trigger of every ScaledObject and ScaledJob under `paths`.

    Args:
        paths: Files, directories (searched for *.yaml, *.yml, *.json; hidden ones are passed over), `-` for stdin.
    """
    for path in paths:
        if path == STDIN:
            yield from _text(STDIN, sys.stdin.buffer.read(MAX_BYTES + 1))
            continue
        for file in _files(Path(path)):
            try:
                with file.open("rb") as stream:
                    content = stream.read(MAX_BYTES + 1)
            except OSError as error:
                yield Unreadable(str(file), f"cannot be read: {error.strerror}")
            else:
                yield from _text(str(file), content)


def _files(path: Path) -> Iterator[Path]:
    if not path.is_dir():
        yield path
        return
    for folder, subfolders, names in os.walk(path):
        subfolders[:] = sorted(name for name in subfolders if not name.startswith("."))
        yield from (Path(folder, name) for name in sorted(names) if name.endswith(_EXTENSIONS))


def _text(file: str, content: bytes) -> Iterator[Trigger | Unreadable]:
    if len(content) > MAX_BYTES:
        yield Unreadable(file, f"is larger than {MAX_BYTES // 1024 // 1024} MiB; give the manifests alone")
        return
    try:
        text = content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        yield Unreadable(file, f"is not UTF-8 (byte {error.start})")
        return
    if text.lstrip().startswith(("{", "[")):
        # JSON proper is not always YAML: it may be indented with tabs.
        try:
            yield from _objects(file, 1, json.loads(text))
        except (ValueError, RecursionError):
            pass
        else:
            return
    for line, document in _documents(text):
        try:
            # A C loader where PyYAML has one; both are safe loaders.
            parsed = yaml.load(document, _Loader)  # noqa: S506 - _Loader is a safe loader
        except yaml.MarkedYAMLError as error:
            mark = error.problem_mark or error.context_mark
            at = line + (mark.line if mark else 0)
            yield Unreadable(f"{file}:{at}", _broken(document, error.problem or "is not YAML"))
        except (yaml.YAMLError, ValueError, RecursionError) as error:
            problem = "is nested too deeply" if isinstance(error, RecursionError) else str(error).splitlines()[0]
            yield Unreadable(f"{file}:{line}", _broken(document, problem))
        else:
            yield from _objects(file, line, parsed)


def _broken(document: str, problem: str) -> str:
    return f"is not YAML ({problem})" + (f"; {_RENDER_FIRST}" if "{{" in document else "")


def _documents(text: str) -> Iterator[tuple[int, str]]:
    """The documents of a YAML stream, each with its first line, so that a broken one does not hide the others."""
    starts = [0, *(found.start() for found in _MARKER.finditer(text)), len(text)]
    line = 1
    for start, end in pairwise(starts):
        document = text[start:end]
        if document.strip():
            yield line, document
        line += document.count("\n")


def _objects(file: str, line: int, document: object) -> Iterator[Trigger | Unreadable]:
    """The triggers of one document: an object, a `List` of objects, or a bare sequence of them."""
    waiting = [document]
    # An alias is the same Python object again: each is looked at once, so aliases of aliases cost nothing.
    seen = set()
    while waiting:
        item = waiting.pop()
        if id(item) in seen:
            continue
        seen.add(id(item))
        if isinstance(item, list):
            waiting.extend(reversed(item))
        if not isinstance(item, dict):
            continue
        kind = item.get("kind")
        if isinstance(kind, str) and kind.endswith("List"):
            waiting.append(item.get("items"))
        elif kind in ("ScaledObject", "ScaledJob") and str(item.get("apiVersion", "keda.sh/")).startswith("keda.sh/"):
            yield from _triggers(file, line, kind, item)


def _triggers(
    file: str, line: int, kind: Literal["ScaledObject", "ScaledJob"], item: Mapping[Any, object]
) -> Iterator[Trigger | Unreadable]:
    metadata = _mapping(item.get("metadata"))
    place = Place(file, line, kind, _word(metadata.get("namespace")), _word(metadata.get("name")))
    spec = _mapping(item.get("spec"))
    triggers = spec.get("triggers")
    if not isinstance(triggers, list):
        yield Unreadable(str(place), "spec.triggers is not a list, so nothing in it is checked")
        return
    formula = _mapping(_mapping(spec.get("advanced")).get("scalingModifiers")).get("formula")
    for index, body in enumerate(triggers):
        if isinstance(body, dict):
            yield Trigger(place, index, body, composed=bool(formula))
        else:
            yield Unreadable(f"{place}: trigger {index}", "is not a mapping")


def _mapping(value: object) -> Mapping[Any, object]:
    return value if isinstance(value, dict) else {}


def _word(value: object) -> str:
    return "" if value is None or isinstance(value, list | dict) else str(value)


class _Loader(getattr(yaml, "CSafeLoader", yaml.SafeLoader)):  # type: ignore[misc]
    """YAML's safe subset as Kubernetes reads it: dates and `=` are text."""

    yaml_implicit_resolvers: ClassVar = {
        first: [(tag, pattern) for tag, pattern in resolvers if tag.rpartition(":")[2] not in ("timestamp", "value")]
        for first, resolvers in yaml.SafeLoader.yaml_implicit_resolvers.items()
    }

    def construct_object(self, node: yaml.Node, deep: bool = False) -> object:  # noqa: FBT001, FBT002 - PyYAML's signature
        try:
            return super().construct_object(node, deep)
        except (AttributeError, LookupError, TypeError, ValueError):
            # PyYAML trusts an explicit tag (`!!int x`) and fails in whatever way its conversion does.
            raise yaml.constructor.ConstructorError(
                None, None, f"a value that is no {node.tag}", node.start_mark
            ) from None
