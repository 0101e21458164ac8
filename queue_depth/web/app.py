"""Routes, dispatched by hand: the raw path decides, so an encoded slash stays part of a name and nothing redirects."""

import asyncio
import logging
import math
import re
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Protocol

from starlette.datastructures import QueryParams
from starlette.responses import PlainTextResponse, Response
from starlette.types import ASGIApp, Receive, Scope, Send

from queue_depth.core.depth import PoolDepth
from queue_depth.core.snapshot import Snapshot
from queue_depth.store import NoFreshSnapshotError, SnapshotStore
from queue_depth.web import health
from queue_depth.web.auth import TokenFile, presented_tokens
from queue_depth.web.names import NamesInOrder, decode
from queue_depth.web.payload import depth_json, page_json
from queue_depth.web.problems import ProblemError

_log = logging.getLogger(__name__)

_NO_STORE = {"Cache-Control": "no-store"}
_PAGE = 1000
"""The most names in one page, and the number unless fewer are asked for."""
_AT_ONCE = 50
"""So many numbers of a list are computed before other requests get their turn."""
_UNKNOWN_ROUTE = "other"


class Exposition(Protocol):
    """What the web asks of the metrics."""

    def render(self, accept: str | None) -> tuple[bytes, str]:
        """The body and content type of a scrape with this `Accept` header; called in a thread."""
        ...

    def count_request(self, route: str, code: int) -> None:
        """A request was answered; `route` is a template from a fixed set."""
        ...


def create_app(
    *, store: SnapshotStore, exposition: Exposition, tokens: TokenFile | None, refresh_seconds: float
) -> ASGIApp:
    """Make the HTTP application; it has no lifespan and no websockets.

    Args:
        store: Where the snapshots are.
        exposition: Answers scrapes and counts requests.
        tokens: Who may ask for anything but the bare probes; None: everybody.
        refresh_seconds: How often the store gets a snapshot, for `Retry-After` and for `/livez`.
    """
    return _App(store, exposition, tokens, refresh_seconds)


@dataclass(frozen=True, slots=True)
class _Route:
    template: str
    handler: Callable[[str, Scope], Awaitable[Response]]
    is_probe: bool = False


class _App:
    def __init__(
        self, store: SnapshotStore, exposition: Exposition, tokens: TokenFile | None, refresh_seconds: float
    ) -> None:
        self._store = store
        self._exposition = exposition
        self._tokens = tokens
        self._refresh_seconds = refresh_seconds
        self._queue_names = NamesInOrder(lambda snapshot: snapshot.queues)
        self._pool_names = NamesInOrder(lambda snapshot: snapshot.pools)
        self._named = {
            b"/dbos-queue-depth": _Route("/dbos-queue-depth/{queue}", self._queue),
            b"/v1/queues": _Route("/v1/queues/{queue}", self._queue),
            b"/v1/pools": _Route("/v1/pools/{pool}", self._pool),
        }
        self._exact = {
            b"/v1/queues": _Route("/v1/queues", self._queues),
            b"/v1/pools": _Route("/v1/pools", self._pools),
            b"/metrics": _Route("/metrics", self._metrics),
            b"/livez": _Route("/livez", self._livez, is_probe=True),
            b"/healthz": _Route("/healthz", self._livez, is_probe=True),
            b"/readyz": _Route("/readyz", self._readyz, is_probe=True),
        }

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request."""
        if scope["type"] != "http":
            return
        route, segment = self._find(scope["raw_path"])
        try:
            response = await self._answer(route, segment, scope)
        except ProblemError as problem:
            response = problem.response()
        except NoFreshSnapshotError as error:
            retry = {"Retry-After": str(math.ceil(self._refresh_seconds))}
            response = ProblemError(error.reason, str(error), retry).response()
        except Exception:  # noqa: BLE001  whatever a handler met, the client gets an answer without internals
            _log.exception("cannot answer a request to %s", route.template if route else _UNKNOWN_ROUTE)
            response = ProblemError("internal_error", "This is a defect; the exporter's log says more.").response()
        self._exposition.count_request(route.template if route else _UNKNOWN_ROUTE, response.status_code)
        # The server keeps the body of an answer to HEAD to itself.
        await response(scope, receive, send)

    def _find(self, path: bytes) -> tuple[_Route | None, bytes]:
        prefix, _, segment = path.rpartition(b"/")
        if segment and prefix in self._named:
            return self._named[prefix], segment
        return self._exact.get(path), b""

    async def _answer(self, route: _Route | None, segment: bytes, scope: Scope) -> Response:
        if route is None or not route.is_probe:
            self._authorize(scope)
        if route is None:
            raise ProblemError(
                "not_found",
                "Nothing is served under this path. Names are one path segment, a slash in them is %2F, "
                "and there is no slash at the end.",
            )
        if scope["method"] not in {"GET", "HEAD"}:
            raise ProblemError("method_not_allowed", "Use GET or HEAD.", {"Allow": "GET, HEAD"})
        return await route.handler(decode(segment), scope)

    def _authorize(self, scope: Scope) -> None:
        if self._tokens is not None and not self._tokens.accepts(presented_tokens(scope["headers"])):
            raise ProblemError(
                "unauthorized",
                "Send a valid token as `Authorization: Bearer TOKEN` or `X-API-KEY: TOKEN`.",
                {"WWW-Authenticate": 'Bearer realm="queue-depth"'},
            )

    async def _queue(self, name: str, _: Scope) -> Response:
        fresh = self._store.fresh()
        depth = fresh.snapshot.queue(name)
        if depth is None:
            raise ProblemError(
                "unknown_queue",
                f"No queue `{_shortened(name)}` is registered, configured or has unfinished workflows. Check the "
                "spelling, or name it under queues in the configuration. GET /v1/queues lists those that are known.",
            )
        return _depth_response(fresh.snapshot, depth, fresh.age_seconds)

    async def _pool(self, name: str, _: Scope) -> Response:
        fresh = self._store.fresh()
        depth = fresh.snapshot.pool(name)
        if depth is None:
            raise ProblemError(
                "unknown_pool",
                f"No pool `{_shortened(name)}` is configured, and no queue has that name. Check the spelling, or "
                "name it under pools in the configuration. GET /v1/pools lists those that are known.",
            )
        return _depth_response(fresh.snapshot, depth, fresh.age_seconds)

    async def _queues(self, _: str, scope: Scope) -> Response:
        return await self._page("queues", self._queue_names, Snapshot.queue, scope)

    async def _pools(self, _: str, scope: Scope) -> Response:
        return await self._page("pools", self._pool_names, Snapshot.pool, scope)

    async def _page(
        self,
        field: str,
        names_in_order: NamesInOrder,
        look_up: Callable[[Snapshot, str], PoolDepth | None],
        scope: Scope,
    ) -> Response:
        query = QueryParams(scope["query_string"])
        after, limit = query.get("after", ""), _limit(query.get("limit"))
        fresh = self._store.fresh()
        snapshot, age = fresh.snapshot, fresh.age_seconds
        names, following = names_in_order.page(snapshot, after=after, limit=limit)
        items = []
        for begin in range(0, len(names), _AT_ONCE):
            depths = (look_up(snapshot, name) for name in names[begin : begin + _AT_ONCE])
            items += [_depth_body(snapshot, depth, age) for depth in depths if depth is not None]
            await asyncio.sleep(0)
        return _json(page_json(field, items, following))

    async def _metrics(self, _: str, scope: Scope) -> Response:
        accept = b", ".join(value for name, value in scope["headers"] if name == b"accept").decode("latin-1")
        # Thousands of series take longer to write than a trigger's answer may wait.
        body, content_type = await asyncio.to_thread(self._exposition.render, accept or None)
        return Response(body, headers={"Content-Type": content_type, **_NO_STORE})

    async def _livez(self, _: str, __: Scope) -> Response:
        return _probe(*health.liveness(self._store, self._refresh_seconds))

    async def _readyz(self, _: str, scope: Scope) -> Response:
        if "verbose" not in QueryParams(scope["query_string"]):
            return _probe(*health.readiness(self._store))
        self._authorize(scope)
        return _probe(*await asyncio.to_thread(health.explanation, self._store))


def _depth_body(snapshot: Snapshot, depth: PoolDepth, age_seconds: float) -> bytes:
    return depth_json(depth, observed_at_ms=snapshot.read.observed_at_ms, age_seconds=age_seconds)


def _depth_response(snapshot: Snapshot, depth: PoolDepth, age_seconds: float) -> Response:
    return _json(_depth_body(snapshot, depth, age_seconds))


def _json(body: bytes) -> Response:
    return Response(body, media_type="application/json", headers=_NO_STORE)


def _probe(ok: bool, text: str) -> Response:  # noqa: FBT001  unpacked from what `health` answers
    return PlainTextResponse(text, status_code=200 if ok else 503, headers=_NO_STORE)


def _limit(given: str | None) -> int:
    if given is None:
        return _PAGE
    if not re.fullmatch(r"[0-9]{1,4}", given) or not 1 <= int(given) <= _PAGE:
        raise ProblemError("bad_request", f"limit must be a whole number from 1 to {_PAGE}.")
    return int(given)


def _shortened(name: str) -> str:
    most = 200
    return name if len(name) <= most else f"{name[:most]}…"
