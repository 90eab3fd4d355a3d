"""A cache of prepared creates for equal objects, such as the pods and claims of one template.

Pruning, defaults, closed gates, and the fields that the first writer owns are functions of the
object without its metadata, and of the rules. The cache finds the result by the text of the object
without its metadata. Names, metadata, namespaces, quotas and validation are checked each time.
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
"""The default bound on the forms that one history remembers."""

FORM_BYTES_MAX = 8_192
"""The longest text that is cached; many longer forms would use too much memory."""

_KINDS = frozenset({("", "Pod"), (api_groups.RESOURCE, "ResourceClaim")})
"""Kinds with many equal objects, whose defaults depend neither on metadata nor on time."""

_encode = msgspec.json.Encoder().encode
_decode = msgspec.json.Decoder(JsonObject).decode


class PreparedObject(NamedTuple):
    """The prepared result of a create, without metadata.

    `body` is the admitted object as JSON with its fields in their order. `owned` is the `fieldsV1`
    of the creator; it is shared and never changed. `warnings` name the fields of closed gates.
    """

    body: bytes
    owned: JsonObject
    warnings: tuple[str, ...]

    def parts(self) -> JsonObject:
        """The admitted object without metadata; the caller owns it."""
        return _decode(self.body)


class FormKey(NamedTuple):
    """The key of a form: kind, treatment of unknown fields, text of the object."""

    kind: str
    validation: str
    text: bytes


class Forms:
    """The forms that one history remembers, each found by its key."""

    def __init__(self, forms_max: int = FORMS_MAX, bytes_max: int = FORM_BYTES_MAX) -> None:
        self._known: Bounded[FormKey, PreparedObject] = Bounded(forms_max)
        self._bytes_max = bytes_max
        self._rules: tuple[Profile, Schemas] | None = None

    @property
    def size(self) -> int:
        """The number of remembered forms."""
        return len(self._known)

    def key_of(
        self,
        kind: Kind,
        api_version: str,
        tree: JsonView,
        validation: str,
        rules: tuple[Profile, Schemas],
    ) -> FormKey | None:
        """The key of a tree; None when the tree must be prepared each time.

        All forms belong to the rules of the first call. Under other rules the key is None.
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

    def find(self, key: FormKey) -> PreparedObject | None:
        """The form of a key, if it is known."""
        return self._known.get(key)

    def keep(
        self, key: FormKey, tree: JsonView, owned: JsonObject, warnings: tuple[str, ...]
    ) -> None:
        """Remembers the prepared `tree`; its only warnings must be those of closed gates."""
        text = _text_of({part: tree[part] for part in tree if part != "metadata"})
        if text is not None:
            self._known[key] = PreparedObject(text, owned, warnings)


def _text_of(tree: JsonView) -> bytes | None:
    """The JSON text of a tree; None when it may not decode to the same tree."""
    try:
        text = _encode(tree)
    except (TypeError, ValueError, OverflowError, RecursionError):
        return None
    # NaN and infinity are encoded as null, so a text with null may stand for several trees.
    return None if b"null" in text else text
