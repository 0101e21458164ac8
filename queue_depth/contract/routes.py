"""The URLs that the exporter answers, as far as the contract goes."""

import re
from dataclasses import dataclass
from urllib.parse import unquote

from queue_depth.contract.published import SchemaName

# One path segment as RFC 3986 has it. A slash or a space in a name must be percent-encoded.
_NAME = r"(?:[A-Za-z0-9._~!$&'()*+,;=:@-]|%[0-9A-Fa-f]{2})+"


@dataclass(frozen=True, slots=True)
class Route:
    """A URL path with a JSON answer that a trigger may read.

    Attributes:
        template: The path, with the name's place in braces.
        schema: The schema of the answer.
        summary: One sentence for the reference.
    """

    template: str
    schema: SchemaName
    summary: str

    def name_in(self, path: str) -> str | None:
        """The decoded name in a raw path of this route ("" for a list); None when it is another path."""
        pattern = "".join(
            f"({_NAME})" if part.startswith("{") else re.escape(part) for part in re.split(r"(\{\w+\})", self.template)
        )
        found = re.fullmatch(pattern, path)
        if found is None:
            return None
        try:
            return unquote(found[1], errors="strict") if found.groups() else ""
        except UnicodeDecodeError:
            return None


ROUTES = (
    Route("/dbos-queue-depth/{queue}", "queue-depth", "The numbers of one queue (the URL of the first release)."),
    Route("/v1/queues/{queue}", "queue-depth", "The numbers of one queue."),
    Route("/v1/pools/{pool}", "queue-depth", "The numbers of one pool."),
    Route("/v1/queues", "queues", "All queues, a page at a time."),
    Route("/v1/pools", "pools", "All pools, a page at a time."),
)

# Paths that no other service is expected to have: a trigger with one of them is meant for this service.
OWN_PREFIXES = tuple(route.template.partition("{")[0] for route in ROUTES if "{" in route.template)


def find(path: str) -> tuple[Route, str] | None:
    """The route of a raw (still encoded) URL path, and the decoded name in it; None when there is none."""
    for route in ROUTES:
        name = route.name_in(path)
        if name is not None:
            return route, name
    return None
