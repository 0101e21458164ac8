"""A running exporter's answers, to hold triggers against instead of the examples."""

import json
from collections.abc import Iterator
from http.client import HTTPException, HTTPMessage
from typing import IO
from urllib.error import HTTPError, URLError
from urllib.parse import urlsplit
from urllib.request import HTTPRedirectHandler, ProxyHandler, Request, build_opener

from queue_depth.contract.reading import Answer, Evidence, Reading
from queue_depth.contract.violation import Violation, quote

TIMEOUT_SECONDS = 5.0
_MAX_BYTES = 16 * 1024 * 1024

_LISTS = {"unknown_queue": "queues", "unknown_pool": "pools"}
"""Where those are that an exporter does know, by the reason it gives for not knowing one."""


class _NoRedirect(HTTPRedirectHandler):
    """A redirect is an answer, not a hint: the exporter never sends one, and a key must not follow it elsewhere."""

    def redirect_request(
        self, req: Request, fp: IO[bytes], code: int, msg: str, headers: HTTPMessage, newurl: str
    ) -> None:
        """Follow none."""


def from_exporter(
    base_url: str,
    token: str | None,
    *,
    allow_unknown: bool = False,
    timeout_seconds: float = TIMEOUT_SECONDS,
) -> Evidence:
    """Evidence from the exporter at `base_url`.

    Args:
        base_url: Where it listens, such as `http://localhost:8080`; a path in it goes before the trigger's own.
        token: Sent as a bearer token; in no message.
        allow_unknown: A queue or pool that the exporter does not know is about to be configured: the answer of any
            other says what its answer will hold. Where there is no other, nothing is held against the trigger.
        timeout_seconds: For one request.

    Raises:
        ValueError: `base_url` is no http or https URL of a host.
    """
    base = _base(base_url)
    # The environment's proxies are left out: the exporter is asked, not whatever stands between.
    opener = build_opener(_NoRedirect, ProxyHandler({}))
    headers = {"Accept": "application/json"} | ({"Authorization": f"Bearer {token}"} if token else {})

    def ask(reading: Reading, path: str) -> Iterator[Answer | Violation]:
        try:
            request = Request(base + path, headers=headers)  # noqa: S310 - http or https, checked above
            with opener.open(request, timeout=timeout_seconds) as response:
                content = response.read(_MAX_BYTES)
        except HTTPError as error:
            with error:
                reason, detail = _problem(error)
            if allow_unknown and reason in _LISTS:
                yield from of_another(reading, _LISTS[reason])
            else:
                yield _refused(reading, base, error.code, reason, detail)
        except (OSError, HTTPException, ValueError) as error:
            cause = error.reason if isinstance(error, URLError) else error
            yield Violation(
                "metadata.url",
                f"{base}{path} gives no answer ({type(cause).__name__ if not str(cause) else cause})",
                "check --url, and that the exporter runs and can be reached from here",
            )
        else:
            if response.status != 200:  # noqa: PLR2004 - KEDA takes 200 and nothing else
                yield Violation("metadata.url", f"answers {response.status}, and KEDA takes only 200", "check --url")
            else:
                yield Answer(f"the answer of {base}{path}", content.decode("utf-8", errors="replace"))

    def of_another(reading: Reading, listed: str) -> Iterator[Answer | Violation]:
        for found in ask(reading, f"/v1/{listed}?limit=1"):
            if isinstance(found, Violation):
                yield found
                return
            others = _members(found.body, listed)
            yield from (Answer(f"{found.label}, as {quote(reading.name)} is not known yet", other) for other in others)

    return lambda reading: ask(reading, reading.path)


def _base(base_url: str) -> str:
    parts = urlsplit(base_url)
    if (
        parts.scheme not in ("http", "https")
        or not parts.hostname
        or parts.query
        or parts.fragment
        or "@" in parts.netloc
    ):
        raise ValueError("write http://HOST:PORT or https://HOST:PORT, without credentials, query or fragment")
    _ = parts.port
    return base_url.rstrip("/")


def _members(body: str, listed: str) -> list[str]:
    """The answers in a page of a list, as they would be given alone; empty where the body is something else."""
    try:
        page = json.loads(body)
        return [json.dumps(member) for member in page[listed]]
    except (ValueError, LookupError, TypeError, RecursionError):
        return []


def _refused(reading: Reading, base: str, code: int, reason: str, detail: str) -> Violation:
    told = f" ({detail})" if detail else ""
    match code:
        case 404 if reason in _LISTS:
            kind = reason.removeprefix("unknown_")
            return Violation(
                "metadata.url",
                f"the exporter knows no {kind} {quote(reading.name)}{told}",
                f"correct the name, or register the {kind} in DBOS or in the exporter's configuration",
            )
        case 404:
            problem, mend = (
                f"nothing answers at {base}{reading.path}{told}",
                "check that --url is the exporter's own URL",
            )
        case 401 | 403:
            problem = f"the exporter refuses the token, or the lack of one{told}"
            mend = "set QUEUE_DEPTH_TOKEN to a token that is valid"
        case 503:
            problem = f"the exporter has no number to give now: {reason or 'no reason given'}{told}"
            mend = "look at the exporter's /readyz?verbose and log, then verify again"
        case _ if 300 <= code < 400:  # noqa: PLR2004 - HTTP's redirects
            problem, mend = f"answers {code}, a redirect, which the exporter never sends", "check --url"
        case _:
            problem, mend = f"answers {code}{told}", "look at the exporter's log"
    return Violation("metadata.url", problem, mend)


def _problem(error: HTTPError) -> tuple[str, str]:
    """`reason` and `detail` of a problem document; empty where the body is something else."""
    try:
        body = json.loads(error.read(_MAX_BYTES))
    except (OSError, HTTPException, ValueError, RecursionError):
        return "", ""
    if not isinstance(body, dict):
        return "", ""
    return tuple(told if isinstance(told := body.get(key), str) else "" for key in ("reason", "detail"))  # type: ignore[return-value]
