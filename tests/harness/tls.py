"""A certificate authority of our own, and server certificates from it."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import trustme

if TYPE_CHECKING:
    from pathlib import Path


@dataclass(frozen=True, slots=True)
class ServerCertificate:
    """A server's certificate chain and private key, in PEM."""

    certificate: str
    key: str = field(repr=False)


class CertificateAuthority:
    """Signs server certificates; `write` saves what a client needs to verify them."""

    def __init__(self) -> None:
        self._authority = trustme.CA()

    def certificate_for(self, *names: str) -> ServerCertificate:
        """Return a certificate for host names or IP addresses, by default those of the loopback."""
        issued = self._authority.issue_cert(*(names or ("localhost", "127.0.0.1")))
        chain = b"".join(blob.bytes() for blob in issued.cert_chain_pems)
        return ServerCertificate(chain.decode(), issued.private_key_pem.bytes().decode())

    def write(self, path: Path) -> Path:
        """Write the authority's certificate, for `sslrootcert`, and return its path."""
        self._authority.cert_pem.write_to_path(str(path))
        return path
