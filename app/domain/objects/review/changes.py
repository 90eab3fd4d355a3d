"""A write under review: what webhooks are told of it, and what they have changed.

A review goes along with a command. While webhooks are asked it takes down what the write comes to;
when the command is decided for good it holds their patches, which are applied where upstream calls
mutating webhooks: before validation, with the managers of fields already noted.
"""

from dataclasses import dataclass, replace
from typing import NamedTuple

from app.domain.errors import BadRequest, Cause, Rejected, ReviewOutdated
from app.domain.objects import registry
from app.domain.objects.kind import Kind
from app.domain.objects.review.attributes import Attributes
from app.domain.objects.review.matching import GroupVersion
from app.domain.objects.schema import conversion
from app.domain.values import json_tree, patches
from app.domain.values.fields import meta
from app.domain.values.json_tree import JsonObject, JsonView

_SET_LATER = ("creationTimestamp", "generation", "uid")
"""Metadata that a new object gets after mutating webhooks were asked."""


class Patch(NamedTuple):
    """What a webhook changes, in the version in which it was told."""

    told: GroupVersion
    operations: tuple[JsonObject, ...]


@dataclass(slots=True, kw_only=True)
class Review:
    """What webhooks have said, and what they are to be told.

    `version` is the resourceVersion of the object that they saw, empty when there was none; None:
    nobody has seen it yet. `before` is the write before its validation, `after` behind it.
    """

    patches: tuple[Patch, ...] = ()
    version: str | None = None
    before: Attributes | None = None
    after: Attributes | None = None

    def check(self, old: JsonView | None) -> None:
        """Raise ReviewOutdated when webhooks saw another object."""
        if self.version not in (None, version_of(old)):
            raise ReviewOutdated("the object has been modified while webhooks were asked")

    def changed(self, attributes: Attributes) -> JsonObject:
        """The object of a write with the patches, in the storage version, not yet defaulted.

        Raises Rejected for patches that cannot be applied.
        """
        self.check(attributes.old)
        tree = attributes.tree
        assert tree is not None, "what is deleted is not changed"
        if attributes.old is None:
            written = meta.metadata(tree)
            shown = {name: part for name, part in written.items() if name not in _SET_LATER}
            if not attributes.key.name:
                shown.pop("name", None)
            tree = {**tree, "metadata": shown}
        for patch in self.patches:
            if attributes.is_of_another_kind:
                raise cannot_be_changed()
            tree = _patched(attributes.kind, tree, patch)
        self.before = replace(attributes, tree=tree, given={})
        return tree


def version_of(tree: JsonView | None) -> str:
    """The resourceVersion of an object; empty for none."""
    return "" if tree is None else meta.resource_version(tree)


def failed(text: str) -> Rejected:
    """The refusal of a write that webhooks could not be asked about.

    Parity: objects.md 15.4; upstream's text.
    """
    return Rejected(f"Internal error occurred: {text}", causes=(Cause(reason="", message=text),))


def cannot_be_changed(name: str = "") -> Rejected:
    """A webhook wants to change what has no object that it could change."""
    text = "attempted to modify the object, which is not supported for this operation"
    return failed(f'admission webhook "{name}" {text}' if name else f"a webhook {text}")


def _patched(kind: Kind, tree: JsonObject, patch: Patch) -> JsonObject:
    target = registry.api_version(*patch.told)
    source = kind.storage_api_version
    try:
        shown = conversion.convert(tree, kind, source, target) if target != source else tree
        patched = patches.apply_operations(json_tree.copy(shown), patch.operations)
        if patched.get("kind") != kind.kind or patched.get("apiVersion") != target:
            raise failed("a webhook may not change the kind of an object")
        return conversion.convert(patched, kind, target, source) if target != source else patched
    except (patches.PatchError, BadRequest) as problem:
        raise failed(str(problem)) from problem
