"""Waiting for a condition with a deadline, in place of sleeping and hoping."""

from __future__ import annotations

import asyncio
import time
from typing import TYPE_CHECKING, TypeVar

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

T = TypeVar("T")

INTERVAL_SECONDS = 0.02


def wait_until(
    condition: Callable[[], T], timeout: float = 10.0, message: str = "", interval: float = INTERVAL_SECONDS
) -> T:
    """Call the condition until it answers something true, and return that answer.

    Args:
        condition: What is waited for. An exception it raises ends the wait at once.
        timeout: Seconds until the wait is given up.
        message: What was waited for, in words, for the error.
        interval: Seconds between calls, where each costs somebody something.

    Raises:
        TimeoutError: The condition was still false at the deadline; carries its last answer.
    """
    deadline = time.monotonic() + timeout
    while True:
        answer = condition()
        if answer:
            return answer
        if time.monotonic() > deadline:
            raise TimeoutError(_given_up(condition, timeout, message, answer))
        time.sleep(interval)


async def wait_until_async(
    condition: Callable[[], Awaitable[T]],
    timeout: float = 10.0,  # noqa: ASYNC109 - the deadline comes with a message that asyncio.timeout lacks
    message: str = "",
) -> T:
    """Like `wait_until` for a coroutine function, without blocking the event loop."""
    deadline = time.monotonic() + timeout
    while True:
        answer = await condition()
        if answer:
            return answer
        if time.monotonic() > deadline:
            raise TimeoutError(_given_up(condition, timeout, message, answer))
        await asyncio.sleep(INTERVAL_SECONDS)


def _given_up(condition: object, timeout: float, message: str, answer: object) -> str:
    what = message or getattr(condition, "__qualname__", repr(condition))
    return f"{what} did not come true within {timeout} s; the last answer was {answer!r}"
