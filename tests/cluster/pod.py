"""One pod: its network, its container's lives, its probes, its end."""

from __future__ import annotations

import asyncio
import contextlib
import signal
import sys
import time
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

import httpx

from cluster import probes
from cluster.configuration import NotYetError, Sources, environment, expand, user_of
from cluster.container import PID, Container, Mount
from cluster.images import Image, Images, repository
from cluster.sandbox import BRIDGE, HOST, PODS, SERVICES
from cluster.volumes import Volumes
from cluster.watching import STRATEGIC

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from cluster.api import Manifest

TESTS = Path(__file__).parents[1]

LONGEST_PAUSE_SECONDS = 20


@dataclass(frozen=True, slots=True)
class Surroundings:
    """What a pod has of its node.

    Attributes:
        sources: What its manifest refers to.
        images: What its container may run.
        folder: Gets a folder for each pod.
        logs: Gets `NAMESPACE/POD.log`.
        hosts: /etc/hosts of every container.
        tell: Writes an event down.
    """

    sources: Sources
    images: Images
    folder: Path
    logs: Path
    hosts: Path
    tell: Callable[[str, Pod, str], None]


class Pod:
    """Lives from its making on.

    Args:
        address: Its own in the cluster.
    """

    def __init__(self, manifest: Manifest, address: str, surroundings: Surroundings) -> None:
        self.manifest, self.address, self._around = manifest, address, surroundings
        metadata = manifest["metadata"]
        self.name, self.namespace, self.uid = metadata["name"], metadata["namespace"], metadata["uid"]
        self._network = f"p-{self.uid[:8]}"
        self._folder = surroundings.folder / self.uid
        self._volumes = Volumes(manifest, self._folder / "volumes", address, surroundings.sources)
        self._process: asyncio.subprocess.Process | None = None
        self._leaving = asyncio.Event()
        self._is_ready = False
        self._restarts = 0
        self._since = _now()
        self._running_since = self._since
        self._reported: object = None
        self._reporting = asyncio.Lock()
        self._alive = asyncio.create_task(self._live(), name=self.name)

    def refresh(self) -> None:
        """Take changed ConfigMaps and Secrets into the volumes."""
        if self._process is not None:
            with contextlib.suppress(NotYetError):  # deleted: what is mounted stays
                self._volumes.refresh()

    async def terminate(self, grace_seconds: float) -> None:
        """End as a pod does: preStop, SIGTERM, SIGKILL after the grace period; then be deleted."""
        self._leaving.set()
        deadline = time.monotonic() + grace_seconds
        self._around.tell("terminating", self, "")
        if self._runs:
            await self._before_stop(deadline)
            self._signal(signal.SIGTERM)
            try:
                await asyncio.wait_for(self._ended(), max(0.0, deadline - time.monotonic()))
            except TimeoutError:
                self._around.tell("killed", self, f"after {grace_seconds:g} s")
        await self.vanish()
        body = {"gracePeriodSeconds": 0, "preconditions": {"uid": self.uid}}
        await self._around.sources.api.send("DELETE", self._path, body)

    async def vanish(self) -> None:
        """Be gone at once, container and network."""
        self._leaving.set()
        self._signal(signal.SIGKILL)
        try:
            await asyncio.wait_for(asyncio.shield(self._alive), 10)
        except TimeoutError:
            self._alive.cancel()
        await _ip("netns", "delete", self._network, check=False)

    async def execute(self, command: Sequence[str], timeout: float) -> int | None:  # noqa: ASYNC109 - Kubernetes' word
        """Run a command in the container; return its exit code, or None if it took longer."""
        try:
            first = int((self._folder / PID).read_text())
        except (FileNotFoundError, ValueError):
            return None
        enter = ("--mount", "--pid", "--net", "--uts", "--ipc", "--root", "--wdns=/")
        container = Container.read(self._folder)
        process = await asyncio.create_subprocess_exec(
            *(
                "nsenter",
                f"--target={first}",
                *enter,
                f"--setuid={container.user}",
                f"--setgid={container.group}",
                "--",
            ),
            *command,
            env=container.environment,
            stdout=asyncio.subprocess.DEVNULL,
            stderr=asyncio.subprocess.DEVNULL,
        )
        try:
            return await asyncio.wait_for(process.wait(), timeout)
        except TimeoutError:
            process.kill()
            return None

    @property
    def _spec(self) -> dict[str, Any]:
        found: dict[str, Any] = self.manifest["spec"]["containers"][0]
        return found

    @property
    def _path(self) -> str:
        return f"/api/v1/namespaces/{self.namespace}/pods/{self.name}"

    @property
    def _runs(self) -> bool:
        return self._process is not None and self._process.returncode is None

    async def _live(self) -> None:
        self._folder.mkdir(parents=True)
        await self._connect()
        policy = self.manifest["spec"].get("restartPolicy", "Always")
        while not self._leaving.is_set():
            started = await self._start()
            if not started:
                return
            code = await self._run()
            self._around.tell("ended", self, f"exit code {code}")
            if self._leaving.is_set() or policy == "Never" or (policy == "OnFailure" and code == 0):
                await self._report("Succeeded" if code == 0 else "Failed", _terminated(code, self._running_since))
                return
            self._restarts += 1
            pause = min(LONGEST_PAUSE_SECONDS, 2**self._restarts)
            await self._report("Running", {"waiting": {"reason": "CrashLoopBackOff", "message": f"exit code {code}"}})
            await self._pause(pause)

    async def _start(self) -> bool:
        """Start the container as soon as all that it needs exists; False if it must go before."""
        while not self._leaving.is_set():
            try:
                await self._volumes.fetch_token()
                self._volumes.refresh()
                self._container().write(self._folder)
            except (NotYetError, httpx.HTTPError) as error:
                waiting = {"reason": "CreateContainerConfigError", "message": str(error)}
                await self._report("Pending", {"waiting": waiting})
                await self._pause(0.5)
                continue
            log = self._around.logs / self.namespace / f"{self.name}.log"
            log.parent.mkdir(parents=True, exist_ok=True)
            with log.open("ab") as output:
                self._process = await asyncio.create_subprocess_exec(
                    *(sys.executable, "-m", "cluster.container", self._folder),
                    env={"PYTHONPATH": str(TESTS), "PATH": "/usr/sbin:/usr/bin:/sbin:/bin"},
                    stdin=asyncio.subprocess.DEVNULL,
                    stdout=output,
                    stderr=output,
                )
            self._running_since = _now()
            self._around.tell("started", self, self.address)
            return True
        return False

    async def _run(self) -> int:
        """Watch over the running container; return its exit code."""
        readiness, liveness, startup = (self._spec.get(f"{kind}Probe") for kind in ("readiness", "liveness", "startup"))
        self._is_ready = readiness is None and startup is None
        await self._report("Running", {"running": {"startedAt": self._running_since}})
        watchers = [asyncio.create_task(self._probe(startup, readiness, liveness))]
        try:
            return await self._ended()
        finally:
            for watcher in watchers:
                watcher.cancel()
            await asyncio.gather(*watchers, return_exceptions=True)
            self._is_ready = False

    async def _probe(
        self, startup: dict[str, Any] | None, readiness: dict[str, Any] | None, liveness: dict[str, Any] | None
    ) -> None:
        if startup is not None:
            started = asyncio.Event()
            starting = asyncio.create_task(
                probes.keep_probing(startup, self, lambda good: started.set() if good else self._kill_for("startup"))
            )
            await started.wait()
            starting.cancel()
        changed = asyncio.Event()

        def told(good: bool) -> None:  # noqa: FBT001 - what a probe says
            if good != self._is_ready:
                self._is_ready = good
                changed.set()

        tasks = []
        if readiness is None:
            told(good=True)
        else:
            tasks.append(probes.keep_probing(readiness, self, told, until_good=0.5))
        if liveness is not None:
            tasks.append(probes.keep_probing(liveness, self, lambda good: None if good else self._kill_for("liveness")))

        async def report() -> None:
            while True:
                await changed.wait()
                changed.clear()
                self._around.tell("ready" if self._is_ready else "unready", self, "")
                await self._report("Running", {"running": {"startedAt": self._running_since}})

        await asyncio.gather(report(), *tasks)

    def _kill_for(self, what: str) -> None:
        if not self._leaving.is_set():
            self._around.tell("killed", self, f"by its {what} probe")
            self._signal(signal.SIGKILL)

    def _container(self) -> Container:
        spec, meta = self._spec, self.manifest["spec"]
        extra = [key for key in ("initContainers", "ephemeralContainers") if meta.get(key)]
        if extra or len(meta["containers"]) > 1:
            raise NotYetError("this node runs pods of one container only")
        image = self._image()
        user = user_of(self.manifest, image.user)
        values = environment(self.manifest, self.address, self._around.sources)
        command = [*(spec.get("command") or image.entrypoint), *(spec.get("args") or [])]
        return Container(
            network=self._network,
            host_name=self.name,
            command=[expand(word, values) for word in command],
            environment=values,
            folder=spec.get("workingDir", "/"),
            user=user.user,
            group=user.group,
            groups=user.groups,
            image=image.folders,
            hosts=str(self._around.hosts),
            mounts=[*(Mount(target, place, read_only=True) for place, target in image.links.items()), *self._mounts()],
            read_only=bool((spec.get("securityContext") or {}).get("readOnlyRootFilesystem")),
        )

    def _image(self) -> Image:
        name = repository(self._spec["image"])
        if name not in self._around.images:
            known = ", ".join(sorted(self._around.images))
            raise NotYetError(f"no image {name} on this node, which has {known}")
        return self._around.images[name]

    def _mounts(self) -> list[Mount]:
        return [
            Mount(
                str(self._volumes.place(mount["name"]) / mount.get("subPath", "")),
                mount["mountPath"],
                read_only=mount.get("readOnly", False) or not self._volumes.is_writable(mount["name"]),
            )
            for mount in self._spec.get("volumeMounts") or []
        ]

    async def _before_stop(self, deadline: float) -> None:
        hook = (self._spec.get("lifecycle") or {}).get("preStop") or {}
        left = max(0.0, deadline - time.monotonic())
        if command := (hook.get("exec") or {}).get("command"):
            await self.execute(command, left)
        elif sleep := hook.get("sleep"):
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(self._ended(), min(left, sleep["seconds"]))

    async def _ended(self) -> int:
        assert self._process is not None
        return await self._process.wait()

    def _signal(self, number: signal.Signals) -> None:
        if self._process is not None and self._process.returncode is None:
            with contextlib.suppress(ProcessLookupError):
                self._process.send_signal(number)

    async def _pause(self, seconds: float) -> None:
        """Wait, or until it must go."""
        with contextlib.suppress(TimeoutError):
            await asyncio.wait_for(self._leaving.wait(), seconds)

    async def _connect(self) -> None:
        link = f"v{self.uid[:8]}"
        await _ip("netns", "add", self._network)
        await _ip("link", "add", link, "type", "veth", "peer", "name", "eth0", "netns", self._network)
        await _ip("link", "set", link, "master", BRIDGE, "up")
        inside = (
            "link set lo up",
            "link set eth0 up",
            f"addr add {self.address}/{PODS.prefixlen} dev eth0",
            f"route add {SERVICES} via {HOST}",
        )
        await _ip("-n", self._network, "-batch", "-", stdin="\n".join(inside))

    async def _report(self, phase: str, state: dict[str, Any]) -> None:
        async with self._reporting:
            ready = self._is_ready and phase == "Running" and "running" in state
            what = (phase, ready, self._restarts, state)
            if what == self._reported:
                return
            self._reported = what
            conditions = [
                {"type": kind, "status": "True" if true else "False", "lastTransitionTime": _now()}
                for kind, true in (
                    ("PodScheduled", True),
                    ("PodReadyToStartContainers", True),
                    ("Initialized", True),
                    ("ContainersReady", ready),
                    ("Ready", ready),
                )
            ]
            container = {
                "name": self._spec["name"],
                "image": self._spec["image"],
                "imageID": self._spec["image"],
                "ready": ready,
                "restartCount": self._restarts,
                "started": "running" in state,
                "state": state,
            }
            status = {
                "phase": phase,
                "hostIP": HOST,
                "hostIPs": [{"ip": HOST}],
                "podIP": self.address,
                "podIPs": [{"ip": self.address}],
                "startTime": self._since,
                "conditions": conditions,
                "containerStatuses": [container],
            }
            await self._around.sources.api.send("PATCH", f"{self._path}/status", {"status": status}, STRATEGIC)


def _terminated(code: int, since: str) -> dict[str, Any]:
    reason = "Completed" if code == 0 else "Error"
    return {"terminated": {"exitCode": abs(code), "reason": reason, "startedAt": since, "finishedAt": _now()}}


def _now() -> str:
    return datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


async def _ip(*words: str, stdin: str = "", check: bool = True) -> None:
    process = await asyncio.create_subprocess_exec(
        *("ip", *words),
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.DEVNULL,
        stderr=asyncio.subprocess.PIPE,
    )
    _, said = await process.communicate(stdin.encode())
    if check and process.returncode != 0:
        raise RuntimeError(f"ip {' '.join(words)}: {said.decode().strip()}")
