"""Values of Secrets in the log: encrypted, or as digests, never in plain text.

The object keeps its structure: the keys of `data`, the type and the metadata are as written, and
each value is one text that names its encryption key. `decide` and readers with the right to the
values see them in plain text; events, views, snapshots and bundles contain only the protected
texts. Equal values at the same place give equal texts under one key, so a history that is made
again is the same.
"""

import base64
import binascii
from collections.abc import Iterator
from typing import Any, Protocol, TypeAlias

import msgspec

from app.domain.log import ObjectKey
from app.domain.log.chain import canonical_json
from app.domain.values import well_known
from app.domain.values.json_tree import JsonObject, JsonView

ENCRYPTED = "redra:enc:aesgcm:v1:"
"""The prefix of an encrypted value, before the id of the key and the ciphertext."""
DIGEST = "redra:digest:hmac-sha256:v1:"
"""The prefix of a digest, before the id of the key and the digest."""

_OPEN_FIELDS = frozenset({"apiVersion", "immutable", "kind", "metadata", "type"})
"""The fields of a Secret that are not secret; all other fields are, including unknown ones."""

_ANNOTATIONS = (
    well_known.LAST_APPLIED,
    "openshift.io/token-secret.value",
)
"""The annotations that contain values."""

Path: TypeAlias = tuple[str, ...]


class SecretCipher(Protocol):
    """The protection of values in a history's Secrets. A text is bound to its `place`."""

    def __hash__(self) -> int: ...

    def protect(self, place: bytes, plain: bytes) -> str:
        """Returns the protected text of a value for the log."""
        ...

    def reveal(self, place: bytes, text: str) -> bytes | None:
        """Returns the value; None for a digest, another place's text, or a missing key."""
        ...

    def matches(self, place: bytes, plain: bytes, text: str) -> bool:
        """Whether the digest is that of the value."""
        ...


def is_secret(key: ObjectKey) -> bool:
    """Whether an object is a Secret, whose values are protected."""
    return key.resource == "secrets" and key.group == ""


def is_protected(value: Any) -> bool:
    """Whether a stored value is a protected text. Base64 never has its prefixes."""
    return isinstance(value, str) and value.startswith((ENCRYPTED, DIGEST))


def key_id(text: str) -> str:
    """The key id of a protected value."""
    return text.removeprefix(ENCRYPTED).removeprefix(DIGEST).partition(":")[0]


def count_plain(tree: JsonView) -> int:
    """The number of values that a stored Secret has in plain text, as in old logs."""
    return sum(not is_protected(value) for _, value in _values(tree))


def key_ids(tree: JsonView) -> set[str]:
    """The ids of the encryption keys of a stored Secret's values."""
    return {key_id(value) for _, value in _values(tree) if _begins(value, ENCRYPTED)}


def protected(
    key: ObjectKey, tree: JsonObject, cipher: SecretCipher, before: JsonView | None = None
) -> JsonObject:
    """Returns the Secret with protected values; the given tree is not changed.

    `before` is the object as stored until now. A value that could not be revealed to the writer,
    and comes back in the form in which it was shown, keeps its stored text.
    """
    changed: dict[Path, str] = {}
    for path, value in _values(tree):
        stored = None if before is None else _at(before, path)
        if is_protected(stored) and value == _unreadable(path, str(stored)):
            changed[path] = str(stored)
        else:
            changed[path] = cipher.protect(_place(key, path), canonical_json(value))
    return _with(tree, changed)


def protected_where_plain(key: ObjectKey, tree: JsonObject, cipher: SecretCipher) -> JsonObject:
    """Returns a stored Secret of an old log with plain values protected, others unchanged."""
    changed = {
        path: cipher.protect(_place(key, path), canonical_json(value))
        for path, value in _values(tree)
        if not is_protected(value)
    }
    return _with(tree, changed)


def revealed(key: ObjectKey, tree: JsonObject, cipher: SecretCipher) -> JsonObject:
    """Returns the Secret with revealed values; the given tree is not changed.

    A value that cannot be revealed is shown as its protected text, in `data` as base64.
    """
    changed: dict[Path, Any] = {}
    for path, value in _values(tree):
        if is_protected(value):
            plain = cipher.reveal(_place(key, path), value)
            changed[path] = _unreadable(path, value) if plain is None else _decode(plain)
    return _with(tree, changed)


def recognise(key: ObjectKey, new: JsonObject, old: JsonView, cipher: SecretCipher) -> None:
    """Replaces values of `new`, in place, by digests that `old` shows for equal values.

    Thus a write of an unchanged value changes nothing, although a digest does not reveal its value.
    """
    changed: dict[Path, Any] = {}
    for path, value in _values(new):
        text = _shown_text(path, _at(old, path))
        is_digest = text.startswith(DIGEST) and value != _at(old, path)
        if is_digest and cipher.matches(_place(key, path), canonical_json(value), text):
            changed[path] = _unreadable(path, text)
    new.update(_with(new, changed))


def is_unreadable(value: Any) -> bool:
    """Whether a value of `data` is shown as its protected text."""
    return is_protected(_shown_text(("data", ""), value))


def unreadable(tree: JsonView) -> list[str]:
    """The paths of values in a shown Secret that could not be revealed, such as `data.password`."""
    return [
        ".".join(path) for path, value in _values(tree) if is_protected(_shown_text(path, value))
    ]


def _values(tree: JsonView) -> Iterator[tuple[Path, Any]]:
    """Yields each secret value with its path: the members of `data` and of other fields."""
    for field, content in tree.items():
        if field in _OPEN_FIELDS or content is None:
            continue
        if isinstance(content, dict):
            for name, value in content.items():
                if value is not None:
                    yield (field, name), value
        else:
            yield (field,), content
    for name in _ANNOTATIONS:
        path = ("metadata", "annotations", name)
        value = _at(tree, path)
        if value is not None:
            yield path, value


def _at(tree: JsonView, path: Path) -> Any:
    value: Any = tree
    for step in path:
        if not isinstance(value, dict):
            return None
        value = value.get(step)
    return value


def _with(tree: JsonObject, changed: dict[Path, Any]) -> JsonObject:
    """Returns a copy with other values at some paths; parts outside the paths are shared."""
    copy = dict(tree)
    owned: dict[Path, JsonObject] = {(): copy}
    for path, value in changed.items():
        for length in range(1, len(path)):
            inner = path[:length]
            if inner not in owned:
                parent = owned[inner[:-1]]
                owned[inner] = parent[inner[-1]] = dict(parent[inner[-1]])
        owned[path[:-1]][path[-1]] = value
    return copy


def _place(key: ObjectKey, path: Path) -> bytes:
    return canonical_json([key.namespace, key.name, *path])


def _decode(plain: bytes) -> Any:
    return msgspec.json.decode(plain)


def _unreadable(path: Path, text: str) -> str:
    """The shown form of a text that cannot be revealed: base64 in `data`."""
    return base64.b64encode(text.encode()).decode() if path[0] == "data" else text


def _shown_text(path: Path, value: Any) -> str:
    """The string of a shown value, decoded from base64 in `data`; empty if that is not possible."""
    if not isinstance(value, str):
        return ""
    if path[0] != "data":
        return value
    try:
        return base64.b64decode(value, validate=True).decode()
    except (binascii.Error, UnicodeDecodeError):
        return ""


def _begins(value: Any, prefix: str) -> bool:
    return isinstance(value, str) and value.startswith(prefix)
