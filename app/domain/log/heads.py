"""A signed head: the holder of a key states that a history had this hash at this revision.

A signed head is kept outside the database. It detects what a hash chain alone cannot: a log that
was cut short together with its head, or rewritten from its beginning. This module defines the
signed content; adapters sign it and check signatures.
"""

from typing import cast

import msgspec

from app.domain.log.chain import canonical_json, names_once
from app.domain.log.event import Revision
from app.domain.values.json_tree import JsonObject

KIND = "redra-head"
FORMAT = 1


class SignedHead(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The head of a history and its signature.

    `hash` is `sha256:` and 64 hex digits, `time` the cluster's time of the last event, `key` is
    `ed25519:` and the public key in base64, `signature` base64. `history` is the name that the
    history had; another database may use another name.
    """

    history: str
    revision: Revision
    hash: str
    time: str
    key: str
    signature: str = ""
    kind: str = KIND
    format: int = FORMAT

    def covered(self) -> bytes:
        """The bytes that the signature covers: the canonical JSON of all other fields."""
        tree: JsonObject = msgspec.to_builtins(self)
        return canonical_json({name: tree[name] for name in tree if name != "signature"})

    def names(self, hash: bytes) -> bool:
        """Whether `hash` is the hash of this head."""
        return self.hash == f"sha256:{hash.hex()}"

    def covered_and_signed(self) -> bytes:
        """The canonical JSON of all fields, as a line."""
        return canonical_json(self.to_json()) + b"\n"

    def to_json(self) -> JsonObject:
        """The JSON object that is written to files."""
        tree: JsonObject = msgspec.to_builtins(self)
        return tree


def from_text(text: str | bytes) -> list[SignedHead]:
    """The heads in a JSON text (one or a list).

    Raises ValueError with a readable message for anything else. The signature covers the fields of
    a head, so a text with another field, without one, or with a field
    twice says something that nobody signed.
    """
    tree = msgspec.json.decode(text)
    if not names_once(text):
        raise ValueError("it is no signed head: it has a field twice")
    return [_from_json(each) for each in (tree if isinstance(tree, list) else [tree])]


def _from_json(tree: object) -> SignedHead:
    try:
        head = msgspec.convert(tree, SignedHead)
    except msgspec.ValidationError as problem:
        raise ValueError(f"it is no signed head: {problem}") from problem
    if head.kind != KIND:
        raise ValueError(f"it is no signed head, but a {head.kind!r}")
    if head.format != FORMAT:
        raise ValueError(f"the head has format {head.format}, this program reads {FORMAT}")
    left_out = [name for name in head.to_json() if name not in cast("JsonObject", tree)]
    if left_out:
        raise ValueError(f"it is no signed head: it has no {left_out[0]}")
    if head.revision < 0:
        raise ValueError("the head's revision is below 0")
    return head
