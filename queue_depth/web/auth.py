"""Who may ask: bearer tokens from a file that may change at any time."""

import hmac
import logging
import time
from collections.abc import Callable, Iterable
from pathlib import Path

_log = logging.getLogger(__name__)

_CHECK_SECONDS = 1.0


class TokenFile:
    """The tokens in a file: one a line, blank lines and `#` comments aside.

    All of them are valid, so that a new one can be added before an old one goes. A file that is missing, unreadable
    or empty lets nobody in.

    Args:
        path: The file. Kubernetes replaces a mounted Secret by swapping symbolic links, which is noticed too.
        monotonic: A clock in seconds; the file is looked at no more than once a second.
    """

    def __init__(self, path: Path, *, monotonic: Callable[[], float] = time.monotonic) -> None:
        self._path = path
        self._monotonic = monotonic
        self._checked_at = -_CHECK_SECONDS
        self._seen: tuple[int, ...] | None = None
        self._tokens: tuple[bytes, ...] = ()
        self._said = ""
        self._current()  # so that a missing file is told at the start

    def accepts(self, presented: Iterable[bytes]) -> bool:
        """Whether one of the presented tokens is valid, in a time that does not depend on how much of it is right."""
        tokens = self._current()
        matches = [hmac.compare_digest(one, token) for one in presented for token in tokens]
        return any(matches)

    def _current(self) -> tuple[bytes, ...]:
        now = self._monotonic()
        if now - self._checked_at >= _CHECK_SECONDS:
            self._checked_at = now
            try:
                self._reread()
            except OSError as error:
                self._seen, self._tokens = None, ()
                self._say(f"cannot be read ({error.strerror}): every request is refused until it can", logging.ERROR)
        return self._tokens

    def _reread(self) -> None:
        status = self._path.stat()
        seen = (status.st_dev, status.st_ino, status.st_mtime_ns, status.st_size)
        if seen == self._seen:
            return
        lines = (line.strip() for line in self._path.read_bytes().splitlines())
        self._tokens = tuple(line for line in lines if line and not line.startswith(b"#"))
        self._seen = seen
        if self._tokens:
            self._say(f"holds {len(self._tokens)} tokens", logging.INFO)
        else:
            self._say("holds no token: every request is refused until one is added, one a line", logging.ERROR)

    def _say(self, what: str, level: int) -> None:
        if what != self._said:
            self._said = what
            _log.log(level, "tokens file %s %s", self._path, what)


def presented_tokens(headers: Iterable[tuple[bytes, bytes]]) -> list[bytes]:
    """What a request presents: `Authorization: Bearer …` and `X-API-KEY: …`, the two ways of KEDA's metrics-api.

    Args:
        headers: The request's headers as ASGI has them, names in lower case.
    """
    found = []
    for name, value in headers:
        if name == b"x-api-key":
            found.append(value.strip())
        elif name == b"authorization":
            scheme, _, token = value.strip().partition(b" ")
            if scheme.lower() == b"bearer":
                found.append(token.strip())
    return found
