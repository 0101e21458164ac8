"""What people do with a release: roll it, upgrade it, pause it, change its mode, take it away."""

from __future__ import annotations

import shutil
from typing import TYPE_CHECKING, Any

import pytest

from harness.helm import CHART
from harness.program import ProgramFailedError

if TYPE_CHECKING:
    from pathlib import Path

    from shop import Shop


def pool(**settings: Any) -> dict[str, Any]:  # noqa: ANN401 - the chart's
    return {"jobs": {"queues": ["jobs"], "target": {"name": "worker"}, **settings}}


def test_an_exporter_that_is_rolled_under_load_answers_throughout(shop: Shop) -> None:
    shop.register_queue(worker_concurrency=1)
    shop.deploy_workers()
    exporter = {"replicas": 2, "readinessProbe": {"periodSeconds": 1}}
    shop.install(exporter=exporter)
    jobs = shop.enqueue(2)
    shop.wait_for_runs(2)
    shop.wait_for_pods(2)
    old, complaints = shop.exporters(), shop.complaints_of_keda()
    shop.cluster.kubectl("rollout", "restart", "deployment/depth-queue-depth", f"--namespace={shop.namespace}")
    jobs += shop.enqueue(1)
    shop.cluster.kubectl(
        "rollout", "status", "deployment/depth-queue-depth", f"--namespace={shop.namespace}", timeout=120
    )
    shop.eventually(lambda: not old & shop.exporters(), "both exporters are new")
    shop.wait_for_runs(3)
    assert shop.complaints_of_keda() == complaints
    shop.finish(jobs)
    shop.wait_for_runs(3, "SUCCESS")
    shop.check_no_run_was_interrupted()


def test_an_upgrade_that_asks_for_a_field_nobody_serves_is_refused_and_nothing_freezes(
    shop: Shop, tmp_path: Path
) -> None:
    shop.register_queue(worker_concurrency=1)
    shop.deploy_workers()
    shop.install()
    chart = tmp_path / "queue-depth"
    shutil.copytree(CHART, chart)
    template = chart / "templates/_scaledobject.tpl"
    template.write_text(template.read_text().replace("wanted_replicas", "wanted_pods"))
    with pytest.raises(ProgramFailedError, match="pre-upgrade"):
        shop.helm("upgrade", "depth", chart, values=shop.values(), timeout=120)
    jobs = shop.enqueue(2)
    shop.wait_for_runs(2)
    shop.wait_for_pods(2)
    shop.finish(jobs)
    shop.wait_for_pods(0)
    shop.check_no_run_was_interrupted()


def test_helm_test_reads_the_contract_in_the_cluster(shop: Shop) -> None:
    shop.register_queue(worker_concurrency=1)
    shop.deploy_workers()
    shop.install()
    assert "Succeeded" in shop.helm("test", "depth")


def test_the_raw_numbers_scale_too_and_leave_jobs_behind_full_pods(shop: Shop) -> None:
    shop.register_queue(worker_concurrency=2)
    shop.deploy_workers()
    shop.install(pool(mode="raw", workerConcurrency=2))
    jobs = shop.enqueue(2)
    shop.wait_for_runs(2)
    # The HPA takes the higher of one pod for what waits and one for what runs: this is what mode `replicas` is for.
    jobs += shop.enqueue(2)
    shop.stays(lambda: shop.wanted() == 1 and len(shop.running()) == 2, "one pod that is full, and two jobs wait")
    jobs += shop.enqueue(1)
    shop.wait_for_runs(4)
    shop.finish(jobs)
    shop.wait_for_runs(5, "SUCCESS")
    shop.wait_for_pods(0)


def test_when_idle_pods_go_all_at_once_or_not_at_all(shop: Shop) -> None:
    shop.register_queue(worker_concurrency=1)
    shop.deploy_workers()
    shop.install(pool(scaleIn={"mode": "whenIdle"}))
    first, *others = shop.enqueue(3)
    shop.wait_for_runs(3)
    shop.wait_for_pods(3)
    shop.finish(others)
    shop.wait_for_runs(2, "SUCCESS")
    shop.stays(lambda: shop.wanted() == 3, "three pods while one is busy")
    shop.finish([first])
    shop.wait_for_pods(0)
    shop.check_no_run_was_interrupted()


def test_frozen_pods_stay_and_yet_more_come(shop: Shop) -> None:
    shop.register_queue(worker_concurrency=1)
    shop.deploy_workers()
    shop.install(pool(scaleIn={"mode": "frozen"}))
    jobs = shop.enqueue(1)
    shop.wait_for_runs(1)
    jobs += shop.enqueue(1)
    shop.wait_for_runs(2)
    shop.finish(jobs)
    shop.wait_for_runs(2, "SUCCESS")
    shop.stays(lambda: shop.wanted() == 2, "two idle pods")


def test_a_paused_pool_stays_as_it_is_until_it_is_resumed(shop: Shop) -> None:
    shop.register_queue(worker_concurrency=1)
    shop.deploy_workers()
    shop.install()
    jobs = shop.enqueue(1)
    shop.wait_for_runs(1)
    shop.install(pool(paused=True))
    shop.eventually(lambda: not shop.has_hpa(), "the HPA is gone")
    jobs += shop.enqueue(2)
    shop.stays(lambda: shop.wanted() == 1, "one pod, paused")
    shop.install()
    shop.wait_for_runs(3)
    shop.finish(jobs)
    shop.wait_for_pods(0)
    shop.check_no_run_was_interrupted()


def test_uninstalling_leaves_workers_as_they_are(shop: Shop) -> None:
    shop.register_queue(worker_concurrency=1)
    shop.deploy_workers()
    shop.install()
    jobs = shop.enqueue(2)
    shop.wait_for_runs(2)
    shop.wait_for_pods(2)
    pods = shop.pods()
    shop.helm("uninstall", "depth", "--wait")
    shop.eventually(lambda: not shop.has_hpa(), "the HPA is gone")
    shop.finish(jobs)
    shop.wait_for_runs(2, "SUCCESS")
    shop.stays(lambda: shop.pods() == pods, "the same two pods")
    shop.check_no_run_was_interrupted()
