"""Creates of objects that are alike are prepared once: the pods and claims of one template.

Pruning, defaults, closed gates, and which fields the first writer owns are functions of the object
without its metadata, and of the rules. What came out for an object is found again by the text of
the next one. Names, metadata, namespaces, quotas and validation are looked at each time.
"""

from typing import NamedTuple

import msgspec

from app.domain.objects.kind import Kind
from app.domain.objects.profile import Profile
from app.domain.objects.schema.structural import Schemas
from app.domain.values import api_groups
from app.domain.values.bounded import Bounded
from app.domain.values.json_tree import JsonObject, JsonView

FORMS_MAX = 512
"""Forms that one history remembers where no setting says otherwise."""

FORM_BYTES_MAX = 8_192
"""An object with a longer text is prepared each time: many such forms would fill the memory."""

_KINDS = frozenset({("", "Pod"), (api_groups.RESOURCE, "ResourceClaim")})
"""Kinds that come in great numbers alike, whose defaults depend neither on metadata nor on time."""

_encode = msgspec.json.Encoder().encode
_decode = msgspec.json.Decoder(JsonObject).decode


class Form(NamedTuple):
    """What a create makes of an object, but for its metadata.

    `body` is the admitted object as JSON with its fields in their order, `owned` the `fieldsV1` of
    who creates it, which is shared and never changed. `warnings` name the fields of closed gates.
    """

    body: bytes
    owned: JsonObject
    warnings: tuple[str, ...]

    def parts(self) -> JsonObject:
        """The admitted object without metadata; the caller owns it."""
        return _decode(self.body)


class FormKey(NamedTuple):
    """What tells a form from others: kind, what becomes of unknown fields, text of the object."""

    kind: str
    validation: str
    text: bytes


class Forms:
    """The forms that one history remembers, each found by its key."""

    def __init__(self, forms_max: int = FORMS_MAX, bytes_max: int = FORM_BYTES_MAX) -> None:
        self._known: Bounded[FormKey, Form] = Bounded(forms_max)
        self._bytes_max = bytes_max
        self._rules: tuple[Profile, Schemas] | None = None

    @property
    def size(self) -> int:
        """How many forms are remembered."""
        return len(self._known)

    def key_of(
        self,
        kind: Kind,
        api_version: str,
        tree: JsonView,
        validation: str,
        rules: tuple[Profile, Schemas],
    ) -> FormKey | None:
        """The key of a tree; None for one that is prepared each time.

        All forms are of the rules that were given first: under others each tree is prepared.
        """
        if (kind.group, kind.kind) not in _KINDS or kind.custom is not None:
            return None
        if api_version != kind.storage_api_version or tree.get("metadata").__class__ is not dict:
            return None
        if self._rules is None:
            self._rules = rules
        elif self._rules[0] is not rules[0] or self._rules[1] is not rules[1]:
            return None
        rest = {key: part for key, part in tree.items() if key != "metadata"}
        text = _text_of(rest)
        if text is None or len(text) > self._bytes_max:
            return None
        return FormKey(kind.kind, validation, text)

    def find(self, key: FormKey) -> Form | None:
        """The form of a key, if it is known."""
        return self._known.get(key)

    def keep(
        self, key: FormKey, tree: JsonView, owned: JsonObject, warnings: tuple[str, ...]
    ) -> None:
        """Remember what became of a tree that gave no occasion for warnings but of gates."""
        text = _text_of({part: tree[part] for part in tree if part != "metadata"})
        if text is not None:
            self._known[key] = Form(text, owned, warnings)


def _text_of(tree: JsonView) -> bytes | None:
    """The text of a tree, from which the same tree is read again; None when that is not sure."""
    try:
        text = _encode(tree)
    except (TypeError, ValueError, OverflowError, RecursionError):
        return None
    # Numbers that are none are written as null; the text must stand for one tree alone.
    return None if b"null" in text else text
