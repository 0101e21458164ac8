"""What the user sees: a table that changes in place, or a line a second where there is no terminal."""

from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass
from types import TracebackType
from typing import Protocol, Self

from rich.console import Console, Group
from rich.live import Live
from rich.table import Table
from rich.text import Text

from queue_depth.demo.autoscaler import MOST_REPLICAS
from queue_depth.demo.exporter import Depth
from queue_depth.demo.fleet import Worker

_BARS = " ▁▂▃▄▅▆▇█"
_HISTORY = 40

# Everything fits into 80 columns.
_COLUMNS = (
    "queue_\nlength",
    "in_\nflight",
    "runnable",
    "busy_\nworkers",
    "floor",
    "wanted",
    "stranded",
    "delayed",
    "oldest",
)


@dataclass(frozen=True, slots=True)
class Frame:
    """What is shown at one moment.

    Attributes:
        seconds: Since the demo began.
        pool: The numbers of all workers together.
        queues: The numbers of each queue.
        workers: The worker processes.
        url: Where the exporter answers.
    """

    seconds: float
    pool: Depth
    queues: Sequence[Depth]
    workers: Sequence[Worker]
    url: str

    @property
    def replicas(self) -> int:
        """Workers that were not told to leave."""
        return sum(not worker.leaving for worker in self.workers)


class View(Protocol):
    """Shows frames, and before them what is being prepared."""

    def __enter__(self) -> Self: ...

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None: ...

    def say(self, text: str) -> None:
        """Show what is going on."""

    def show(self, frame: Frame) -> None:
        """Show the numbers."""


class TerminalView:
    """A table that changes in place; the last one stays when the demo ends.

    Args:
        console: A terminal.
    """

    def __init__(self, console: Console) -> None:
        self._live = Live(console=console, auto_refresh=False)
        self._history: deque[tuple[int, int, int]] = deque(maxlen=_HISTORY)

    def __enter__(self) -> Self:
        self._live.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self._live.stop()

    def say(self, text: str) -> None:
        """Show what is going on."""
        self._live.update(Text(text, style="dim"), refresh=True)

    def show(self, frame: Frame) -> None:
        """Show the numbers."""
        self._history.append((frame.pool.queue_length, frame.pool.in_flight, frame.replicas))
        self._live.update(render(frame, self._history), refresh=True)


class PlainView:
    """A line a second.

    Args:
        console: Anything.
    """

    def __init__(self, console: Console) -> None:
        self._console = console
        self._second = -1

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        pass

    def say(self, text: str) -> None:
        """Print what is going on."""
        self._print(text)

    def show(self, frame: Frame) -> None:
        """Print the numbers, unless this second's are printed."""
        if int(frame.seconds) == self._second:
            return
        self._second = int(frame.seconds)
        pool = frame.pool
        backlog = " ".join(f"{queue.name}={queue.queue_length}+{queue.in_flight}" for queue in frame.queues)
        self._print(
            f"{self._second:4d}s workers={frame.replicas} busy_workers={pool.busy_workers} "
            f"floor_replicas={pool.floor_replicas} wanted_replicas={pool.wanted_replicas} "
            f"queue_length={pool.queue_length} in_flight={pool.in_flight} runnable={pool.runnable} "
            f"stranded={pool.stranded} delayed={pool.delayed} | queue_length+in_flight: {backlog}"
        )

    def _print(self, text: str) -> None:
        self._console.print(text, soft_wrap=True, markup=False, highlight=False)


def view_on(console: Console) -> View:
    """The view for this kind of output."""
    return TerminalView(console) if console.is_terminal else PlainView(console)


def render(frame: Frame, history: Sequence[tuple[int, int, int]]) -> Group:
    """The whole picture: queues, workers, history, and what to try.

    Args:
        frame: What is shown.
        history: queue_length, in_flight and replicas of the frames before, and this one.
    """
    lengths, flights, replicas = zip(*history, strict=True)
    curves = Table.grid(padding=(0, 1))
    for name, values, style in (
        ("queue_length", lengths, "yellow"),
        ("in_flight", flights, "green"),
        ("workers", replicas, "cyan"),
    ):
        curves.add_row(name, Text(_sparkline(values), style=style), f"{values[-1]} now, {max(values)} most")
    return Group(
        _queues(frame),
        Text(),
        _workers(frame.workers),
        Text(),
        curves,
        Text(),
        Text.assemble(("curl ", "dim"), f"{frame.url}/v1/pools/workers"),
        Text.assemble(("curl ", "dim"), f"{frame.url}/dbos-queue-depth/emails"),
        Text("Ctrl-C ends and removes all", style="dim"),
    )


def _queues(frame: Frame) -> Table:
    table = Table(
        title=f"queue-depth demo, {int(frame.seconds)} s",
        title_justify="left",
        box=None,
        padding=(0, 1, 0, 0),
        header_style="dim",
    )
    table.add_column("queue", vertical="bottom")
    for column in _COLUMNS:
        table.add_column(column, justify="right", vertical="bottom")
    for queue in frame.queues:
        table.add_row(queue.name, *_cells(queue))
    table.add_row("all", *_cells(frame.pool), style="bold")
    return table


def _cells(depth: Depth) -> list[Text]:
    numbers = (
        depth.queue_length,
        depth.in_flight,
        depth.runnable,
        depth.busy_workers,
        depth.floor_replicas,
        depth.wanted_replicas,
        depth.stranded,
        depth.delayed + depth.delayed_due,
    )
    oldest = f"{depth.oldest_enqueued_seconds} s" if depth.oldest_enqueued_seconds else "0"
    return [Text(text, style="dim" if text == "0" else "") for text in (*map(str, numbers), oldest)]


def _workers(workers: Sequence[Worker]) -> Text:
    text = Text.assemble((f"worker processes, at most {MOST_REPLICAS}\n", "bold"))
    if not workers:
        text.append("none", style="dim")
    for worker in workers:
        text.append(f"{worker.name} {_state(worker)}   ", style="green" if worker.running else "dim")
    return text


def _state(worker: Worker) -> str:
    if worker.leaving:
        return f"leaves after {worker.running}" if worker.running else "leaves"
    if not worker.ready:
        return "starts"
    return f"runs {worker.running}" if worker.running else "idle"


def _sparkline(values: Sequence[int]) -> str:
    most = max(*values, 1)
    return "".join(_BARS[-(-value * (len(_BARS) - 1) // most)] for value in values).rjust(_HISTORY)
