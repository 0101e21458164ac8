"""The rules for a KEDA `metrics-api` trigger that reads this service. Pure: no file and no network.

The rules follow KEDA 2.17 to 2.21 (`metrics_api_scaler.go`, the ScaledObject CRD) and the HPA's formula for external
metrics.
"""

import re
from collections.abc import Collection, Iterator, Mapping
from difflib import get_close_matches
from typing import Any
from urllib.parse import urlsplit

from queue_depth.contract.manifests import Trigger
from queue_depth.contract.published import Field
from queue_depth.contract.reading import Evidence, Reading, number, parse
from queue_depth.contract.routes import OWN_PREFIXES
from queue_depth.contract.violation import Violation, quote

_TRIGGER_KEYS = ("type", "name", "metadata", "authenticationRef", "metricType", "useCachedMetrics")
_METADATA_KEYS = (
    "url",
    "valueLocation",
    "targetValue",
    "activationTargetValue",
    "format",
    "unsafeSsl",
    "aggregateFromKubeServiceEndpoints",
    "aggregationType",
    "timeout",
    "authMode",
    "authModes",
    "method",
    "keyParamName",
)
_SECRET_KEYS = ("apiKey", "token", "bearerToken", "username", "password", "key", "cert")

# What strconv.ParseFloat and this module both read; Go also takes hexadecimal and "Inf", which are no targets.
_NUMBER = re.compile(r"[+-]?(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]{1,3})?")
_DURATION = re.compile(r"[0-9]+|(?:[0-9]+(?:\.[0-9]*)?(?:ns|us|µs|ms|s|m|h))+")
_GO_TRUE = ("1", "t", "T", "TRUE", "true", "True")
_GO_FALSE = ("0", "f", "F", "FALSE", "false", "False")
# KEDA hands a target to the HPA with three decimals.
_SMALLEST_TARGET = 0.001


def ours(trigger: Trigger, services: Collection[str]) -> bool:
    """Whether a trigger is KEDA's `metrics-api` and its URL points at this service.

    Args:
        trigger: Any trigger.
        services: Names of this service's Kubernetes Services: the first label of the URL's host.
    """
    url = _mapping(trigger.body.get("metadata")).get("url")
    if trigger.body.get("type") != "metrics-api" or not isinstance(url, str):
        return False
    try:
        parts = urlsplit(url)
        host = parts.hostname or ""
    except ValueError:
        return False
    return parts.path.startswith(OWN_PREFIXES) or host.partition(".")[0] in services


def check(trigger: Trigger, evidence: Evidence) -> Iterator[Violation]:
    """Everything wrong with one of this service's triggers, in the order of reading.

    Args:
        trigger: A trigger that `ours` accepts.
        evidence: The answers that `valueLocation` must find a number in.
    """
    yield from _keys(trigger.body, "", _TRIGGER_KEYS)
    written = _mapping(trigger.body.get("metadata"))
    yield from _keys(written, "metadata.", _METADATA_KEYS)
    yield from _strings(written)
    metadata = {
        str(key): value if isinstance(value, str) else _plain(value)
        for key, value in written.items()
        if value is not None
    }
    templated = [key for key, value in metadata.items() if "{{" in value]
    if templated:
        yield Violation(
            f"metadata.{templated[0]}",
            "is an unrendered template, so nothing can be said of it",
            "render first (helm template, kustomize build) and check the output",
        )
        return
    yield from _metric_type(trigger)
    yield from _format(metadata)
    yield from _transport(metadata)
    yield from _authentication(trigger, metadata)
    read = None
    for found in parse(metadata["url"], metadata.get("valueLocation", "")):
        if isinstance(found, Reading):
            read = found
        else:
            yield found
    field = read.field if read else None
    if not metadata.get("valueLocation"):
        yield Violation(
            "metadata.valueLocation",
            "is absent, and KEDA refuses the trigger",
            "name a field of the answer, such as queue_length",
        )
    elif read is not None:
        yield from number(read, evidence)
    yield from _target(trigger, metadata, field)
    if field is not None:
        yield from _use(trigger, field)


def _keys(mapping: Mapping[Any, object], prefix: str, known: tuple[str, ...]) -> Iterator[Violation]:
    for key in mapping:
        if key in known:
            continue
        if prefix and key in _SECRET_KEYS:
            yield Violation(
                f"{prefix}{key}",
                "is a credential in plain text" if key == "apiKey" else "is not read from here",
                "put it in a Secret, name that in a TriggerAuthentication and refer to it in authenticationRef",
            )
            continue
        guess = get_close_matches(str(key), known, n=1)
        if not guess and not prefix and key in _METADATA_KEYS:
            guess = [f"metadata.{key}"]
        yield Violation(
            f"{prefix}{key}",
            "is no key that KEDA knows; it is ignored silently",
            f"write {guess[0]}" if guess else "take it out",
        )


def _strings(metadata: Mapping[Any, object]) -> Iterator[Violation]:
    for key, value in metadata.items():
        if not isinstance(value, str):
            yield Violation(
                f"metadata.{key}",
                f"is {_kind(value)}, and KEDA's CRD takes only strings",
                f'write {key}: "{_plain(value)}"' if value is not None else "give it a quoted value",
            )


def _metric_type(trigger: Trigger) -> Iterator[Violation]:
    kind = trigger.body.get("metricType")
    if kind in (None, "", "AverageValue"):
        return
    why = {
        "Value": "multiplies by the pods that are ready at every HPA sync, so the count compounds",
        "Utilization": "is refused by KEDA for an external metric",
    }.get(str(kind), "is no metric type of the HPA")
    yield Violation("metricType", f"{kind} {why}", "take it out, or write AverageValue")


def _format(metadata: Mapping[str, str]) -> Iterator[Violation]:
    told = metadata.get("format", "json")
    if told not in ("", "json"):
        yield Violation("metadata.format", f"is {quote(told)}, and the answer is JSON", 'take it out, or write "json"')


def _transport(metadata: Mapping[str, str]) -> Iterator[Violation]:
    for key in ("unsafeSsl", "aggregateFromKubeServiceEndpoints"):
        if metadata.get(key, "false") not in (*_GO_TRUE, *_GO_FALSE):
            yield Violation(
                f"metadata.{key}", f"{quote(metadata[key])} is no boolean for KEDA", 'write "true" or "false"'
            )
    if metadata.get("aggregateFromKubeServiceEndpoints") in _GO_TRUE and metadata.get("aggregationType") == "sum":
        yield Violation(
            "metadata.aggregationType",
            "sum counts everything once per exporter pod, for each gives the whole number",
            "take aggregateFromKubeServiceEndpoints and aggregationType out",
        )
    timeout = metadata.get("timeout")
    if timeout is not None and (not _DURATION.fullmatch(timeout) or not re.search("[1-9]", timeout)):
        yield Violation(
            "metadata.timeout",
            f"{quote(timeout)} is no time above zero",
            'write milliseconds or a duration, such as "3s"',
        )


def _authentication(trigger: Trigger, metadata: Mapping[str, str]) -> Iterator[Violation]:
    reference = trigger.body.get("authenticationRef")
    key = "authMode" if "authMode" in metadata else "authModes"
    modes = [mode.strip() for mode in metadata.get(key, "").split(",") if mode.strip()]
    for mode in modes:
        if mode in ("bearer", "apiKey", "tls"):
            continue
        why = {
            "basic": "is not accepted by the exporter, which knows bearer tokens and the X-API-KEY header",
            "custom": "is parsed and then left out by KEDA's metrics-api scaler, so the request has no credentials",
            "oauth": "is parsed and then left out by KEDA's metrics-api scaler, so the request has no credentials",
        }.get(mode, "is no authentication mode of KEDA")
        yield Violation(f"metadata.{key}", f"{quote(mode)} {why}", 'write "bearer" or "apiKey"')
    if modes and reference is None:
        yield Violation(
            "authenticationRef",
            f"is absent, so {modes[0]} has no credentials",
            "name the TriggerAuthentication or ClusterTriggerAuthentication that holds the token",
        )
    if reference is not None and not _mapping(reference).get("name"):
        yield Violation("authenticationRef.name", "is absent", "name the TriggerAuthentication")
    method = metadata.get("method", "header")
    if method != "header":
        why = "puts the key into the URL, where access logs keep it" if method == "query" else "is no way to send a key"
        yield Violation("metadata.method", f"{quote(method)} {why}", 'take it out, or write "header"')
    header = metadata.get("keyParamName", "X-API-KEY")
    if header.lower() != "x-api-key":
        yield Violation(
            "metadata.keyParamName",
            f"{quote(header)} is not read by the exporter, which answers 401",
            'take it out, or write "X-API-KEY"',
        )


def _target(trigger: Trigger, metadata: Mapping[str, str], field: Field | None) -> Iterator[Violation]:
    told = metadata.get("targetValue")
    target = _number(told)
    if told is None and not trigger.composed:
        yield Violation("metadata.targetValue", "is absent, and KEDA refuses the trigger", _target_mend(field))
    elif told is not None and (target is None or target < _SMALLEST_TARGET):
        yield Violation("metadata.targetValue", f"{quote(told)} is no number above zero", _target_mend(field))
    elif (
        target is not None
        and field is not None
        and field.scaling == "replicas"
        and target != 1
        and not trigger.composed
    ):
        yield Violation(
            "metadata.targetValue",
            f"{quote(told)} divides {field.name}, which is a count of replicas already",
            _target_mend(field),
        )
    told = metadata.get("activationTargetValue")
    if told is None:
        return
    activation = _number(told)
    if activation is None or activation < 0:
        yield Violation(
            "metadata.activationTargetValue", f"{quote(told)} is no number from zero up", 'take it out, or write "0"'
        )
    elif activation > 0 and field is not None and field.scaling in ("running", "replicas"):
        yield Violation(
            "metadata.activationTargetValue",
            f"with {quote(told)} KEDA takes the target for idle until {field.name} is above it, and goes to zero"
            " under running work",
            'take it out, or write "0"',
        )


def _target_mend(field: Field | None) -> str:
    if field is not None and field.scaling == "replicas":
        return 'write targetValue: "1"'
    return 'write the number for one pod, such as the worker concurrency, in quotes: targetValue: "4"'


def _use(trigger: Trigger, field: Field) -> Iterator[Violation]:
    if trigger.place.kind == "ScaledJob" and field.scaling in ("running", "replicas"):
        yield Violation(
            "metadata.valueLocation",
            f"{field.name} counts running work, and a ScaledJob subtracts its running jobs by itself (keda#7747)",
            "read runnable in a ScaledJob",
        )
    elif field.scaling == "never" and field.type == "integer" and field.required:
        yield Violation(
            "metadata.valueLocation",
            f"{field.name} is not for scaling: more pods do not change it",
            "read wanted_replicas and floor_replicas, or queue_length and in_flight",
        )


def _number(text: str | None) -> float | None:
    return float(text) if text is not None and _NUMBER.fullmatch(text) else None


def _mapping(value: object) -> Mapping[Any, object]:
    return value if isinstance(value, dict) else {}


def _kind(value: object) -> str:
    if value is None:
        return "empty"
    return {bool: "true or false without quotes", int: "a number without quotes", float: "a number without quotes"}.get(
        type(value), "not a scalar"
    )


def _plain(value: object) -> str:
    """A scalar as it would be written in a manifest; nothing of what is nested."""
    if isinstance(value, bool):
        return str(value).lower()
    return str(value) if isinstance(value, int | float) else ""
