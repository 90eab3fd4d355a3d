"""A cache of prepared creates for equal objects, such as the pods and claims of one template.

Pruning, defaults, closed gates, and the fields that the first writer owns are functions of the
object without its metadata, and of the rules. The cache finds the result by the text of the object
without its metadata. Names, metadata, namespaces, quotas and validation are checked each time.

Claims that differ only in their names are *twins*: their stored objects differ in name, uid, times
and revision. A twin is found by the text of the claim without its name. Its metadata and its
spec are judged once; its name, its namespace, quotas and policies are checked each time.
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

_TWIN_KINDS = frozenset({(api_groups.RESOURCE, "ResourceClaim")})
"""Kinds of which a new object is stored as it is sent, whatever other objects there are."""

_UNIQUE_METADATA = ("generateName", "ownerReferences")
"""Metadata of objects that controllers make: no two have the same."""

_ADMIN_ACCESS = b'"adminAccess"'
"""The field of a claim whose validation depends on the labels of the namespace."""

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


class Twin(NamedTuple):
    """The stored form of an earlier object, for objects that differ from it only in their names.

    `rest` is the object without metadata, `metadata` the metadata that the client sent and the
    generation, `owned` the `fieldsV1` of the creator. All are shared and never changed. Validation
    finds no error; a claim that `is_judged_alone` is valid in every namespace.
    """

    rest: JsonObject
    metadata: JsonObject
    owned: JsonObject
    warnings: tuple[str, ...]
    is_judged_alone: bool


class FormKey(NamedTuple):
    """The key of a form or a twin: kind, treatment of unknown fields, text of the object."""

    kind: str
    validation: str
    text: bytes


RulesOfForms = tuple[Profile, Schemas, object]
"""The parts of the rules on which forms depend; the last is what validates new objects."""


class Forms:
    """The forms and twins that one history remembers, each found by its key."""

    def __init__(self, forms_max: int = FORMS_MAX, bytes_max: int = FORM_BYTES_MAX) -> None:
        self._known: Bounded[FormKey, PreparedObject] = Bounded(forms_max)
        self._twins: Bounded[FormKey, Twin] = Bounded(forms_max)
        self._bytes_max = bytes_max
        self._rules: RulesOfForms | None = None

    @property
    def size(self) -> int:
        """The number of remembered forms."""
        return len(self._known)

    @property
    def twins(self) -> int:
        """The number of remembered twins."""
        return len(self._twins)

    def key_of(
        self,
        kind: Kind,
        api_version: str,
        tree: JsonView,
        validation: str,
        rules: RulesOfForms,
    ) -> FormKey | None:
        """The key of a tree's form; None when the tree must be prepared each time.

        All forms belong to the rules of the first call. Under other rules the key is None.
        """
        if (kind.group, kind.kind) not in _KINDS or not self._knows(kind, api_version, rules):
            return None
        if tree.get("metadata").__class__ is not dict:
            return None
        rest = {key: part for key, part in tree.items() if key != "metadata"}
        return self._key(kind, validation, rest)

    def twin_key_of(
        self,
        kind: Kind,
        api_version: str,
        tree: JsonView,
        validation: str,
        rules: RulesOfForms,
    ) -> FormKey | None:
        """The key of a tree's twin; None when the tree has no name or can have no twin.

        Twins belong to the rules of the first call, as forms do.
        """
        if (kind.group, kind.kind) not in _TWIN_KINDS or not self._knows(kind, api_version, rules):
            return None
        metadata = tree.get("metadata")
        if metadata.__class__ is not dict or metadata.get("name").__class__ is not str:
            return None
        nameless = {key: part for key, part in metadata.items() if key != "name"}
        if any(key in nameless for key in _UNIQUE_METADATA):
            return None
        return self._key(kind, validation, {**tree, "metadata": nameless})

    def _knows(self, kind: Kind, api_version: str, rules: RulesOfForms) -> bool:
        if kind.custom is not None or api_version != kind.storage_api_version:
            return False
        known = self._rules
        if known is None:
            self._rules = rules
            return True
        return known[0] is rules[0] and known[1] is rules[1] and known[2] is rules[2]

    def _key(self, kind: Kind, validation: str, tree: JsonView) -> FormKey | None:
        text = _text_of(tree)
        if text is None or len(text) > self._bytes_max:
            return None
        return FormKey(kind.kind, validation, text)

    def find_twin(self, key: FormKey) -> Twin | None:
        """The twin of a key, if it is known."""
        return self._twins.get(key)

    def keep_twin(
        self, key: FormKey, tree: JsonView, own: tuple[str, ...], warnings: tuple[str, ...]
    ) -> None:
        """Remembers a valid new object; `own` names the metadata that no other object has."""
        metadata = {part: tree["metadata"][part] for part in tree["metadata"] if part not in own}
        entries = metadata.pop("managedFields", None)
        if entries is None:
            return
        rest = {part: tree[part] for part in tree if part != "metadata"}
        judged_alone = _ADMIN_ACCESS not in key.text
        self._twins[key] = Twin(rest, metadata, entries[0]["fieldsV1"], warnings, judged_alone)

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
