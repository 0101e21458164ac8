"""What is made before the sandbox, which has no network, and is found again within it."""

from __future__ import annotations

import json
import os
from dataclasses import asdict, dataclass
from pathlib import Path

from cluster.images import Image
from cluster.programs import Pair, Programs

VARIABLE = "TEST_CLUSTER"


@dataclass(frozen=True, slots=True)
class Prepared:
    """A cluster that can be started.

    Attributes:
        pair: The versions.
        programs: The programs.
        exporter: The image with the built wheel.
        folder: A folder that is gone with the sandbox.
        logs: A folder that is kept when the command fails.
    """

    pair: Pair
    programs: Programs
    exporter: Image
    folder: Path
    logs: Path

    def leave(self) -> None:
        """Leave it where `found` finds it."""
        path = self.folder / "prepared.json"
        path.write_text(json.dumps(asdict(self), default=str))
        os.environ[VARIABLE] = str(path)


def found() -> Prepared | None:
    """Return what was prepared for this process; None outside of `python -m cluster`."""
    path = os.environ.get(VARIABLE)
    if path is None:
        return None
    written = json.loads(Path(path).read_text())
    programs = {name: Path(place) for name, place in written["programs"].items()}
    return Prepared(
        Pair(**written["pair"]),
        Programs(**programs),
        Image(**written["exporter"]),
        Path(written["folder"]),
        Path(written["logs"]),
    )
