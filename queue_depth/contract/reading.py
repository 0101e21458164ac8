"""What a trigger reads: its URL and its `valueLocation`, held against answers of the exporter."""

import re
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from difflib import get_close_matches
from urllib.parse import SplitResult, urlsplit

from queue_depth.contract import gjson
from queue_depth.contract.published import Field, fields
from queue_depth.contract.routes import OWN_PREFIXES, ROUTES, Route, find
from queue_depth.contract.violation import Violation, quote

_BY_NAME = re.compile(r'(?:queues|pools)\.#\(\s*name\s*==?\s*"((?:[^"\\]|\\.)*)"\s*\)[.|].+')


@dataclass(frozen=True, slots=True)
class Reading:
    """What one trigger asks: the raw URL path, its route, the decoded name in it, and the gjson path."""

    path: str
    route: Route
    name: str
    location: str

    @property
    def selected(self) -> str | None:
        """The name that a query `queues.#(name=="...")` selects from a list, where it is one."""
        found = None if "{" in self.route.template else _BY_NAME.fullmatch(self.location)
        return re.sub(r"\\(.)", r"\1", found[1]) if found else None

    @property
    def field(self) -> Field | None:
        """The field of the flat answer that is read in the end, where it is a known one."""
        return fields().get(re.split(r"[.|]", self.location)[-1].replace("\\", ""))


@dataclass(frozen=True, slots=True)
class Answer:
    """A body that the exporter gives, and what to call it in a message."""

    label: str
    body: str


Evidence = Callable[[Reading], Iterable[Answer | Violation]]
"""The answers to hold a trigger against: all examples, or the one of a running exporter (or why there is none)."""


def parse(url: str, location: str) -> Iterator[Violation | Reading]:
    """What is wrong with a URL, and the reading if the URL has a route and `location` is not empty."""
    if re.search(r"[\x00-\x20\x7f]", url):
        yield Violation("metadata.url", f"{quote(url)} holds a space or control character", "write a space as %20")
        return
    try:
        parts = urlsplit(url)
        _ = parts.port
    except ValueError:
        yield Violation("metadata.url", f"{quote(url)} is no URL", "write http://SERVICE.NAMESPACE:PORT/v1/queues/NAME")
        return
    if parts.scheme not in ("http", "https"):
        yield Violation(
            "metadata.url", f"{quote(parts.scheme)} is no scheme that KEDA speaks", "begin with http:// or https://"
        )
    elif not parts.hostname:
        yield Violation("metadata.url", "has no host", "write http://SERVICE.NAMESPACE:PORT/v1/queues/NAME")
    if parts.username is not None or parts.password is not None:
        yield Violation(
            "metadata.url",
            "holds credentials, which the exporter does not read and logs would keep",
            "take them out and use authenticationRef",
        )
    if "?" in url or "#" in url:
        yield Violation(
            "metadata.url",
            "has a query string or fragment; KEDA drops it with aggregateFromKubeServiceEndpoints, and the answer of a"
            " single queue or pool takes none",
            "end the URL with the name; write ? as %3F and # as %23 in it",
        )
        return
    found = find(parts.path)
    if found is None:
        yield _no_route(parts)
    elif location:
        yield Reading(parts.path, *found, location)


def _no_route(parts: SplitResult) -> Violation:
    path = parts.path
    if path in OWN_PREFIXES:
        return Violation("metadata.url", "the name is empty", f"write {path}NAME")
    bare = path.rstrip("/")
    if bare != path and find(bare):
        return Violation(
            "metadata.url",
            f"the path {quote(path)} ends with a slash: the exporter answers 404 and does not redirect",
            f"write {bare}",
        )
    if path.startswith(OWN_PREFIXES):
        prefix = next(prefix for prefix in OWN_PREFIXES if path.startswith(prefix))
        return Violation(
            "metadata.url",
            f"{quote(path.removeprefix(prefix))} is not one percent-encoded name",
            "write / as %2F, a space as %20, and other characters as the bytes of their UTF-8",
        )
    return Violation(
        "metadata.url",
        f"the exporter has no path {quote(path)} with numbers in JSON",
        "use one of " + ", ".join(route.template for route in ROUTES),
    )


def number(reading: Reading, evidence: Evidence) -> Iterator[Violation]:
    """At most one violation: the first answer in which KEDA would find no number."""
    field = reading.field
    if field is not None and field.type != "integer":
        yield Violation(
            "metadata.valueLocation",
            f"{field.name} is a {field.type}, and KEDA takes only numbers",
            "name a field with a number, such as wanted_replicas",
        )
        return
    for answer in evidence(reading):
        if isinstance(answer, Violation):
            yield answer
            return
        found = gjson.read(answer.body, reading.location)
        match found:
            case gjson.Undecided(why):
                problem = f"{quote(reading.location)} is not safe to use: {why}"
            case gjson.NotANumber(what):
                problem = (
                    f"{quote(reading.location)} finds {what} in {answer.label}, which KEDA makes an error of:"
                    " the HPA holds and nothing scales"
                )
            case _:
                continue
        yield Violation("metadata.valueLocation", problem, _mend(reading))
        return


def _mend(reading: Reading) -> str:
    numbers = [field.name for field in fields().values() if field.type == "integer" and field.required]
    meant = next(iter(get_close_matches(re.split(r"[.|]", reading.location)[-1], numbers, n=1)), "")
    schema = reading.route.schema
    if schema == "queue-depth":
        return f"did you mean {meant}?" if meant else "write one of " + ", ".join(numbers)
    name = meant or "queue_length"
    return f'read /v1/{schema}/NAME and {name}, or write {schema}.#(name=="NAME").{name}'
