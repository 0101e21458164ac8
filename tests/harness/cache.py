"""The folder, outside the tree, where downloaded tools and built environments outlive a test run."""

from __future__ import annotations

import fcntl
import os
import shutil
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

MARKER = ".complete"


def cache_folder() -> Path:
    """Return the cache folder: `QUEUE_DEPTH_TEST_CACHE`, or a default the database user can read.

    PostgreSQL refuses to run as root and then runs as another user, who cannot look into root's home:
    hence `/var/cache` for root and `~/.cache` for everyone else.
    """
    chosen = os.environ.get("QUEUE_DEPTH_TEST_CACHE")
    if chosen:
        return Path(chosen).absolute()
    home = Path("/var/cache") if os.geteuid() == 0 else Path.home() / ".cache"
    return home / "queue-depth-tests"


def cached(name: str, build: Callable[[Path], None]) -> Path:
    """Return the cache's folder of that name, built on first use.

    Safe between processes: one builds, the others wait. A build that failed or was interrupted leaves no
    marker and starts afresh the next time.

    Args:
        name: Folder name; it must carry the version of what is in it.
        build: Fills the folder, which exists and is empty. It is built in place, because virtual
            environments cannot be moved.
    """
    folder = cache_folder() / name
    if (folder / MARKER).exists():
        return folder
    folder.parent.mkdir(parents=True, exist_ok=True)
    with exclusive(folder.with_name(f"{folder.name}.lock")):
        if not (folder / MARKER).exists():
            shutil.rmtree(folder, ignore_errors=True)
            folder.mkdir()
            build(folder)
            (folder / MARKER).touch()
    return folder


@contextmanager
def exclusive(lock_file: Path) -> Iterator[None]:
    """Hold a lock between processes, which the kernel drops when its holder dies."""
    with lock_file.open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield
