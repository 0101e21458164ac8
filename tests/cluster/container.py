"""One container: `python -m cluster.container FOLDER` runs what `FOLDER/container.json` says.

The machine's own root file system lies below, read-only, with a layer above it that belongs to the container, so that
an image is no more than a command. Process ids, mounts and host name are its own, the network is its pod's; it runs as
the user its security context names. Killed, it takes all its processes along; SIGTERM goes to its first process only,
which like in any container ignores it unless it has a handler.
"""

from __future__ import annotations

import json
import os
import signal
import sys
import traceback
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import NoReturn

from cluster import namespaces

SPEC = "container.json"
PID = "pid"

DEVICES = ("null", "zero", "full", "random", "urandom", "tty")


@dataclass(frozen=True, slots=True)
class Mount:
    """A folder or file of the machine, shown in the container."""

    source: str
    target: str
    read_only: bool = False


@dataclass(frozen=True, slots=True)
class Container:
    """What runs, as whom, and what it sees.

    Attributes:
        network: Name of the pod's network namespace.
        host_name: The pod's name.
        command: Program and arguments.
        environment: All of its environment.
        folder: Working directory.
        user: User id.
        group: Group id.
        groups: Further groups.
        image: Folders of the image, in the places where the machine has them.
        hosts: The file shown as /etc/hosts.
        mounts: Volumes.
        read_only: Whether the root file system is.
    """

    network: str
    host_name: str
    command: list[str]
    environment: dict[str, str]
    folder: str
    user: int
    group: int
    groups: list[int]
    image: list[str]
    hosts: str
    mounts: list[Mount] = field(default_factory=list)
    read_only: bool = False

    def write(self, folder: Path) -> None:
        """Leave it where `main` finds it."""
        (folder / PID).unlink(missing_ok=True)
        (folder / SPEC).write_text(json.dumps(asdict(self)))

    @classmethod
    def read(cls, folder: Path) -> Container:
        """Read what `write` wrote."""
        written = json.loads((folder / SPEC).read_text())
        return cls(**{**written, "mounts": [Mount(**mount) for mount in written["mounts"]]})


def main() -> int:
    """Run the container and return its exit code, 128 and the signal's number for one that was killed."""
    folder = Path(sys.argv[1])
    container = Container.read(folder)
    namespaces.die_with_parent()
    namespaces.enter_network(container.network)
    namespaces.unshare(namespaces.PROCESSES | namespaces.HOST_NAME | namespaces.IPC)
    signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGTERM})
    first = os.fork()
    if first == 0:
        _become(container, folder)
    signal.signal(signal.SIGTERM, lambda *_: os.kill(first, signal.SIGTERM))
    signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGTERM})
    (folder / PID).write_text(str(first))
    _, status = os.waitpid(first, 0)
    code = os.waitstatus_to_exitcode(status)
    return code if code >= 0 else 128 - code


def _become(container: Container, folder: Path) -> NoReturn:
    try:
        namespaces.die_with_parent()
        # Only now: a pivot changes the root of every process that shares the mounts.
        namespaces.unshare(namespaces.MOUNTS)
        root = _root(container, folder)
        # Python's own: the program inherits what is ignored and what is blocked.
        signal.signal(signal.SIGPIPE, signal.SIG_DFL)
        signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGTERM})
        namespaces.pivot(root)
        os.chdir(container.folder)
        os.setgroups(container.groups)
        os.setresgid(container.group, container.group, container.group)
        os.setresuid(container.user, container.user, container.user)
        namespaces.die_with_parent()  # a change of user takes it back
        namespaces.gain_no_privileges()
        os.execvpe(container.command[0], container.command, container.environment)  # noqa: S606 - a manifest's command
    except BaseException:  # noqa: BLE001 - a forked process must not return into its parent's code
        traceback.print_exc()
    finally:
        os._exit(127)


def _root(container: Container, folder: Path) -> Path:
    namespaces.keep_mounts_private()
    layers = folder / "layers"
    layers.mkdir(exist_ok=True)
    namespaces.mount("layers", layers, "tmpfs")
    for name in ("changes", "work", "root"):
        (layers / name).mkdir()
    root = layers / "root"
    options = f"lowerdir=/,upperdir={layers}/changes,workdir={layers}/work"
    namespaces.mount("root", root, "overlay", options=options)
    # What lies there on this machine is none of an image's.
    for place in ("tmp", "run"):
        namespaces.mount(place, root / place, "tmpfs")
    (root / "tmp").chmod(0o1777)
    for image in container.image:
        target = _place(root, image, folder=True)
        for parent in target.relative_to(root).parents:
            inside = root / parent
            inside.chmod(inside.stat().st_mode | 0o111)  # an image is no matter of root's home
        namespaces.bind(image, target, read_only=True)
    namespaces.mount("proc", root / "proc", "proc")
    _devices(root)
    (root / "etc/resolv.conf").unlink(missing_ok=True)
    (root / "etc/resolv.conf").touch()
    (root / "etc/hosts").unlink(missing_ok=True)
    namespaces.bind(container.hosts, _place(root, "/etc/hosts", folder=False), read_only=True)
    (root / "etc/hostname").write_text(container.host_name)
    targets = [_place(root, shown.target, folder=Path(shown.source).is_dir()) for shown in container.mounts]
    if container.read_only:
        for part in (root, root / "tmp", root / "run"):
            namespaces.make_read_only(part)
    for target, shown in zip(targets, container.mounts, strict=True):
        namespaces.bind(shown.source, target, read_only=shown.read_only)
    return root


def _place(root: Path, inside: str, *, folder: bool) -> Path:
    """Make where something is mounted, following the image's symbolic links (/var/run) within the image."""
    place = root
    for part in Path(inside).parts[1:]:
        place /= part
        if place.is_symlink():
            link = place.readlink()
            place = root / link.relative_to("/") if link.is_absolute() else place.parent / link
    if folder:
        place.mkdir(parents=True, exist_ok=True)
    else:
        place.parent.mkdir(parents=True, exist_ok=True)
        place.touch()
    return place


def _devices(root: Path) -> None:
    originals = {name: Path("/dev") / name for name in DEVICES}
    namespaces.mount("dev", root / "dev", "tmpfs")
    for name, original in originals.items():
        (root / "dev" / name).touch()
        namespaces.bind(original, root / "dev" / name)
    for link, target in (("fd", "/proc/self/fd"), ("stdout", "/proc/self/fd/1"), ("stderr", "/proc/self/fd/2")):
        (root / "dev" / link).symlink_to(target)
    (root / "dev/shm").mkdir(mode=0o1777)
    (root / "dev/shm").chmod(0o1777)


if __name__ == "__main__":
    sys.exit(main())
