"""The keys that encrypt the values of Secrets in the log.

A file of the data folder, or a file that the settings name, holds main keys as base64, one per
line: the first one encrypts, all decrypt. Each history has a key derived from a main key, so that a
bundle can contain the key of its history and no other. Keys from bundles are kept in a second file
beside the data. Only the owner can read the two files. Every command that opens a store has the
keys, but few commands meet a Secret: the cipher is loaded on first use.

A value is encrypted with AES-256-GCM, bound to namespace, name and field. The nonce is derived from
the value and its place by HMAC-SHA256 with the second half of the key, so the same value at the
same place gives the same text and no two values share a nonce.
"""

import base64
import binascii
import hashlib
import hmac
import re
from pathlib import Path
from typing import TYPE_CHECKING

from app.adapters import signing_keys
from app.domain.errors import InputError
from app.domain.log import HistoryInfo
from app.domain.log.chain import canonical_json
from app.domain.objects.kinds.secret_values import DIGEST, ENCRYPTED, SecretCipher, key_id

if TYPE_CHECKING:
    from cryptography.hazmat.primitives.ciphers.aead import AESGCM

MAIN_FILE = "secrets.key"
IMPORTED_FILE = "secrets-imported.key"
HISTORY_KEY_BYTES = 64

_NONCE_BYTES = 12
_NAME = re.compile(r"[0-9a-f]{8}\.[0-9a-f]{16}")
_HALF = HISTORY_KEY_BYTES // 2
_LOSS = "values that it encrypted can't be read any more"


class SecretKeys:
    """The keys of one data folder. The main key is created when the first value is encrypted."""

    def __init__(self, main: Path, imported: Path, *, digests: bool = False) -> None:
        self._main_file = main
        self._imported_file = imported
        self._digests = digests
        self._main: dict[str, bytes] = {}
        self._imported: dict[str, bytes] = {}
        self._derived: dict[str, bytes] = {}
        self._seen: tuple[object, object] | None = None

    def cipher(self, info: HistoryInfo) -> SecretCipher:
        """The cipher for the Secret values of one history."""
        salt = hashlib.sha256(canonical_json([info.name, info.created])).digest()[:8]
        return _HistoryCipher(self, salt.hex(), digests=self._digests)

    @property
    def place(self) -> Path:
        """The file of the main keys."""
        return self._main_file

    def open(self) -> bool:
        """Read the keys; True when a main key was created. Raises InputError."""
        is_missing = not self._main_file.exists()
        if is_missing:
            signing_keys.make(self._main_file)
        self._read()
        return is_missing

    def current(self, salt: str) -> tuple[str, bytes]:
        """The key that encrypts new values, with its id."""
        if not self._main:
            self.open()
        name = f"{next(iter(self._main))}.{salt}"
        key = self.find(name)
        assert key is not None, "a key is derived from the main key that was just read"
        return name, key

    def find(self, name: str) -> bytes | None:
        """The key with that id; None when it is not here. Raises InputError."""
        self._read()
        key = self._derived.get(name) or self._imported.get(name)
        if key is not None:
            return key
        main, _, salt = name.partition(".")
        if main not in self._main or _NAME.fullmatch(name) is None:
            return None
        key = _derive(self._main[main], bytes.fromhex(salt))
        self._derived[name] = key
        return key

    def take(self, keys: dict[str, bytes]) -> None:
        """Store keys from a bundle. Raises InputError for an invalid key or a failed write."""
        for name, key in keys.items():
            if _NAME.fullmatch(name) is None or len(key) != HISTORY_KEY_BYTES:
                raise InputError(f"{name[:64]!r} does not name a key of a history")
        missing = {name: key for name, key in keys.items() if self.find(name) is None}
        if not missing:
            return
        kept = self._imported | missing
        lines = [f"{name} {base64.b64encode(kept[name]).decode()}\n" for name in sorted(kept)]
        try:
            signing_keys.write_private(self._imported_file, "".join(lines).encode())
        except OSError as problem:
            raise InputError(
                f"the keys cannot be kept: {problem.strerror}", place=str(self._imported_file)
            ) from problem

    def _read(self) -> None:
        """Read both files if they have changed; other processes import and rotate keys too."""
        seen = (_state(self._main_file), _state(self._imported_file))
        if seen == self._seen:
            return
        main: dict[str, bytes] = {}
        if seen[0] is not None:
            for line in _lines(self._main_file):
                key = _key(line, self._main_file, at_least=signing_keys.KEY_BYTES)
                main[hashlib.sha256(b"redra main key" + key).hexdigest()[:8]] = key
        imported: dict[str, bytes] = {}
        if seen[1] is not None:
            for line in _lines(self._imported_file):
                name, _, text = line.partition(b" ")
                imported[name.decode()] = _key(
                    text, self._imported_file, at_least=HISTORY_KEY_BYTES
                )
        self._main, self._imported, self._derived, self._seen = main, imported, {}, seen


class _HistoryCipher:
    """Encrypts the values of one history; decrypts values of any history whose key is here."""

    def __init__(self, keys: SecretKeys, salt: str, *, digests: bool) -> None:
        self._keys = keys
        self._salt = salt
        self._digests = digests

    def protect(self, place: bytes, plain: bytes) -> str:
        """The text that replaces a value in the log."""
        name, key = self._keys.current(self._salt)
        digest = _digest(key, place, plain)
        if self._digests:
            return f"{DIGEST}{name}:{base64.b64encode(digest).decode()}"
        nonce = digest[:_NONCE_BYTES]
        sealed = nonce + _aead(key).encrypt(nonce, plain, place)
        return f"{ENCRYPTED}{name}:{base64.b64encode(sealed).decode()}"

    def reveal(self, place: bytes, text: str) -> bytes | None:
        """The value; None for a digest, a text of another place, or a text whose key is missing."""
        key = self._keys.find(key_id(text)) if text.startswith(ENCRYPTED) else None
        if key is None:
            return None
        from cryptography.exceptions import InvalidTag

        try:
            sealed = base64.b64decode(text.rpartition(":")[2], validate=True)
            return _aead(key).decrypt(sealed[:_NONCE_BYTES], sealed[_NONCE_BYTES:], place)
        except (InvalidTag, ValueError):
            return None

    def matches(self, place: bytes, plain: bytes, text: str) -> bool:
        """Whether `text` is the digest of the value."""
        key = self._keys.find(key_id(text)) if text.startswith(DIGEST) else None
        if key is None:
            return False
        digest = base64.b64encode(_digest(key, place, plain))
        return hmac.compare_digest(text.rpartition(":")[2].encode(), digest)


def _aead(key: bytes) -> "AESGCM":
    from cryptography.hazmat.primitives.ciphers.aead import AESGCM

    return AESGCM(key[:_HALF])


def _derive(main: bytes, salt: bytes) -> bytes:
    from cryptography.hazmat.primitives import hashes
    from cryptography.hazmat.primitives.kdf.hkdf import HKDF

    return HKDF(
        algorithm=hashes.SHA256(), length=HISTORY_KEY_BYTES, salt=salt, info=b"redra secrets v1"
    ).derive(main)


def _digest(key: bytes, place: bytes, plain: bytes) -> bytes:
    # The place is canonical JSON without zero bytes, so place and value cannot be confused.
    return hmac.new(key[_HALF:], place + b"\0" + plain, hashlib.sha256).digest()


def _state(path: Path) -> object:
    """A fingerprint that changes when the file does; None when the file does not exist."""
    try:
        status = path.stat()
    except FileNotFoundError:
        return None
    except OSError as problem:
        raise InputError(
            f"the key cannot be read: {problem.strerror}", place=str(path)
        ) from problem
    return status.st_ino, status.st_size, status.st_mtime_ns


def _lines(path: Path) -> list[bytes]:
    content = signing_keys.read_private(path, loss=_LOSS)
    lines = [line for line in content.splitlines() if line.strip()]
    if not lines:
        raise _no_key(path)
    return lines


def _key(text: bytes, path: Path, *, at_least: int) -> bytes:
    try:
        key = base64.b64decode(text.strip(), validate=True)
    except binascii.Error:
        key = b""
    if len(key) < at_least:
        raise _no_key(path)
    return key


def _no_key(path: Path) -> InputError:
    return InputError(
        "this is no key",
        place=str(path),
        cure=f"bring it back from a copy; without it {_LOSS}",
    )
