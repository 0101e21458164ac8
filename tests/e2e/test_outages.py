"""Nobody is scaled in while nobody knows, and all is well again when somebody does."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from collections.abc import Callable

    from shop import Shop

    from harness.postgres import PostgresServer

TOKEN = "right-token"

AUTH = {
    "tokensSecret": {"name": "depth-tokens"},
    "clientSecret": {"name": "depth-client"},
}


@dataclass(frozen=True, slots=True)
class Outage:
    """Something that goes away and comes back; the server is the test's own."""

    begin: Callable[[Shop, PostgresServer], None]
    end: Callable[[Shop, PostgresServer], None]


def exporter_replicas(shop: Shop, count: int) -> None:
    shop.cluster.kubectl.patch("deployment/depth-queue-depth", shop.namespace, {"spec": {"replicas": count}})


def accepted_token(shop: Shop, token: str) -> None:
    shop.put_secret("depth-tokens", "tokens", token)


def client_token(shop: Shop, token: str) -> None:
    shop.put_secret("depth-client", "token", token)


OUTAGES = {
    "the-exporter-is-down": Outage(
        lambda shop, _: exporter_replicas(shop, 0), lambda shop, _: exporter_replicas(shop, 1)
    ),
    "the-database-is-down": Outage(lambda _, server: server.stop(), lambda _, server: server.start()),
    "the-database-hangs": Outage(lambda _, server: server.pause(), lambda _, server: server.resume()),
    # KEDA keeps a token until it is refused.
    "keda-has-the-wrong-token": Outage(
        lambda shop, _: accepted_token(shop, "another-token"), lambda shop, _: client_token(shop, "another-token")
    ),
}


@pytest.mark.parametrize("outage", OUTAGES.values(), ids=OUTAGES)
def test_nobody_is_scaled_in_while(shop_on_its_own_server: Shop, own_postgres: PostgresServer, outage: Outage) -> None:
    shop = shop_on_its_own_server
    accepted_token(shop, TOKEN)
    client_token(shop, TOKEN)
    shop.register_queue(worker_concurrency=1)
    shop.deploy_workers()
    shop.install(auth=AUTH)
    jobs = shop.enqueue(3)
    shop.wait_for_runs(3)
    shop.wait_for_pods(3)
    pods = shop.pods()

    # Nothing would be left to do for any of them, if only somebody knew.
    shop.finish(jobs)
    outage.begin(shop, own_postgres)
    shop.eventually(shop.is_in_doubt, "KEDA is told nothing")
    shop.stays(lambda: shop.wanted() >= 3 and pods <= shop.pods(), "three pods in doubt", seconds=25)

    outage.end(shop, own_postgres)
    shop.wait_for_runs(3, "SUCCESS")
    shop.wait_for_pods(0)
    more = shop.enqueue(2)
    shop.wait_for_runs(2)
    shop.finish(more)
    shop.wait_for_runs(5, "SUCCESS")
    shop.check_no_run_was_interrupted()
