"""The flat JSON of one queue or pool, as `contract/queue-depth.schema.json` promises it."""

import json
import math

from queue_depth.core.depth import PoolDepth


def depth_json(depth: PoolDepth, *, observed_at_ms: int, age_seconds: float) -> bytes:
    """Encode the numbers of one queue or pool.

    Args:
        depth: The numbers.
        observed_at_ms: The database's clock at the read (epoch milliseconds).
        age_seconds: How long ago that was; rounded up, so that a number never looks younger than it is.
    """
    fields: dict[str, str | int | bool] = {
        "name": depth.name,
        "queue_length": depth.queue_length,
        "in_flight": depth.in_flight,
        "runnable": depth.runnable,
        "busy_workers": depth.busy_workers,
        "floor_replicas": depth.floor_replicas,
        "wanted_replicas": depth.wanted_replicas,
        "stranded": depth.stranded,
        "oldest_enqueued_seconds": _age(depth.oldest_ms, observed_at_ms),
        "other_in_flight": depth.other_in_flight,
        "delayed": depth.delayed,
        "delayed_due": depth.delayed_due,
        "scalable": depth.scalable,
        "reason": depth.reason,
        "executor_ids_shared": depth.executor_ids_shared,
        "observed_at": observed_at_ms // 1000,
        "age_seconds": math.ceil(age_seconds),
    }
    # A limit of 0 stops the queue and divides nothing; `reason` says so.
    if depth.worker_concurrency:
        fields["worker_concurrency"] = depth.worker_concurrency
    return _encode(fields).encode()


def page_json(field: str, items: list[bytes], following: str) -> bytes:
    """Encode one page of a list: `{"queues": […], "next": ""}`."""
    head, tail = json.dumps(field), _encode(following)
    return b'{%b:[%b],"next":%b}' % (head.encode(), b",".join(items), tail.encode())


def _age(oldest_ms: int | None, observed_at_ms: int) -> int:
    """Whole seconds; an enqueuer whose clock runs ahead of the database's makes no negative age."""
    return 0 if oldest_ms is None else max(0, (observed_at_ms - oldest_ms) // 1000)


_encode = json.JSONEncoder(ensure_ascii=False, allow_nan=False, separators=(",", ":")).encode
