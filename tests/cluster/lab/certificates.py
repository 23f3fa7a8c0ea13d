"""The cluster's certificate authority and the certificates that it signs.

One authority signs for etcd, the API server, the kubelet and all clients: the cluster is local and
lives for hours.
"""

import datetime as dt
import ipaddress
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

_LIFETIME = dt.timedelta(days=3650)
# A machine whose clock is set back a little after a restart still accepts them.
_BACKDATING = dt.timedelta(hours=1)


@dataclass(frozen=True)
class Pair:
    """A certificate and its private key, in PEM."""

    certificate: bytes
    key: bytes

    def write(self, directory: Path, name: str) -> None:
        """Write `name`.crt and `name`.key, the key readable by the owner only."""
        (directory / f"{name}.crt").write_bytes(self.certificate)
        write_private(directory / f"{name}.key", self.key)


def write_private(path: Path, content: bytes) -> None:
    """Write a file that only its owner may read, also while it is being written."""
    path.touch(mode=0o600)
    path.write_bytes(content)


class Authority:
    """A certificate authority that lives in memory; only its certificate and key are kept."""

    def __init__(self) -> None:
        self._key = ec.generate_private_key(ec.SECP256R1())
        self._name = _subject("headway-lab", ())
        builder = _builder(self._name, self._name, self._key.public_key())
        constraints = x509.BasicConstraints(ca=True, path_length=0)
        builder = builder.add_extension(constraints, critical=True)
        builder = builder.add_extension(_key_usage(signs_certificates=True), critical=True)
        self._certificate = builder.sign(self._key, hashes.SHA256())

    @property
    def pair(self) -> Pair:
        """The authority's own certificate and key."""
        return Pair(_pem(self._certificate), _private_pem(self._key))

    def issue(
        self, name: str, organizations: Sequence[str] = (), hosts: Sequence[str] = ()
    ) -> Pair:
        """A certificate for a client, and for a server too if `hosts` (names, addresses) are given.

        Kubernetes reads `name` as the user and `organizations` as the groups.
        """
        key = ec.generate_private_key(ec.SECP256R1())
        usages = [ExtendedKeyUsageOID.CLIENT_AUTH]
        builder = _builder(_subject(name, organizations), self._name, key.public_key())
        if hosts:
            usages.append(ExtendedKeyUsageOID.SERVER_AUTH)
            names = x509.SubjectAlternativeName([_general_name(host) for host in hosts])
            builder = builder.add_extension(names, critical=False)
        builder = builder.add_extension(x509.ExtendedKeyUsage(usages), critical=False)
        builder = builder.add_extension(_key_usage(signs_certificates=False), critical=True)
        return Pair(_pem(builder.sign(self._key, hashes.SHA256())), _private_pem(key))


def signing_key() -> Pair:
    """A key pair that signs service account tokens; `certificate` is the public key."""
    key = ec.generate_private_key(ec.SECP256R1())
    public = key.public_key().public_bytes(
        serialization.Encoding.PEM, serialization.PublicFormat.SubjectPublicKeyInfo
    )
    return Pair(public, _private_pem(key))


def _builder(
    subject: x509.Name, issuer: x509.Name, key: ec.EllipticCurvePublicKey
) -> x509.CertificateBuilder:
    begin = dt.datetime.now(dt.timezone.utc) - _BACKDATING
    return (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(issuer)
        .public_key(key)
        .serial_number(x509.random_serial_number())
        .not_valid_before(begin)
        .not_valid_after(begin + _LIFETIME)
    )


def _subject(name: str, organizations: Sequence[str]) -> x509.Name:
    groups = [x509.NameAttribute(NameOID.ORGANIZATION_NAME, group) for group in organizations]
    return x509.Name([*groups, x509.NameAttribute(NameOID.COMMON_NAME, name)])


def _general_name(host: str) -> x509.GeneralName:
    try:
        return x509.IPAddress(ipaddress.ip_address(host))
    except ValueError:
        return x509.DNSName(host)


def _key_usage(*, signs_certificates: bool) -> x509.KeyUsage:
    return x509.KeyUsage(
        digital_signature=True,
        content_commitment=False,
        key_encipherment=False,
        data_encipherment=False,
        key_agreement=False,
        key_cert_sign=signs_certificates,
        crl_sign=signs_certificates,
        encipher_only=False,
        decipher_only=False,
    )


def _pem(certificate: x509.Certificate) -> bytes:
    return certificate.public_bytes(serialization.Encoding.PEM)


def _private_pem(key: ec.EllipticCurvePrivateKey) -> bytes:
    return key.private_bytes(
        serialization.Encoding.PEM,
        serialization.PrivateFormat.PKCS8,
        serialization.NoEncryption(),
    )
