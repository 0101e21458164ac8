"""Work that waits for something else than pods gets none; work that only looks as if it had to wait gets them."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from collections.abc import Mapping

    from shop import Shop


@pytest.mark.parametrize(
    ("limits", "options", "startable"),
    [
        pytest.param({"partition_concurrency": 1}, {"queue_partition_key": "acme"}, 1, id="partitioned"),
        pytest.param({"limiter": {"limit": 2, "period": 3600}}, {}, 2, id="rate-limited"),
        pytest.param({"global_concurrency": 2}, {}, 2, id="at-its-global-limit"),
    ],
)
def test_a_queue_that_more_pods_cannot_help_gets_none(
    shop: Shop, limits: Mapping[str, Any], options: Mapping[str, Any], startable: int
) -> None:
    shop.register_queue(worker_concurrency=1, **limits)
    shop.deploy_workers()
    shop.install()
    jobs = shop.enqueue(6, **options)
    shop.wait_for_pods(startable)
    running = shop.wait_for_runs(startable)
    shop.stays(lambda: shop.wanted() == startable, f"{startable} pods for what can run")
    assert len(shop.runs("ENQUEUED")) == len(jobs) - startable
    shop.finish(run.id for run in running)
    shop.wait_for_runs(startable, "SUCCESS")
    shop.check_no_run_was_interrupted()


def test_a_delayed_job_that_falls_due_at_zero_pods_gets_one_and_not_before(shop: Shop) -> None:
    shop.register_queue(worker_concurrency=4)
    shop.deploy_workers()
    shop.install()
    begun = time.time()
    (job,) = shop.enqueue(1, delay_seconds=12)
    shop.finish([job])
    shop.wait_for_runs(1, "SUCCESS")
    starts = [
        event.time - begun
        for event in shop.cluster.events(shop.namespace)
        if event.event == "started" and event.pod.startswith("worker-") and event.time > begun
    ]
    assert len(starts) == 1
    assert starts[0] > 12


def test_two_queues_on_one_deployment_get_the_pods_of_the_fuller_one(shop: Shop) -> None:
    shop.register_queue("jobs", worker_concurrency=1)
    shop.register_queue("mails", worker_concurrency=1)
    shop.deploy_workers()
    shop.install({"all": {"queues": ["jobs", "mails"], "target": {"name": "worker"}}})
    work = [*shop.enqueue(2, "jobs"), *shop.enqueue(3, "mails")]
    shop.wait_for_runs(5)
    shop.wait_for_pods(3)
    shop.stays(lambda: shop.wanted() == 3, "three pods, each for a workflow of each queue", seconds=12)
    shop.finish(work)
    shop.wait_for_runs(5, "SUCCESS")
    shop.check_no_run_was_interrupted()
