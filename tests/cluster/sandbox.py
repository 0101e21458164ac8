"""A machine of its own for one command: network, processes and mounts that end with it, however it ends.

No packet leaves it, no address or port in it is in anybody's way, several can stand side by side, and the kernel kills
every process in it and takes its network apart when the command, or whoever waits for it, is gone.
"""

from __future__ import annotations

import ipaddress
import os
import signal
import traceback
from typing import TYPE_CHECKING, NoReturn

from cluster import namespaces
from harness.program import run

if TYPE_CHECKING:
    from collections.abc import Sequence
    from types import FrameType

BRIDGE = "pods0"
HOST = "10.99.0.1"
PODS = ipaddress.ip_network("10.99.0.0/20")
SERVICES = ipaddress.ip_network("10.99.16.0/24")

EVERYTHING = namespaces.MOUNTS | namespaces.HOST_NAME | namespaces.IPC | namespaces.PROCESSES | namespaces.NETWORK


class SandboxError(Exception):
    """The sandbox cannot be made; the text says why and what is needed."""


def run_in_sandbox(command: Sequence[str]) -> int:
    """Run a command in a sandbox and return its exit code. This process can start no other one afterwards.

    SIGTERM and SIGINT reach the command as SIGINT, which pytest ends its fixtures on.

    Raises:
        SandboxError: Not allowed here.
    """
    try:
        namespaces.unshare(EVERYTHING)
    except OSError as error:
        raise SandboxError(
            f"cannot make namespaces ({error.strerror}): run as root, and in a container with the capabilities "
            "SYS_ADMIN and NET_ADMIN"
        ) from error
    first = os.fork()
    if first == 0:
        _be_first(command)

    def forward(number: int, _: FrameType | None) -> None:
        os.kill(first, number)

    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, forward)
    _, status = os.waitpid(first, 0)
    return os.waitstatus_to_exitcode(status)


def _be_first(command: Sequence[str]) -> NoReturn:
    """Be process 1: everything in the sandbox is killed when this one ends."""
    code = 70
    try:
        namespaces.die_with_parent()
        _prepare()
        child = os.fork()
        if child == 0:
            os.setsid()  # Ctrl-C comes through `forward`, once
            os.execvp(command[0], list(command))  # noqa: S606 - the caller's
        for number in (signal.SIGTERM, signal.SIGINT):
            signal.signal(number, lambda *_: os.kill(child, signal.SIGINT))
        code = _reap_until(child)
    except BaseException:  # noqa: BLE001 - a forked process must not return into its parent's code
        traceback.print_exc()
    finally:
        os._exit(code)


def _reap_until(child: int) -> int:
    while True:
        pid, status = os.wait()
        if pid == child:
            code = os.waitstatus_to_exitcode(status)
            return code if code >= 0 else 128 - code


def _prepare() -> None:
    namespaces.keep_mounts_private()
    namespaces.mount("proc", "/proc", "proc")
    namespaces.mount("run", "/run", "tmpfs")  # `ip netns` keeps its names there
    run(["ip", "link", "set", "lo", "up"])
    run(["ip", "link", "add", BRIDGE, "type", "bridge"])
    run(["ip", "addr", "add", f"{HOST}/{PODS.prefixlen}", "dev", BRIDGE])
    run(["ip", "link", "set", BRIDGE, "up"])
