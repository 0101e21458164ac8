"""Programs out of Debian's packages, unpacked into the cache and not installed."""

from __future__ import annotations

import os
import shutil
from functools import partial
from pathlib import Path

from harness.cache import cached
from harness.program import ProgramFailedError, run


class ToolMissingError(AssertionError):
    """A program the tests need is neither installed nor to be had from Debian; the message says which."""


def program(package: str, path: str, libraries: tuple[str, ...] = ()) -> tuple[Path, dict[str, str]]:
    """Return a program and the environment that it runs in.

    What is on PATH is taken first. Otherwise the Debian package is downloaded (by `apt-get`, no root needed) and
    unpacked into the cache.

    Args:
        package: Name of the Debian package.
        path: The program inside the package, such as `usr/bin/promtool`.
        libraries: Beginnings of the names of those of its dependencies that it needs beside it.

    Raises:
        ToolMissingError: Says what to install.
    """
    name = Path(path).name
    installed = shutil.which(name) or shutil.which(name, path="/usr/sbin:/sbin")
    if installed:
        return Path(installed), dict(os.environ)
    if not all(map(shutil.which, ("apt-get", "apt-cache", "dpkg-deb"))):
        raise ToolMissingError(f"The tests need {name}: put it on PATH (Debian's package: {package}).")
    folder = cached(f"debian-{package}", partial(_unpack, package, libraries))
    found = [str(libs) for libs in (folder / "root/usr/lib").glob("*-linux-gnu") if libs.is_dir()]
    return folder / "root" / path, {**os.environ, "LD_LIBRARY_PATH": os.pathsep.join(found)}


def _unpack(package: str, libraries: tuple[str, ...], folder: Path) -> None:
    lists = folder / "lists"
    (lists / "partial").mkdir(parents=True)
    # A package list of our own: the machine's may be missing or old, and is root's to renew.
    options = ["-o", f"Dir::State::Lists={lists}", "-o", f"Dir::Cache={folder}", "-o", "APT::Sandbox::User="]
    try:
        run(["apt-get", *options, "--quiet", "update"])
        wanted = [package]
        if libraries:
            depends = run(["apt-cache", *options, "depends", package]).splitlines()
            names = [line.split()[-1] for line in depends if line.strip().startswith("Depends:")]
            wanted += [dependency for dependency in names if dependency.startswith(libraries)]
        run(["apt-get", *options, "--quiet", "download", *wanted], cwd=folder)
    except ProgramFailedError as failure:
        raise ToolMissingError(
            f"The tests need Debian's package {package}, and it could not be downloaded."
            f" Install it yourself (apt-get install {package}).\n{failure}"
        ) from failure
    for archive in folder.glob("*.deb"):
        run(["dpkg-deb", "--extract", archive, folder / "root"])
        archive.unlink()
    shutil.rmtree(lists)
    for path in (folder / "root").rglob("*"):
        if not path.is_symlink():
            path.chmod(path.stat().st_mode | (0o555 if path.is_dir() else 0o444))
