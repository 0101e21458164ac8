"""What one connection may cost, over a real socket: no client makes the exporter keep more than it needs to answer."""

from __future__ import annotations

import asyncio
import json
import socket
from contextlib import asynccontextmanager, suppress
from typing import TYPE_CHECKING, Any

import pytest
import uvloop

from harness.waiting import wait_until_async
from queue_depth import wiring
from queue_depth.settings.model import Listen

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable, Coroutine, Iterable

    from starlette.types import ASGIApp, Receive, Scope, Send

MEBIBYTE = 1 << 20

READ_AT_ONCE = 256 * 1024
"""Bytes that uvloop and asyncio hand over at most in one go."""

GET = b"GET / HTTP/1.1\r\nHost: x\r\n"


async def answer_ok(_: Scope, __: Receive, send: Send) -> None:
    await send({"type": "http.response.start", "status": 200, "headers": [(b"content-length", b"2")]})
    await send({"type": "http.response.body", "body": b"ok"})


@asynccontextmanager
async def served(app: ASGIApp) -> AsyncIterator[tuple[wiring.Server, int]]:
    server = wiring.server_of(app)
    listener = wiring.listening(Listen("127.0.0.1", 0))
    serving = asyncio.create_task(server.serve(sockets=[listener]))

    async def has_started() -> bool:
        return server.started

    await wait_until_async(has_started, message="the server has started")
    try:
        yield server, listener.getsockname()[1]
    finally:
        server.stop()
        server.stop()
        await serving


def on_uvloop(test: Callable[..., Coroutine[Any, Any, None]], *arguments: object) -> None:
    """As the exporter runs; pytest's own loop reads in pieces of another size."""
    uvloop.run(test(*arguments))


def send_without_end(port: int, opening: bytes, filler: bytes) -> tuple[int, bytes]:
    """Send up to 16 MiB, or until the connection breaks; give how much was sent, and what came back."""
    sent, answer = len(opening), b""
    with socket.create_connection(("127.0.0.1", port), timeout=10) as client:
        with suppress(ConnectionError):
            client.sendall(opening)
            while sent < 16 * MEBIBYTE:
                client.sendall(filler)
                sent += len(filler)
        with suppress(ConnectionError, TimeoutError):
            client.settimeout(2)
            while received := client.recv(MEBIBYTE):
                answer += received
    return sent, answer


CHUNKED = b"POST / HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n"


@pytest.mark.parametrize(
    ("opening", "filler"),
    [
        pytest.param(GET, b"X-Filler: " + b"x" * 8000 + b"\r\n", id="headers without end"),
        pytest.param(GET + b"X-Filler: ", b"x" * 8000, id="one header without end"),
        pytest.param(b"GET /", b"x" * 8000, id="a path without end"),
        pytest.param(GET + b"\r\n" + GET, b"X-Filler: " + b"x" * 8000 + b"\r\n", id="headers of a second request"),
        pytest.param(CHUNKED + b"0\r\n", b"X-Filler: " + b"x" * 8000 + b"\r\n", id="trailers without end"),
        pytest.param(CHUNKED + b"1;", b"x" * 8000, id="a chunk's extension without end"),
    ],
)
def test_a_head_without_end_is_refused(opening: bytes, filler: bytes) -> None:
    on_uvloop(head_is_refused, opening, filler)


async def head_is_refused(opening: bytes, filler: bytes) -> None:
    async with served(answer_ok) as (_, port):
        sent, answer = await asyncio.to_thread(send_without_end, port, opening, filler)
    assert sent < 16 * MEBIBYTE
    head, _, body = answer[answer.rindex(b"HTTP/1.1 ") :].partition(b"\r\n\r\n")
    assert head.startswith(b"HTTP/1.1 400 ")
    assert b"\r\nconnection: close" in head.lower()
    assert b"\r\ncontent-type: application/problem+json" in head.lower()
    assert json.loads(body)["reason"] == "bad_request"
    assert "65536" in json.loads(body)["detail"]


def test_what_is_no_http_is_a_problem_too() -> None:
    on_uvloop(no_http_is_a_problem)


async def no_http_is_a_problem() -> None:
    async with served(answer_ok) as (_, port):
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        writer.write(b"\x16\x03\x01 hello\r\n\r\n")
        head, _, body = (await asyncio.wait_for(reader.read(), 5)).partition(b"\r\n\r\n")
        writer.close()
    assert head.startswith(b"HTTP/1.1 400 Bad Request\r\n")
    assert b"\r\ndate: " in head
    assert f"content-length: {len(body)}".encode() in head
    assert json.loads(body)["status"] == 400


def test_a_connection_that_is_kept_alive_may_send_any_number_of_requests() -> None:
    on_uvloop(many_requests)


async def many_requests() -> None:
    request = GET + b"X-Filler: " + b"x" * 30_000 + b"\r\n\r\n"
    async with served(answer_ok) as (_, port):
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        for _ in range(10):
            writer.write(request)
            assert (await asyncio.wait_for(reader.readuntil(b"ok"), 5)).startswith(b"HTTP/1.1 200 ")
        for _ in range(10):  # all at once
            writer.write(request)
        for _ in range(10):
            assert (await asyncio.wait_for(reader.readuntil(b"ok"), 5)).startswith(b"HTTP/1.1 200 ")
        writer.close()


@pytest.mark.parametrize(
    ("head", "piece"),
    [
        (b"POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 4194304\r\n\r\n", b"x" * MEBIBYTE),
        (CHUNKED, b"100000\r\n" + b"x" * MEBIBYTE + b"\r\n"),
    ],
)
def test_a_long_body_is_dropped_and_the_connection_goes_on(head: bytes, piece: bytes) -> None:
    on_uvloop(long_body, head, piece)


async def long_body(head: bytes, piece: bytes) -> None:
    async with served(answer_ok) as (_, port):
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        writer.write(head + piece * 4 + (b"0\r\n\r\n" if head == CHUNKED else b""))
        assert (await asyncio.wait_for(reader.readuntil(b"ok"), 5)).startswith(b"HTTP/1.1 200 ")
        writer.write(GET + b"\r\n")
        assert (await asyncio.wait_for(reader.readuntil(b"ok"), 5)).startswith(b"HTTP/1.1 200 ")
        writer.close()


def test_a_body_that_nobody_reads_stays_with_its_sender() -> None:
    on_uvloop(body_waits)


async def body_waits() -> None:
    may_answer = asyncio.Event()

    async def answer_late(scope: Scope, receive: Receive, send: Send) -> None:
        await may_answer.wait()
        await answer_ok(scope, receive, send)

    async with served(answer_late) as (server, port):
        _, writer = await asyncio.open_connection("127.0.0.1", port)
        writer.write(b"POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 67108864\r\n\r\n" + bytes(64 * MEBIBYTE))
        connection = await the_connection_that_is_not_read(server)
        assert len(connection.cycle.body) <= 64 * 1024 + READ_AT_ONCE
        writer.transport.abort()
        may_answer.set()


def test_requests_that_are_sent_ahead_are_read_only_as_fast_as_they_are_answered() -> None:
    on_uvloop(requests_sent_ahead)


async def requests_sent_ahead() -> None:
    request = GET + b"\r\n"
    answered, may_go_on = 0, asyncio.Event()

    async def answer_some(scope: Scope, receive: Receive, send: Send) -> None:
        nonlocal answered
        answered += 1
        if answered == 50:
            await may_go_on.wait()
        await answer_ok(scope, receive, send)

    async with served(answer_some) as (server, port):
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        writer.write(request * (4 * MEBIBYTE // len(request)))
        for _ in range(49):
            await asyncio.wait_for(reader.readuntil(b"ok"), 5)
        connection = await the_connection_that_is_not_read(server)
        assert len(connection.pipeline) <= 2 * READ_AT_ONCE // len(request)
        writer.transport.abort()
        may_go_on.set()


async def the_connection_that_is_not_read(server: wiring.Server) -> Any:  # noqa: ANN401 - uvicorn's
    async def found() -> list[Any]:
        connections: Iterable[Any] = server.server_state.connections
        return [connection for connection in connections if connection.flow.read_paused]

    (connection,) = await wait_until_async(found, message="the server reads no more")
    return connection
