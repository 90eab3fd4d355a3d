"""A private certificate authority in a folder, and the certificates that it issues.

Keys are P-256 and readable only by their owner. At start a server or client certificate is created
again when it will expire soon, lacks a requested host, or was not issued by this authority. The
authority itself stays, so that issued certificates keep working.
"""

import ipaddress
import os
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path

from cryptography import x509
from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

from app.domain.errors import InputError
from app.domain.values.timestamps import SECOND, Instant

_AUTHORITY_DAYS = 3_650
_LEAF_DAYS = 365
_RENEW_DAYS = 30
_SKEW = timedelta(minutes=5)


@dataclass(frozen=True, slots=True, kw_only=True)
class Certificate:
    """The paths of a certificate and its key, as PEM files."""

    certificate: Path
    key: Path


@dataclass(frozen=True, slots=True, kw_only=True)
class _Authority:
    certificate: x509.Certificate
    key: ec.EllipticCurvePrivateKey


class CertificateFolder:
    """The authority in `folder`, created when missing. `now` decides which certificates expire."""

    def __init__(self, folder: Path, *, now: Instant) -> None:
        self._folder = folder
        self._now = datetime.fromtimestamp(now // SECOND, UTC)
        folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        folder.chmod(0o700)
        self._authority = self._open()

    @property
    def authority(self) -> Path:
        """The certificate with which clients verify the server, and the server its clients."""
        return self._folder / "ca.crt"

    def server(self, hosts: Sequence[str]) -> Certificate:
        """A certificate for a server with these names and addresses."""
        names = [_general_name(host) for host in dict.fromkeys(hosts)]
        wanted = x509.SubjectAlternativeName(names)
        return self._leaf("server", _name("redra"), ExtendedKeyUsageOID.SERVER_AUTH, wanted)

    def client(self, file: str, *, user: str, groups: Sequence[str]) -> Certificate:
        """A certificate for a user in groups: common name and organizations."""
        subject = _name(user, *groups)
        return self._leaf(file, subject, ExtendedKeyUsageOID.CLIENT_AUTH, None)

    def _open(self) -> _Authority:
        paths = self._paths("ca")
        if paths.certificate.exists() and paths.key.exists():
            authority = _Authority(certificate=_read(paths), key=_read_key(paths))
            if authority.certificate.not_valid_after_utc > self._now + timedelta(days=_RENEW_DAYS):
                return authority
        key = ec.generate_private_key(ec.SECP256R1())
        subject = _name("redra-ca")
        identifier = x509.SubjectKeyIdentifier.from_public_key(key.public_key())
        certificate = (
            self._builder(subject, subject, key, days=_AUTHORITY_DAYS)
            .add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
            .add_extension(_key_usage(is_authority=True), critical=True)
            .add_extension(identifier, critical=False)
            .sign(key, hashes.SHA256())
        )
        _write(paths, certificate, key)
        return _Authority(certificate=certificate, key=key)

    def _leaf(
        self,
        file: str,
        subject: x509.Name,
        usage: x509.ObjectIdentifier,
        names: x509.SubjectAlternativeName | None,
    ) -> Certificate:
        paths = self._paths(file)
        if self._is_usable(paths, subject, names):
            return paths
        key = ec.generate_private_key(ec.SECP256R1())
        public = self._authority.key.public_key()
        builder = (
            self._builder(subject, self._authority.certificate.subject, key, days=_LEAF_DAYS)
            .add_extension(x509.BasicConstraints(ca=False, path_length=None), critical=True)
            .add_extension(_key_usage(is_authority=False), critical=True)
            .add_extension(x509.ExtendedKeyUsage([usage]), critical=False)
            .add_extension(
                x509.AuthorityKeyIdentifier.from_issuer_public_key(public), critical=False
            )
        )
        if names is not None:
            builder = builder.add_extension(names, critical=False)
        _write(paths, builder.sign(self._authority.key, hashes.SHA256()), key)
        return paths

    def _is_usable(
        self, paths: Certificate, subject: x509.Name, names: x509.SubjectAlternativeName | None
    ) -> bool:
        if not paths.certificate.exists() or not paths.key.exists():
            return False
        certificate = _read(paths)
        if certificate.subject != subject:
            return False
        if certificate.not_valid_after_utc < self._now + timedelta(days=_RENEW_DAYS):
            return False
        try:
            certificate.verify_directly_issued_by(self._authority.certificate)
        except (ValueError, TypeError, InvalidSignature):
            return False
        if names is None:
            return True
        held = certificate.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
        return set(held) >= set(names)

    def _builder(
        self,
        subject: x509.Name,
        issuer: x509.Name,
        key: ec.EllipticCurvePrivateKey,
        *,
        days: int,
    ) -> x509.CertificateBuilder:
        return (
            x509.CertificateBuilder()
            .subject_name(subject)
            .issuer_name(issuer)
            .public_key(key.public_key())
            .serial_number(x509.random_serial_number())
            .not_valid_before(self._now - _SKEW)
            .not_valid_after(self._now + timedelta(days=days))
        )

    def _paths(self, file: str) -> Certificate:
        return Certificate(
            certificate=self._folder / f"{file}.crt", key=self._folder / f"{file}.key"
        )


def write_private(path: Path, text: bytes) -> None:
    """Write a file that only its owner can read; readers see the old or the new file, complete."""
    path.parent.mkdir(parents=True, exist_ok=True)
    fresh = path.with_name(f".{path.name}.new")
    fresh.unlink(missing_ok=True)
    handle = os.open(fresh, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
    with os.fdopen(handle, "wb") as file:
        file.write(text)
    fresh.replace(path)


def _name(common: str, *organizations: str) -> x509.Name:
    parts = [x509.NameAttribute(NameOID.ORGANIZATION_NAME, group) for group in organizations]
    return x509.Name([*parts, x509.NameAttribute(NameOID.COMMON_NAME, common)])


def _general_name(host: str) -> x509.GeneralName:
    try:
        return x509.IPAddress(ipaddress.ip_address(host))
    except ValueError:
        return x509.DNSName(host)


def _key_usage(*, is_authority: bool) -> x509.KeyUsage:
    return x509.KeyUsage(
        digital_signature=not is_authority,
        key_cert_sign=is_authority,
        crl_sign=is_authority,
        content_commitment=False,
        key_encipherment=False,
        data_encipherment=False,
        key_agreement=False,
        encipher_only=False,
        decipher_only=False,
    )


def _read(paths: Certificate) -> x509.Certificate:
    try:
        return x509.load_pem_x509_certificate(paths.certificate.read_bytes())
    except (OSError, ValueError) as problem:
        raise _unreadable(paths.certificate) from problem


def _read_key(paths: Certificate) -> ec.EllipticCurvePrivateKey:
    try:
        key = serialization.load_pem_private_key(paths.key.read_bytes(), password=None)
    except (OSError, ValueError, TypeError) as problem:
        raise _unreadable(paths.key) from problem
    if not isinstance(key, ec.EllipticCurvePrivateKey):
        raise _unreadable(paths.key)
    return key


def _write(
    paths: Certificate, certificate: x509.Certificate, key: ec.EllipticCurvePrivateKey
) -> None:
    write_private(
        paths.key,
        key.private_bytes(
            serialization.Encoding.PEM,
            serialization.PrivateFormat.PKCS8,
            serialization.NoEncryption(),
        ),
    )
    write_private(paths.certificate, certificate.public_bytes(serialization.Encoding.PEM))


def _unreadable(path: Path) -> InputError:
    return InputError(
        "this is not a certificate or key that redra wrote",
        place=str(path),
        cure="remove the folder pki to make new ones; kubeconfigs must then be made again",
    )
