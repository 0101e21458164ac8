"""Linux namespaces and mounts, as system calls. `os.unshare` and `os.setns` come with Python 3.12 only."""

from __future__ import annotations

import ctypes
import os
import signal
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pathlib import Path

# <linux/sched.h>
MOUNTS = 0x00020000
HOST_NAME = 0x04000000
IPC = 0x08000000
PROCESSES = 0x20000000
NETWORK = 0x40000000

# <sys/mount.h>
READ_ONLY = 0x0001
REMOUNT = 0x0020
BIND = 0x1000
RECURSIVE = 0x4000
PRIVATE = 0x40000

# <sys/prctl.h>
_SET_PARENT_DEATH_SIGNAL = 1
_SET_NO_NEW_PRIVILEGES = 38

_libc = ctypes.CDLL(None, use_errno=True)


def unshare(namespaces: int) -> None:
    """Leave these namespaces for new ones; of processes, only for children to come."""
    _call("unshare", namespaces)


def enter_network(name: str) -> None:
    """Enter a network namespace that `ip netns add` has made."""
    descriptor = os.open(f"/run/netns/{name}", os.O_RDONLY)
    _call("setns", descriptor, NETWORK)
    os.close(descriptor)


def mount(source: Path | str, target: Path | str, kind: str = "", flags: int = 0, options: str = "") -> None:
    """Mount a file system."""
    _call("mount", *(ctypes.c_char_p(os.fsencode(word)) for word in (source, target, kind)), flags, options.encode())


def bind(source: Path | str, target: Path | str, *, read_only: bool = False) -> None:
    """Show a folder or file, with what is mounted below it, in another place."""
    mount(source, target, flags=BIND | RECURSIVE)
    if read_only:
        make_read_only(target)


def make_read_only(target: Path | str) -> None:
    """Make one mount read-only, and nothing else that shows the same file system."""
    mount("none", target, flags=REMOUNT | BIND | READ_ONLY)


def keep_mounts_private() -> None:
    """Mounts and unmounts from here on are nobody else's."""
    mount("none", "/", flags=RECURSIVE | PRIVATE)


def pivot(root: Path) -> None:
    """Make a mounted folder the root, and forget the old one."""
    os.chdir(root)
    _call("pivot_root", b".", b".")
    _call("umount2", b".", 2)  # MNT_DETACH
    os.chdir("/")


def die_with_parent() -> None:
    """Be killed when the parent ends, however it ends."""
    _call("prctl", _SET_PARENT_DEATH_SIGNAL, int(signal.SIGKILL), 0, 0, 0)


def gain_no_privileges() -> None:
    """Let no program that is executed from here on have more rights than its caller (`allowPrivilegeEscalation`)."""
    _call("prctl", _SET_NO_NEW_PRIVILEGES, 1, 0, 0, 0)


def _call(name: str, *arguments: object) -> None:
    if getattr(_libc, name)(*arguments) != 0:
        error = ctypes.get_errno()
        raise OSError(error, f"{name}: {os.strerror(error)}")
