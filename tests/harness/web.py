"""The HTTP application over a store, asked in-process."""

from __future__ import annotations

from contextlib import asynccontextmanager
from typing import TYPE_CHECKING

import httpx

from queue_depth.metrics.exposition import MetricsExposition
from queue_depth.web.app import create_app

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from starlette.types import ASGIApp

    from queue_depth.store import SnapshotStore
    from queue_depth.web.auth import TokenFile

REFRESH_SECONDS = 5.0


def app_over(store: SnapshotStore, *, tokens: TokenFile | None = None) -> ASGIApp:
    """Return the application, with real metrics."""
    exposition = MetricsExposition(store, label_limit=100)
    return create_app(store=store, exposition=exposition, tokens=tokens, refresh_seconds=REFRESH_SECONDS)


@asynccontextmanager
async def client_of(app: ASGIApp) -> AsyncIterator[httpx.AsyncClient]:
    """Give a client that calls the application without a socket; an exception in it is the test's."""
    transport = httpx.ASGITransport(app)
    async with httpx.AsyncClient(transport=transport, base_url="http://exporter") as client:
        yield client
