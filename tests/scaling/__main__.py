"""Run the headline benchmark in a cluster's sandbox and write `docs/scaling.*`: see `make bench-scaling`."""

from __future__ import annotations

import argparse
import datetime as dt
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from shop import server_for_pods, start_cluster

from benchmarks.report import machine
from cluster import prepared
from cluster.cluster import Cluster
from harness.schemas import DatabaseFactory
from scaling import page, worker
from scaling.fleet import Fleet, look_at_all
from scaling.loads import LOADS, SMALL_LOADS, most_at_once
from scaling.observed import Loaded, Record
from scaling.policies import COOLDOWN_SECONDS, POLICIES, SLOTS, SYNC_SECONDS

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from cluster.prepared import Prepared
    from scaling.loads import Load
    from scaling.policies import Policy

PROJECT = Path(__file__).parents[2]
DOCS = PROJECT / "docs"
PARTS = PROJECT / "build/scaling"
WORKER = Path(worker.__file__)

# A run may start this much later than it could, and still all fit.
LATE_SECONDS = 45

# The exporter's window is above the longest run, as docs/configuration.md asks for: by this much.
WINDOW_MARGIN_SECONDS = 30

# Lines of KEDA's log: a busy machine may answer one poll too late.
TOLERABLE_FAILURES = 10

CONNECTIONS = 500

LOOK_SECONDS = 1
SETTLE_SECONDS = 3


def main(arguments: Sequence[str] | None = None) -> int:
    """Run, and return the exit code: 1 where a target is missed."""
    given = _arguments(arguments)
    here = prepared.found()
    if here is None:
        print("the benchmark needs a cluster around it: run `make bench-scaling`", file=sys.stderr)
        return 2
    loads = SMALL_LOADS if given.small else [load for load in LOADS if load.name in given.loads]
    policies = [policy for policy in POLICIES if policy.name in given.policies]
    for load in loads:
        if most_at_once(load.jobs(given.seed), LATE_SECONDS) > SLOTS:
            print(f"seed {given.seed}: {load.name} may need more than {SLOTS} slots; take another", file=sys.stderr)
            return 2
    record = measured(here, loads, policies, given.seed)
    complete = not given.small and len(loads) == len(LOADS) and len(policies) == len(POLICIES)
    folder = given.output or (DOCS if complete else PARTS)
    folder.mkdir(parents=True, exist_ok=True)
    page.write(record, folder)
    print(f"written: {folder}/scaling.*")
    return 0 if given.small or page.all_passed(record) else 1


def measured(here: Prepared, loads: Sequence[Load], policies: Sequence[Policy], seed: int) -> Record:
    """Run each load under all policies at once; the loads one after the other."""
    with _cluster(here) as cluster, server_for_pods(CONNECTIONS, shared_buffers="128MB") as server:
        ((version,),) = server.execute("SHOW server_version")
        about = {**machine(version), "Kubernetes": here.pair.kubernetes, "KEDA": here.pair.keda}
        databases = DatabaseFactory(server)
        found = []
        for load in loads:
            print(f"{load.name}: {load.about}", flush=True)
            found.append(_run(cluster, databases, load, policies, seed))
            print(page.terminal(found[-1]), flush=True)
            _check(found[-1])
    date = dt.datetime.now(dt.UTC).isoformat(timespec="seconds")
    return Record(date, seed, about, tuple(found))


def _run(cluster: Cluster, databases: DatabaseFactory, load: Load, policies: Sequence[Policy], seed: int) -> Loaded:
    jobs = load.jobs(seed)
    window = load.lengths.cap + WINDOW_MARGIN_SECONDS
    with ThreadPoolExecutor(len(policies)) as pool:
        fleets = [
            Fleet(cluster, policy, _namespace(cluster, load, policy), databases.make(), window) for policy in policies
        ]
        list(pool.map(Fleet.install, fleets))
        begin = time.time() + SETTLE_SECONDS
        # For a policy under which not every job starts.
        deadline = begin + jobs[-1].at + load.lengths.cap + window + 2 * COOLDOWN_SECONDS
        feeding = [pool.submit(fleet.feed, jobs, begin) for fleet in fleets]
        while time.time() < deadline and not all(fleet.is_through for fleet in fleets):
            look_at_all(cluster, fleets, len(jobs))
            time.sleep(LOOK_SECONDS)
        for fed in feeding:
            fed.result()
        end = time.time()
        observations = tuple(fleet.observed(begin) for fleet in fleets)
        list(pool.map(Fleet.close, fleets))
    work = sum(job.seconds for job in jobs)
    return Loaded(load.name, load.about, window, round(end - begin, 2), round(work, 2), observations)


def _check(loaded: Loaded) -> None:
    for seen in loaded.observations:
        if seen.failures > TOLERABLE_FAILURES:
            raise RuntimeError(f"{seen.policy}: KEDA's log has {seen.failures} errors, so this is no comparison")


def _namespace(cluster: Cluster, load: Load, policy: Policy) -> str:
    name = f"{load.name}-{policy.name}"
    cluster.make_namespace(name)
    return name


@contextmanager
def _cluster(here: Prepared) -> Iterator[Cluster]:
    started = start_cluster(here, WORKER, SYNC_SECONDS)
    cluster = Cluster(here.programs, here.folder, here.logs)
    yield cluster
    cluster.close()
    started.check()
    started.stop()


def _arguments(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="make bench-scaling", description=__doc__)
    loads, policies = [load.name for load in LOADS], [policy.name for policy in POLICIES]
    parser.add_argument("--loads", nargs="+", choices=loads, default=loads, help="all, if none is given")
    parser.add_argument("--policies", nargs="+", choices=policies, default=policies, help="likewise")
    parser.add_argument("--seed", type=int, default=1, help="of the loads")
    parser.add_argument("--small", action="store_true", help="only see that it runs; the numbers mean nothing")
    parser.add_argument(
        "--output", type=Path, help="folder for the pages (docs if all are run in full, else build/scaling)"
    )
    return parser.parse_args(arguments)


if __name__ == "__main__":
    sys.exit(main())
