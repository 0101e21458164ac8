"""What only a real server and a real socket show."""

from __future__ import annotations

import asyncio
import json
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING

import pytest

from harness.reads import enqueued, read
from harness.stores import store_of
from harness.waiting import wait_until_async
from harness.web import app_over
from queue_depth import wiring
from queue_depth.settings.model import Listen

if TYPE_CHECKING:
    from collections.abc import AsyncIterator


@asynccontextmanager
async def served() -> AsyncIterator[int]:
    """Serve queues named `emails` and `..` on a free port, as the exporter does."""
    app = app_over(store_of(read(enqueued(1, "emails"), enqueued(1, ".."), enqueued(1, "a/b"), limits={})))
    server = wiring.server_of(app)
    listener = wiring.listening(Listen("127.0.0.1", 0))
    serving = asyncio.create_task(server.serve(sockets=[listener]))

    async def has_started() -> bool:
        return server.started or serving.done()

    await wait_until_async(has_started, message="the server")
    yield listener.getsockname()[1]
    server.stop()
    await serving


async def exchange(port: int, request: bytes) -> tuple[bytes, bytes]:
    """Send bytes, and give the head and the body that come until the server closes."""
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    writer.write(request)
    answer = await asyncio.wait_for(reader.read(), 10)
    writer.close()
    await writer.wait_closed()
    head, _, body = answer.partition(b"\r\n\r\n")
    return head, body


def get(path: str, method: str = "GET", body: str = "") -> bytes:
    length = f"Content-Length: {len(body)}\r\n" if body else ""
    return f"{method} {path} HTTP/1.1\r\nHost: x\r\n{length}Connection: close\r\n\r\n{body}".encode()


@pytest.mark.parametrize(
    ("path", "name"),
    [
        ("/v1/queues/emails", "emails"),
        ("/v1/queues/..", ".."),
        ("/v1/queues/%2e%2E", ".."),
        ("/dbos-queue-depth/a%2fb", "a/b"),
        ("http://x/v1/pools/a%2Fb?api_key=1", "a/b"),
    ],
)
async def test_the_raw_path_is_the_name(path: str, name: str) -> None:
    async with served() as port:
        head, body = await exchange(port, get(path))
    assert head.startswith(b"HTTP/1.1 200 ")
    assert json.loads(body)["name"] == name


@pytest.mark.parametrize("path", ["/v1/queues/emails/", "/v1/queues/a/b", "/v1/queues/../queues/emails", "/v1/queues/"])
async def test_no_path_is_normalised_or_redirected(path: str) -> None:
    async with served() as port:
        head, body = await exchange(port, get(path))
    assert head.startswith(b"HTTP/1.1 404 ")
    assert json.loads(body)["reason"] == "not_found"


async def test_head_sends_the_headers_of_get_and_not_one_byte_more() -> None:
    async with served() as port:
        get_head, get_body = await exchange(port, get("/v1/queues/emails"))
        head, body = await exchange(port, get("/v1/queues/emails", "HEAD"))

    def without_date(lines: bytes) -> list[bytes]:
        return [line for line in lines.split(b"\r\n") if not line.startswith(b"date:")]

    assert without_date(head) == without_date(get_head)
    assert f"content-length: {len(get_body)}".encode() in head
    assert body == b""


async def test_a_connection_serves_many_requests_head_and_refused_bodies_among_them() -> None:
    async with served() as port:
        keep = b"Host: x\r\n"
        head, rest = await exchange(
            port,
            b"HEAD /v1/queues/emails HTTP/1.1\r\n"
            + keep
            + b"\r\nPOST /v1/queues/emails HTTP/1.1\r\n"
            + keep
            + b"Content-Length: 3\r\n\r\nabc"
            + get("/livez"),
        )
    assert head.startswith(b"HTTP/1.1 200 ")
    assert rest.startswith(b"HTTP/1.1 405 ")
    assert b"allow: GET, HEAD" in rest
    assert rest.endswith(b"\r\n\r\nok\n")
    assert rest.count(b"HTTP/1.1 200 ") == 1
