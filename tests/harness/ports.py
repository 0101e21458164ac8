"""Loopback ports that are nobody else's, however many test processes choose one at once."""

from __future__ import annotations

import random
import socket
from dataclasses import dataclass

HOST = "127.0.0.1"

# Outside of Linux's range for outgoing connections, so that nobody takes a stopped server's port.
CANDIDATES = range(20000, 32000)


@dataclass(frozen=True, slots=True)
class ClaimedPort:
    """A port that stays ours until `release`, also while no server listens on it.

    The claim is a socket with an abstract name, which one process can hold at a time and which the kernel drops
    with the process.
    """

    number: int
    claim: socket.socket

    def release(self) -> None:
        """Give the port up."""
        self.claim.close()


def claim_port() -> ClaimedPort:
    """Claim a loopback TCP port that nobody listens on."""
    while True:
        port = random.choice(CANDIDATES)  # noqa: S311 - not a secret
        claim = socket.socket(socket.AF_UNIX)
        try:
            claim.bind(f"\0queue-depth-tests-port-{port}")
            with socket.socket() as probe:
                probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
                probe.bind((HOST, port))
        except OSError:
            claim.close()
            continue
        return ClaimedPort(port, claim)
