"""Values of Secrets as the log holds them: encrypted, or as digests, never in plain text.

An object stays readable as a tree: the keys of `data`, the type and the metadata are as written,
and each value is one text that names the key it was encrypted with. `decide` sees the values
themselves, and so do readers with the right to them; events, views, snapshots and bundles hold the
texts alone. Equal values at the same place give equal texts under one key, so a history is the
same however often it is made.
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
"""What begins an encrypted value; the id of the key and the ciphertext follow."""
DIGEST = "redra:digest:hmac-sha256:v1:"
"""What begins a digest; the id of the key and the digest follow."""

_OPEN_FIELDS = frozenset({"apiVersion", "immutable", "kind", "metadata", "type"})
"""Fields of a Secret that are no secret; all others are, also those that no release knows."""

_ANNOTATIONS = (
    well_known.LAST_APPLIED,
    "openshift.io/token-secret.value",
)
"""Annotations that repeat values."""

Path: TypeAlias = tuple[str, ...]


class SecretCipher(Protocol):
    """Turns values of one history's Secrets into texts and back. `place` is bound to the text."""

    def __hash__(self) -> int: ...

    def protect(self, place: bytes, plain: bytes) -> str:
        """The text that stands for a value in the log."""
        ...

    def reveal(self, place: bytes, text: str) -> bytes | None:
        """The value; None for a digest, another place's text, or one whose key is not here."""
        ...

    def matches(self, place: bytes, plain: bytes, text: str) -> bool:
        """Whether a digest is that of the value."""
        ...


def is_secret(key: ObjectKey) -> bool:
    """Whether an object's values are to be protected."""
    return key.resource == "secrets" and key.group == ""


def is_protected(value: Any) -> bool:
    """Whether a stored value is one of the texts made here. Base64 never looks like that."""
    return isinstance(value, str) and value.startswith((ENCRYPTED, DIGEST))


def key_id(text: str) -> str:
    """The id of the key that a protected value names."""
    return text.removeprefix(ENCRYPTED).removeprefix(DIGEST).partition(":")[0]


def count_plain(tree: JsonView) -> int:
    """How many values a stored Secret holds in plain text, as old logs do."""
    return sum(not is_protected(value) for _, value in _values(tree))


def key_ids(tree: JsonView) -> set[str]:
    """The keys that the values of a stored Secret are encrypted with."""
    return {key_id(value) for _, value in _values(tree) if _begins(value, ENCRYPTED)}


def protected(
    key: ObjectKey, tree: JsonObject, cipher: SecretCipher, before: JsonView | None = None
) -> JsonObject:
    """The Secret as it is stored; the given tree is not changed.

    `before` is the same object as stored until now: values that were shown unreadable and came
    back as they were shown stay what they are.
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
    """A stored Secret of an old log with its plain values protected, the others as they are."""
    changed = {
        path: cipher.protect(_place(key, path), canonical_json(value))
        for path, value in _values(tree)
        if not is_protected(value)
    }
    return _with(tree, changed)


def revealed(key: ObjectKey, tree: JsonObject, cipher: SecretCipher) -> JsonObject:
    """The Secret as its readers see it; the given tree is not changed.

    A value that cannot be revealed is shown as the text that stands for it, in `data` as base64.
    """
    changed: dict[Path, Any] = {}
    for path, value in _values(tree):
        if is_protected(value):
            plain = cipher.reveal(_place(key, path), value)
            changed[path] = _unreadable(path, value) if plain is None else _decode(plain)
    return _with(tree, changed)


def recognise(key: ObjectKey, new: JsonObject, old: JsonView, cipher: SecretCipher) -> None:
    """Put the digests that `old` shows in the place of equal values of `new`, in place.

    So a write of what is there already changes nothing, although nobody can tell the value.
    """
    changed: dict[Path, Any] = {}
    for path, value in _values(new):
        text = _shown_text(path, _at(old, path))
        is_digest = text.startswith(DIGEST) and value != _at(old, path)
        if is_digest and cipher.matches(_place(key, path), canonical_json(value), text):
            changed[path] = _unreadable(path, text)
    new.update(_with(new, changed))


def is_unreadable(value: Any) -> bool:
    """Whether a value of `data` is shown as the text that stands for it."""
    return is_protected(_shown_text(("data", ""), value))


def unreadable(tree: JsonView) -> list[str]:
    """Of a Secret as shown, the values that could not be revealed, such as `data.password`."""
    return [
        ".".join(path) for path, value in _values(tree) if is_protected(_shown_text(path, value))
    ]


def _values(tree: JsonView) -> Iterator[tuple[Path, Any]]:
    """Every secret value with its path: the members of `data`, of other fields alike."""
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
    """A copy with other values at some paths; what is not on a path is shared."""
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
    """How a text is shown that cannot be revealed: `data` holds base64."""
    return base64.b64encode(text.encode()).decode() if path[0] == "data" else text


def _shown_text(path: Path, value: Any) -> str:
    """The text behind a value that is shown unreadable; empty for all other values."""
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
