"""Data of ConfigMaps and Secrets on write: base64 is checked, `stringData` becomes `data`.

The functions change trees in place like `defaults`, which is the only caller.
"""

import base64
import binascii

from app.domain.errors import BadRequest
from app.domain.values.json_tree import JsonObject

_ALPHABET = frozenset("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/")
_QUANTUM = 4


def fill_config_map(tree: JsonObject) -> None:
    """Checks `binaryData`. Raises BadRequest for invalid base64."""
    _read(tree, "binaryData", "ConfigMap")


def fill_secret(tree: JsonObject) -> None:
    """Sets the type, checks `data`, adds `stringData`. Raises BadRequest for invalid base64."""
    tree.setdefault("type", "Opaque")
    _read(tree, "data", "Secret")
    encode_secret(tree)


def encode_secret(tree: JsonObject) -> None:
    """Moves `stringData` of a Secret to `data`, in place."""
    plain = tree.pop("stringData", None)
    if plain:
        data = tree.setdefault("data", {})
        for key, value in plain.items():
            data[key] = base64.b64encode(value.encode()).decode()


def _read(tree: JsonObject, field: str, kind: str) -> None:
    """Checks base64 and removes line ends, which decoders ignore."""
    data = tree.get(field) or {}
    for key, text in data.items():
        plain = text.replace("\r", "").replace("\n", "")
        try:
            binascii.a2b_base64(plain.encode(), strict_mode=True)
        except (binascii.Error, UnicodeEncodeError) as problem:
            raise BadRequest(
                f'{kind} in version "v1" cannot be handled as a {kind}: illegal base64 data at '
                f"input byte {_bad_place(text)}"
            ) from problem
        if plain != text:
            data[key] = plain


def _bad_place(text: str) -> int:
    """The byte at which Go's decoder fails: a wrong character, or an incomplete quantum.

    Examples are 7 for `dGVzdA=`, which lacks a `=`, and 0 for `YWJ`, whose quantum begins there.
    """
    inside = 0
    for place, char in enumerate(text):
        if char in "\r\n":
            continue
        if char == "=":
            return place if inside < 2 else _bad_padding(text, place, inside)
        if char not in _ALPHABET:
            return len(text[:place].encode())
        inside = (inside + 1) % _QUANTUM
    return len(text) - inside


def _bad_padding(text: str, place: int, inside: int) -> int:
    """The byte of wrong padding that begins at `place`, `inside` characters into a quantum."""
    rest = [
        (index, char) for index, char in enumerate(text) if index > place and char not in "\r\n"
    ]
    if inside == 2:
        if not rest:
            return len(text)
        index, char = rest.pop(0)
        if char != "=":
            return index
    return rest[0][0] if rest else len(text)
