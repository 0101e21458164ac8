"""Probes and hooks, as a kubelet does them."""

from __future__ import annotations

import asyncio
import ssl
from typing import TYPE_CHECKING, Any

import httpx

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from cluster.api import Manifest
    from cluster.pod import Pod


def _unverified() -> ssl.SSLContext:
    context = ssl.create_default_context()
    context.check_hostname = False
    context.verify_mode = ssl.CERT_NONE
    return context


# A kubelet verifies no certificate either.
_UNVERIFIED = _unverified()


async def probe(spec: Mapping[str, Any], pod: Pod) -> bool:
    """Probe once."""
    timeout = spec.get("timeoutSeconds", 1)
    if get := spec.get("httpGet"):
        scheme = get.get("scheme", "HTTP").lower()
        headers = {header["name"]: header["value"] for header in get.get("httpHeaders") or []}
        url = f"{scheme}://{pod.address}:{port(get['port'], pod.manifest)}{get.get('path', '/')}"
        try:
            async with httpx.AsyncClient(verify=_UNVERIFIED, trust_env=False) as client:
                answer = await client.get(url, headers=headers, timeout=timeout)
        except httpx.HTTPError:
            return False
        return answer.is_success or answer.is_redirect
    if socket := spec.get("tcpSocket"):
        opening = asyncio.open_connection(pod.address, port(socket["port"], pod.manifest))
        try:
            _, writer = await asyncio.wait_for(opening, timeout)
        except OSError:
            return False
        writer.close()
        return True
    return await pod.execute(spec["exec"]["command"], timeout) == 0


async def keep_probing(
    spec: Mapping[str, Any], pod: Pod, told: Callable[[bool], None], until_good: float | None = None
) -> None:
    """Probe for ever, and tell each time a threshold is reached.

    Args:
        spec: The probe.
        pod: Whose.
        told: Gets whether it is good.
        until_good: Seconds between probes until the first good one, where that is sooner than the manifest's; what
            failed before it counts for nothing then.
    """
    await asyncio.sleep(spec.get("initialDelaySeconds", 0))
    period: float = spec.get("periodSeconds", 10)
    if until_good is not None:
        while not await probe(spec, pod):  # noqa: ASYNC110 - nobody tells when a port begins to answer
            await asyncio.sleep(min(until_good, period))
        told(True)  # noqa: FBT003 - the callback's one argument
    needed = {True: spec.get("successThreshold", 1), False: spec.get("failureThreshold", 3)}
    last, streak = True, 0
    while True:
        await asyncio.sleep(period)
        good = await probe(spec, pod)
        streak = streak + 1 if good == last else 1
        last = good
        if streak == needed[good]:
            told(good)


def port(wanted: int | str, manifest: Manifest) -> int:
    """Return a port's number, given it or its name."""
    if isinstance(wanted, int):
        return wanted
    ports = manifest["spec"]["containers"][0].get("ports") or []
    return next(int(found["containerPort"]) for found in ports if found.get("name") == wanted)
