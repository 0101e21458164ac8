"""Images: names for commands on this machine."""

from __future__ import annotations

import json
import sys
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING

from uv import find_uv_bin

from harness.program import run

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from cluster.programs import Programs

NOBODY_SPECIAL = 65532


@dataclass(frozen=True, slots=True)
class Image:
    """What a container of this image runs, where its manifest does not say otherwise.

    Attributes:
        entrypoint: Program and first arguments.
        folders: What it consists of, besides the machine's root file system.
        links: Paths in the container that are links to files of this machine.
        user: The user id it runs as.
    """

    entrypoint: list[str]
    folders: list[str]
    links: dict[str, str]
    user: int = NOBODY_SPECIAL


Images = dict[str, Image]
"""Images by repository: what stands in a manifest's `image` before the tag, which is ignored."""


def write_images(path: Path, images: Mapping[str, Image]) -> None:
    """Leave images where the node finds them."""
    path.write_text(json.dumps({repository: asdict(image) for repository, image in images.items()}))


def read_images(path: Path) -> Images:
    """Read what `write_images` wrote."""
    return {repository: Image(**written) for repository, written in json.loads(path.read_text()).items()}


def repository(reference: str) -> str:
    """Return an image's name without tag and digest."""
    name = reference.partition("@")[0]
    head, slash, last = name.rpartition("/")
    return head + slash + last.partition(":")[0]


def python_image(*entrypoint: str | Path, environment: Path, folders: tuple[Path, ...] = ()) -> Image:
    """Return an image of a Python program.

    Args:
        entrypoint: Program and first arguments.
        environment: Its virtual environment.
        folders: What else it reads.
    """
    needed = (environment, sys.base_prefix, *folders)
    return Image([str(word) for word in entrypoint], [str(folder) for folder in needed], {})


def install_exporter(project: Path, folder: Path) -> Image:
    """Build the project's wheel and install it, and nothing else, as the image of the exporter would."""
    uv = find_uv_bin()
    run([uv, "build", "--quiet", "--wheel", "--out-dir", folder / "wheel", project])
    (wheel,) = (folder / "wheel").glob("*.whl")
    environment = folder / "exporter"
    run([uv, "venv", "--quiet", "--python", sys.executable, environment])
    run([uv, "pip", "install", "--quiet", "--python", environment / "bin/python", wheel])
    return python_image(environment / "bin/queue-depth", environment=environment)


def keda_images(programs: Programs) -> Images:
    """Return KEDA's images, with its programs where its manifests look for them."""
    links = {f"/{program.name}": str(program) for program in programs.keda.iterdir()}
    return {
        f"ghcr.io/kedacore/{name}": Image([], [str(programs.keda)], links)
        for name in ("keda", "keda-metrics-apiserver", "keda-admission-webhooks")
    }
