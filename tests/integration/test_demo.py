"""`queue-depth demo` as a newcomer starts it, in a process of its own."""

from __future__ import annotations

import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import urllib.request
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from harness.waiting import wait_until
from queue_depth.demo.autoscaler import MOST_REPLICAS, Autoscaler
from queue_depth.demo.exporter import Depth

if TYPE_CHECKING:
    from collections.abc import Iterator

NUMBERS = re.compile(r"^ *\d+s workers=(\d+) .*? queue_length=(\d+) in_flight=(\d+) ")
ENDS_WITHIN_SECONDS = 15


class RunningDemo:
    """A demo whose temporary directory is its own, so that whatever it leaves is seen."""

    def __init__(self, folder: Path, *options: str) -> None:
        self.folder = folder
        self.lines: list[str] = []
        self.process = subprocess.Popen(
            [sys.executable, "-m", "queue_depth", "demo", *options],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            env=os.environ | {"TMPDIR": str(folder), "PYTHONUNBUFFERED": "1"},
            start_new_session=True,
        )
        self._reader = threading.Thread(target=self._read)
        self._reader.start()

    def _read(self) -> None:
        assert self.process.stdout is not None
        with self.process.stdout as output:
            self.lines.extend(output)

    def ended(self) -> int:
        """The exit code, once all output is read."""
        code = self.process.wait(ENDS_WITHIN_SECONDS)
        self._reader.join()
        return code

    def ask_to_end(self, number: signal.Signals) -> int:
        self.process.send_signal(number)
        return self.ended()

    def says(self, text: str) -> bool:
        if self.process.poll() is not None:
            pytest.fail("the demo ended: " + "".join(self.lines))
        return any(text in line for line in self.lines)

    def numbers(self) -> list[tuple[int, int, int]]:
        """Workers, queue_length and in_flight of every second."""
        found = (NUMBERS.match(line) for line in list(self.lines))
        return [(int(one[1]), int(one[2]), int(one[3])) for one in found if one]

    def workers(self) -> list[int]:
        return [workers for workers, _, _ in self.numbers()]

    def processes(self) -> list[str]:
        """The command lines of all processes that it started: those that work in its directory."""
        return [
            _command(process) for process in _processes() if _working_directory(process).startswith(f"{self.folder}/")
        ]

    def kill(self) -> None:
        """End it, and what it left, after a test that failed."""
        self.process.kill()
        self.process.wait()
        self._reader.join()
        for process in _processes():
            if _working_directory(process).startswith(f"{self.folder}/"):
                os.kill(int(process.name), signal.SIGKILL)

    def assert_nothing_is_left(self) -> None:
        assert self.processes() == []
        assert list(self.folder.iterdir()) == []


def _processes() -> list[Path]:
    return [entry for entry in Path("/proc").iterdir() if entry.name.isdecimal()]


def _working_directory(process: Path) -> str:
    try:
        return str((process / "cwd").readlink())
    except OSError:
        return ""


def _command(process: Path) -> str:
    try:
        return (process / "cmdline").read_text().replace("\0", " ")
    except OSError:
        return ""


@pytest.fixture
def folder() -> Iterator[Path]:
    """A temporary directory that PostgreSQL's user may pass, which pytest's own are not."""
    path = Path(tempfile.mkdtemp(prefix="qd-demo-", dir="/tmp"))
    path.chmod(0o755)
    yield path
    shutil.rmtree(path)


def _depth(*, wanted: int, floor: int) -> Depth:
    nothing = dict.fromkeys(Depth.__dataclass_fields__.keys() - {"name", "wanted_replicas", "floor_replicas"}, 0)
    return Depth(name="workers", wanted_replicas=wanted, floor_replicas=floor, **nothing)


def _rose_and_fell(values: list[int]) -> bool:
    return values[0] < max(values) > values[-1]


def test_the_demo_shows_workers_come_with_the_backlog_and_go_without_it_until_ctrl_c(folder: Path) -> None:
    demo = RunningDemo(folder)
    try:
        wait_until(lambda: demo.says("answers on"), 60)
        url = next(line.split()[-1] for line in demo.lines if "answers on" in line)
        with urllib.request.urlopen(f"{url}/dbos-queue-depth/emails") as answer:  # noqa: S310 - our own
            assert b'"queue_length":' in answer.read()

        wait_until(lambda: any(workers and flight for workers, _, flight in demo.numbers()), 60)
        running = demo.processes()
        wait_until(lambda: demo.workers()[-1] < max(demo.workers()), 60, "workers went")

        workers, lengths, flights = (list(column) for column in zip(*demo.numbers(), strict=True))
        assert demo.ask_to_end(signal.SIGINT) == 0
        demo.assert_nothing_is_left()
    finally:
        demo.kill()

    assert any("postgres" in command for command in running)
    assert any("queue_depth serve" in command for command in running)
    assert any("queue_depth.demo.worker" in command for command in running)
    assert _rose_and_fell(workers)
    assert _rose_and_fell(lengths)
    assert _rose_and_fell(flights)


def test_the_demo_ends_by_itself_after_the_given_seconds_with_workers_on_their_way(folder: Path) -> None:
    demo = RunningDemo(folder, "--seconds", "2")
    try:
        wait_until(lambda: demo.process.poll() is not None, 60)

        assert demo.ended() == 0
        assert demo.numbers()
        demo.assert_nothing_is_left()
    finally:
        demo.kill()


def test_sigterm_removes_what_has_been_started_so_far(folder: Path) -> None:
    demo = RunningDemo(folder)
    try:
        wait_until(lambda: demo.says("starting PostgreSQL"), 60)

        assert demo.ask_to_end(signal.SIGTERM) == 0
        demo.assert_nothing_is_left()
    finally:
        demo.kill()


def test_a_part_that_fails_ends_the_demo_with_its_log_and_leaves_nothing(folder: Path) -> None:
    demo = RunningDemo(folder)
    try:
        wait_until(lambda: demo.says("workers="), 60)
        postmaster = next(
            p for p in _processes() if "-k" in _command(p) and _working_directory(p).startswith(str(folder))
        )
        os.kill(int(postmaster.name), signal.SIGKILL)

        assert demo.ended() == 1
        wait_until(lambda: not demo.processes(), message="the backends of the killed server ended")
        demo.assert_nothing_is_left()
    finally:
        demo.kill()

    assert any("postgres.log ends with:" in line for line in demo.lines), "".join(demo.lines)


def test_the_autoscaler_adds_workers_at_once_and_removes_them_down_to_none_after_a_delay() -> None:
    autoscaler = Autoscaler()

    assert autoscaler.replicas(0, _depth(wanted=3, floor=0)) == 3
    assert autoscaler.replicas(1, _depth(wanted=0, floor=2)) == 3
    assert autoscaler.replicas(4.5, _depth(wanted=0, floor=2)) == 2
    assert autoscaler.replicas(6, _depth(wanted=0, floor=0)) == 2
    assert autoscaler.replicas(10, _depth(wanted=0, floor=0)) == 0


def test_the_autoscaler_never_wants_more_workers_than_the_machine_can_run() -> None:
    assert Autoscaler().replicas(0, _depth(wanted=100, floor=7)) == MOST_REPLICAS


def test_without_its_extra_the_demo_says_what_to_install() -> None:
    without_rich = "import sys; sys.modules['rich'] = None; from queue_depth.cli import main; sys.exit(main(['demo']))"

    done = subprocess.run([sys.executable, "-c", without_rich], capture_output=True, text=True, check=False)

    assert done.returncode == 2
    assert done.stderr == 'queue-depth demo needs the demo extra: pip install "queue-depth[demo]"\n'
