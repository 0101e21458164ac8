"""What happened, as it is kept: all times are seconds since the load began."""

from __future__ import annotations

from collections.abc import Mapping  # noqa: TC003 - pydantic reads records back
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Run:
    """A workflow, as DBOS's table has it in the end.

    Attributes:
        enqueued: When it came.
        started: When it was dequeued; None if it never was.
        ended: When it was completed; None if it never was.
        pod: The pod that took it (its executor), or empty.
        attempts: How often it was started.
    """

    enqueued: float
    started: float | None
    ended: float | None
    pod: str
    attempts: int


@dataclass(frozen=True, slots=True)
class Pod:
    """A pod of the workers, as the node saw it.

    Attributes:
        made: When the API server had it, to the second.
        started: When its container was started.
        launched: When DBOS was ready in it, by its own word; None if it never was.
        ended: When its container ended; None if it still runs.
        gone: When nothing of it was left; None if it is still there.
    """

    name: str
    made: float
    started: float
    launched: float | None
    ended: float | None
    gone: float | None


@dataclass(frozen=True, slots=True)
class Observation:
    """What one policy made of a load.

    Attributes:
        policy: Its name.
        about: What it is.
        over: When all jobs had ended and all pods but the policy's least were gone; None if that was not to be.
        failures: Errors of KEDA's operator about it, in its log.
        runs: All workflows.
        pods: All pods of the workers.
        replicas: Each change of the Deployment's `spec.replicas`, seen each second; the first is the beginning.
    """

    policy: str
    about: str
    over: float | None
    failures: int
    runs: tuple[Run, ...]
    pods: tuple[Pod, ...]
    replicas: tuple[tuple[float, int], ...]


@dataclass(frozen=True, slots=True)
class Loaded:
    """One load, under all policies at once.

    Attributes:
        load: Its name.
        about: What it is.
        window: The exporter's in_flight_window_seconds.
        end: When observation ended.
        work: Seconds that all runs take together.
        observations: One for each policy.
    """

    load: str
    about: str
    window: float
    end: float
    work: float
    observations: tuple[Observation, ...]


@dataclass(frozen=True, slots=True)
class Record:
    """A whole run of the benchmark.

    Attributes:
        date: When.
        seed: The loads' seed.
        machine: What the numbers depend on.
        loads: The loads, one after the other.
    """

    date: str
    seed: int
    machine: Mapping[str, str]
    loads: tuple[Loaded, ...]
