"""Work that can run gets pods, running work keeps them, idle pods go."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from shop import Shop

    from cluster.prepared import Prepared

# Kubernetes 1.35: an HPA has a tolerance of its own.
TOLERANCE_SINCE = 35


def test_backlog_at_zero_pods_gets_as_many_as_it_fills(shop: Shop) -> None:
    shop.register_queue(worker_concurrency=4)
    shop.deploy_workers()
    shop.install()
    jobs = shop.enqueue(11)
    shop.wait_for_runs(11)
    shop.wait_for_pods(3)
    shop.finish(jobs)
    shop.wait_for_runs(11, "SUCCESS")
    shop.check_no_run_was_interrupted()


def test_pods_that_hold_long_runs_stay_and_the_others_go(shop: Shop) -> None:
    shop.register_queue(worker_concurrency=4)
    shop.deploy_workers()
    shop.install()
    jobs = shop.enqueue(12)
    shop.wait_for_runs(12)
    shop.wait_for_pods(3)
    # One run on each pod is left: a fourth of what they can hold, and yet none of them may go.
    per_pod: dict[str, str] = {run.executor: run.id for run in shop.running()}
    assert len(per_pod) == 3
    shop.finish(set(jobs) - set(per_pod.values()))
    shop.wait_for_runs(9, "SUCCESS")
    shop.stays(lambda: shop.wanted() == 3 and shop.pods() == set(per_pod), "three pods with a run each")
    # One run ends, and one pod goes: whichever, what it still runs it finishes.
    last = per_pod.popitem()[1]
    shop.finish([last])
    shop.wait_for_pods(2)
    shop.finish(per_pod.values())
    shop.wait_for_runs(12, "SUCCESS")
    shop.check_no_run_was_interrupted()


def test_the_last_pod_goes_when_it_is_idle_and_not_before(shop: Shop) -> None:
    shop.register_queue(worker_concurrency=4)
    shop.deploy_workers()
    shop.install()
    (job,) = shop.enqueue(1)
    shop.wait_for_runs(1)
    shop.stays(lambda: shop.wanted() == 1, "a pod under a run")
    shop.finish([job])
    shop.wait_for_pods(0)
    shop.wait_for_runs(1, "SUCCESS")
    shop.check_no_run_was_interrupted()


@pytest.mark.parametrize("tolerance", ["auto", "never"])
def test_one_job_behind_ten_full_pods_gets_an_eleventh(shop: Shop, prepared_cluster: Prepared, tolerance: str) -> None:
    ignores_nothing = tolerance == "auto" and prepared_cluster.pair.minor >= TOLERANCE_SINCE
    jobs = ten_full_pods(shop, scaleUpTolerance=tolerance)
    jobs += shop.enqueue(1)
    shop.wait_for_runs(11)
    assert Counter(run.executor for run in shop.running()).most_common(1)[0][1] == 1
    # An HPA that ignores a tenth acts on 12 only, so the exporter asks for these.
    shop.wait_for_pods(11 if ignores_nothing else 12)
    shop.finish(jobs)
    shop.wait_for_runs(11, "SUCCESS")
    shop.check_no_run_was_interrupted()


def test_without_all_that_the_job_behind_ten_full_pods_waits_for_ever(shop: Shop) -> None:
    jobs = ten_full_pods(shop, scaleUpTolerance="never", hpa_tolerance=0)
    jobs += shop.enqueue(1)
    shop.stays(lambda: shop.wanted() == 10, "ten pods, as the HPA ignores a tenth")
    shop.finish(jobs)
    shop.wait_for_runs(11, "SUCCESS")


def ten_full_pods(shop: Shop, **pool: Any) -> list[str]:  # noqa: ANN401 - the chart's
    shop.register_queue(worker_concurrency=1)
    shop.deploy_workers()
    shop.install({"jobs": {"queues": ["jobs"], "target": {"name": "worker"}, **pool}})
    jobs = shop.enqueue(10)
    shop.wait_for_runs(10)
    shop.wait_for_pods(10)
    return jobs
