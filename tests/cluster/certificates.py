"""The cluster's certificate authority, what it issues, and the key that signs service accounts' tokens."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import trustme

if TYPE_CHECKING:
    from pathlib import Path


@dataclass(frozen=True, slots=True)
class Issued:
    """A certificate and its private key, in PEM files."""

    certificate: Path
    key: Path


class ClusterAuthority:
    """Signs the API server's certificate, that of its front proxy, and the kubelet's.

    Args:
        folder: Gets every file.
    """

    def __init__(self, folder: Path) -> None:
        self._authority = trustme.CA()
        self._folder = folder
        folder.mkdir()
        self.certificate = folder / "ca.crt"
        self._authority.cert_pem.write_to_path(str(self.certificate))

    def issue(self, stem: str, *names: str, common_name: str | None = None, organization: str | None = None) -> Issued:
        """Issue a certificate for host names or addresses, or for a user in a group (its organization)."""
        # Without any name trustme leaves an empty critical extension, which Go refuses.
        identities = names or (f"{stem}.invalid",)
        leaf = self._authority.issue_cert(*identities, common_name=common_name, organization_name=organization)
        issued = Issued(self._folder / f"{stem}.crt", self._folder / f"{stem}.key")
        issued.certificate.write_bytes(b"".join(blob.bytes() for blob in leaf.cert_chain_pems))
        leaf.private_key_pem.write_to_path(str(issued.key))
        issued.key.chmod(0o600)
        return issued
