"""The load: waves of work with a lull between them."""

import itertools
from collections.abc import Iterator
from dataclasses import dataclass

from dbos import DBOSClient, EnqueueOptions

from queue_depth.demo.application import APPLICATION, EMAILS, EXPORTS, MISSPELT, REPORTS, WEBHOOKS, Job

_WAVE_SECONDS = 45

_CUSTOMERS = ("acme", "globex", "initech")


@dataclass(frozen=True, slots=True)
class _Burst:
    """So many workflows at once.

    Attributes:
        at: Seconds since the wave began.
        job: What is enqueued.
        count: How many.
        delay_seconds: DBOS keeps them DELAYED for so long.
        queue: Where to, if not to the job's own queue.
    """

    at: float
    job: Job
    count: int
    delay_seconds: float = 0
    queue: str | None = None


_WAVE = (
    _Burst(0.5, EMAILS, 14),
    _Burst(0.5, REPORTS, 4),
    # Due in the lull, when no worker is left to promote them: they count as backlog all the same.
    _Burst(0.5, EMAILS, 5, delay_seconds=24),
    _Burst(2, WEBHOOKS, 10),
    _Burst(3, EXPORTS, 9),
    _Burst(3.5, EMAILS, 8),
)
_ONCE = _Burst(5, REPORTS, 1, queue=MISSPELT)


class Load:
    """Enqueues the waves as time goes by, as another service would: through a DBOS client.

    Args:
        client: A client of the application.
    """

    def __init__(self, client: DBOSClient) -> None:
        self._client = client
        self._numbers = itertools.count()
        self._bursts = _bursts()
        self._next = next(self._bursts)

    def enqueue_due(self, seconds: float) -> None:
        """Enqueue everything that is due so many seconds after the start."""
        while self._next[0] <= seconds:
            self._enqueue(self._next[1])
            self._next = next(self._bursts)

    def _enqueue(self, burst: _Burst) -> None:
        for number in itertools.islice(self._numbers, burst.count):
            options: EnqueueOptions = {
                "queue_name": burst.queue or burst.job.queue,
                "workflow_name": burst.job.workflow,
                "application_name": APPLICATION,
            }
            if burst.delay_seconds:
                options["delay_seconds"] = burst.delay_seconds
            if burst.job is EXPORTS:
                options["queue_partition_key"] = _CUSTOMERS[number % len(_CUSTOMERS)]
            self._client.enqueue(options, number)


def _bursts() -> Iterator[tuple[float, _Burst]]:
    """Every burst with its time, in order, for ever."""
    first = (*_WAVE, _ONCE)
    for wave in itertools.count():
        yield from ((wave * _WAVE_SECONDS + burst.at, burst) for burst in (first if wave == 0 else _WAVE))
