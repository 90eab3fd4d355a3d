"""Signatures of heads: made and checked with Ed25519, with a key in the data folder."""

import base64
from collections.abc import Iterable
from pathlib import Path

import msgspec
from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey, Ed25519PublicKey

from app.adapters import signing_keys
from app.domain.errors import InputError
from app.domain.log import Head, heads
from app.domain.log.heads import SignedHead
from app.domain.values import timestamps

FILE = "heads.key"
"""The name of the key file in the data folder."""

_PREFIX = "ed25519:"
_FILE_BYTES_MAX = 1 << 20


class HeadKey:
    """The private key of a data folder."""

    def __init__(self, seed: bytes) -> None:
        self._key = Ed25519PrivateKey.from_private_bytes(seed)

    @property
    def public(self) -> str:
        """`ed25519:` and the public key in base64."""
        return _public_text(self._key.public_key())

    @property
    def public_pem(self) -> str:
        """The public key in PEM format, for other programs."""
        return (
            self._key.public_key()
            .public_bytes(
                serialization.Encoding.PEM, serialization.PublicFormat.SubjectPublicKeyInfo
            )
            .decode()
        )

    def sign(self, history: str, head: Head) -> SignedHead:
        """The signed head of a history."""
        bare = SignedHead(
            history=history,
            revision=head.revision,
            hash=f"sha256:{head.hash.hex()}",
            time=timestamps.micro_text(head.time),
            key=self.public,
        )
        signature = base64.b64encode(self._key.sign(bare.covered())).decode()
        return msgspec.structs.replace(bare, signature=signature)


def open_head_key(data: Path) -> HeadKey:
    """The key of a data folder; created when it is missing. Raises InputError."""
    seed = signing_keys.open_key(
        data / FILE, loss="heads that it signed then have a key that no longer exists"
    )
    return HeadKey(seed[: signing_keys.KEY_BYTES])


def check_signature(head: SignedHead, *, place: str) -> None:
    """Raise InputError unless the signature is valid for the key that the head names."""
    try:
        signature = base64.b64decode(head.signature, validate=True)
        _public_key(head.key, place).verify(signature, head.covered())
    except (InvalidSignature, ValueError) as problem:
        raise InputError(
            "the signature of the head is wrong: the head was changed", place=place
        ) from problem


def is_signed(head: SignedHead) -> bool:
    """Whether the signature is valid for the key that the head names."""
    try:
        check_signature(head, place="")
    except InputError:
        return False
    return True


def read_heads(path: Path) -> list[SignedHead]:
    """The heads in a file (one or a list); checks their signatures. Raises InputError."""
    try:
        with path.open("rb") as file:
            content = file.read(_FILE_BYTES_MAX)
    except OSError as problem:
        raise InputError(
            f"the head cannot be read: {problem.strerror}", place=str(path)
        ) from problem
    return parse_heads(content, place=str(path))


def parse_heads(content: bytes, *, place: str) -> list[SignedHead]:
    """The heads in a JSON text (one or a list); checks their signatures. Raises InputError."""
    try:
        parsed = heads.from_text(content)
    except (ValueError, RecursionError) as problem:
        raise InputError(str(problem), place=place, cure="use what `redra head` wrote") from problem
    for head in parsed:
        check_signature(head, place=place)
    return parsed


def check_kept(written: object, *, place: str) -> None:
    """Raise InputError if the signature of a head, as it is written to a file, does not fit it."""
    if written:
        parse_heads(msgspec.json.encode(written), place=place)


def check_keys(signed: Iterable[SignedHead], known: Iterable[str], *, place: str) -> None:
    """Raise InputError unless each head is signed with a known key."""
    trusted = set(known)
    for head in signed:
        if head.key not in trusted:
            raise InputError(
                f"the head is signed with {head.key}, which is not the key of this data folder",
                place=place,
                cure="name the key that you trust with --head-key",
            )


def parse_key(text: str, *, place: str) -> str:
    """The public key in a text, `ed25519:…` or PEM. Raises InputError."""
    stripped = text.strip()
    if stripped.startswith("-----BEGIN"):
        try:
            key = serialization.load_pem_public_key(stripped.encode())
        except ValueError as problem:
            raise InputError("it is not a public key", place=place) from problem
        if isinstance(key, Ed25519PublicKey):
            return _public_text(key)
        raise InputError("it is not an Ed25519 key", place=place)
    return _public_text(_public_key(stripped, place))


def _public_key(text: str, place: str) -> Ed25519PublicKey:
    try:
        if not text.startswith(_PREFIX):
            raise ValueError(text)
        raw = base64.b64decode(text.removeprefix(_PREFIX), validate=True)
        return Ed25519PublicKey.from_public_bytes(raw)
    except ValueError as problem:
        raise InputError(
            f"{text[:80]!r} is not a key such as ed25519:…", place=place, cure="see `redra head`"
        ) from problem


def _public_text(key: Ed25519PublicKey) -> str:
    raw = key.public_bytes(serialization.Encoding.Raw, serialization.PublicFormat.Raw)
    return _PREFIX + base64.b64encode(raw).decode()
