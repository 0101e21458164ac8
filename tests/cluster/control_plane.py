"""etcd, kube-apiserver and kube-controller-manager as plain processes."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

import httpx

from cluster.api import Api, write_kubeconfig
from cluster.certificates import ClusterAuthority
from cluster.processes import ClusterError, Process
from cluster.sandbox import HOST, SERVICES
from harness.waiting import wait_until

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

ADMINISTRATOR = "admin.kubeconfig"
PORT = 6443
ETCD = "http://127.0.0.1:2379"

# What the tests' objects need. The others would be work for two cores: nodes do not come and go here, nor volumes.
CONTROLLERS = (
    "cronjob-controller",
    "deployment-controller",
    "disruption-controller",
    "endpointslice-controller",
    "garbage-collector-controller",
    "horizontal-pod-autoscaler-controller",
    "job-controller",
    "namespace-controller",
    "replicaset-controller",
    "root-ca-certificate-publisher-controller",
    "serviceaccount-controller",
    "statefulset-controller",
    "clusterrole-aggregation-controller",
)


class ControlPlane:
    """Runs from its making until `stop`, or the end of the sandbox.

    Args:
        programs: Folder with the programs.
        folder: For certificates and data.
        logs: Gets a log for each program.
        hpa_sync_seconds: How often HPAs are synced; Kubernetes' default is 15.

    Leaves the kubeconfig of an administrator in the folder, under the name `ADMINISTRATOR`.
    """

    def __init__(self, programs: Path, folder: Path, logs: Path, hpa_sync_seconds: int) -> None:
        self._programs, self._folder, self._logs = programs, folder, logs
        self._authority = ClusterAuthority(folder / "certificates")
        kubeconfig = self._kubeconfig(ADMINISTRATOR, user="admin", group="system:masters")
        self.processes = [self._etcd(), self._api_server()]
        api = Api(kubeconfig)
        self._wait(lambda: api.status("/readyz") == httpx.codes.OK, "kube-apiserver is ready")
        self.processes.append(self._controller_manager(hpa_sync_seconds))
        # Until then no pod can be made in it.
        account = "/api/v1/namespaces/default/serviceaccounts/default"
        self._wait(lambda: api.status(account) == httpx.codes.OK, "kube-controller-manager makes service accounts")
        api.close()

    def check(self) -> None:
        """See that all runs.

        Raises:
            ClusterError: Something does not.
        """
        for process in self.processes:
            process.check()

    def stop(self) -> None:
        """Kill all, the last started first."""
        for process in reversed(self.processes):
            process.kill()

    def _wait(self, condition: Callable[[], bool], what: str) -> None:
        def met() -> bool:
            self.check()
            return condition()

        try:
            wait_until(met, 60, what)
        except TimeoutError as error:
            tails = "\n".join(f"{process.name}:\n{process.tail()}" for process in self.processes)
            raise ClusterError(f"{error}\n{tails}") from error

    def _kubeconfig(self, name: str, user: str, group: str) -> Path:
        path = self._folder / name
        issued = self._authority.issue(path.stem, common_name=user, organization=group)
        server = f"https://{HOST}:{PORT}"
        write_kubeconfig(path, server, self._authority.certificate, issued.certificate, issued.key)
        return path

    def _start(self, program: str, *flags: str) -> Process:
        return Process([self._programs / program, *flags], self._logs / f"{program}.log", {"PATH": os.environ["PATH"]})

    def _etcd(self) -> Process:
        return self._start(
            "etcd",
            f"--data-dir={self._folder}/etcd",
            f"--listen-client-urls={ETCD}",
            f"--advertise-client-urls={ETCD}",
            "--listen-peer-urls=http://127.0.0.1:2380",
            "--unsafe-no-fsync",
            "--log-level=warn",
        )

    def _api_server(self) -> Process:
        certificate = self._authority.issue(
            "apiserver", HOST, str(SERVICES[1]), "kubernetes.default.svc", "localhost", "127.0.0.1"
        )
        front_proxy = self._authority.issue("front-proxy", common_name="front-proxy-client")
        kubelet = self._authority.issue("kubelet-client", common_name="kube-apiserver")
        signer = self._authority.issue("service-accounts", common_name="service-accounts").key
        return self._start(
            "kube-apiserver",
            f"--etcd-servers={ETCD}",
            f"--advertise-address={HOST}",
            f"--bind-address={HOST}",
            f"--secure-port={PORT}",
            f"--service-cluster-ip-range={SERVICES}",
            f"--tls-cert-file={certificate.certificate}",
            f"--tls-private-key-file={certificate.key}",
            f"--client-ca-file={self._authority.certificate}",
            "--authorization-mode=RBAC",
            "--service-account-issuer=https://kubernetes.default.svc",
            f"--service-account-key-file={signer}",
            f"--service-account-signing-key-file={signer}",
            f"--requestheader-client-ca-file={self._authority.certificate}",
            "--requestheader-allowed-names=front-proxy-client",
            "--requestheader-username-headers=X-Remote-User",
            "--requestheader-group-headers=X-Remote-Group",
            "--requestheader-extra-headers-prefix=X-Remote-Extra-",
            f"--proxy-client-cert-file={front_proxy.certificate}",
            f"--proxy-client-key-file={front_proxy.key}",
            f"--kubelet-client-certificate={kubelet.certificate}",
            f"--kubelet-client-key={kubelet.key}",
            # For when the node's cluster DNS would be asked: it has none.
            "--kubelet-preferred-address-types=InternalIP",
        )

    def _controller_manager(self, hpa_sync_seconds: int) -> Process:
        kubeconfig = self._kubeconfig(
            "controller-manager.kubeconfig", user="system:kube-controller-manager", group="system:controller-managers"
        )
        return self._start(
            "kube-controller-manager",
            f"--kubeconfig={kubeconfig}",
            f"--authentication-kubeconfig={kubeconfig}",
            f"--authorization-kubeconfig={kubeconfig}",
            "--leader-elect=false",
            "--use-service-account-credentials",
            f"--service-account-private-key-file={self._folder}/certificates/service-accounts.key",
            f"--root-ca-file={self._authority.certificate}",
            "--bind-address=127.0.0.1",
            f"--controllers={','.join(CONTROLLERS)}",
            f"--horizontal-pod-autoscaler-sync-period={hpa_sync_seconds}s",
        )
