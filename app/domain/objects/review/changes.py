"""The review of a write by webhooks: the attributes they see and the patches they return.

A review accompanies a command. While webhooks are called, it records the attributes of the write.
When the command is finally decided, it holds the patches of the webhooks, which are applied where
upstream calls mutating webhooks: before validation, after managed fields are updated.
"""

from dataclasses import dataclass, replace
from typing import NamedTuple

from app.domain.errors import BadRequest, Rejected, ReviewOutdated, StatusCause
from app.domain.objects import registry
from app.domain.objects.kind import Kind
from app.domain.objects.review.attributes import Attributes
from app.domain.objects.review.matching import GroupVersion
from app.domain.objects.schema import conversion
from app.domain.values import json_tree, patches
from app.domain.values.fields import meta
from app.domain.values.json_tree import JsonObject, JsonView

_SET_LATER = ("creationTimestamp", "generation", "uid")
"""Metadata fields of a new object that are set after mutating webhooks are called."""


class Patch(NamedTuple):
    """The JSON patch of a webhook and the version of the object that it applies to."""

    group_version: GroupVersion
    operations: tuple[JsonObject, ...]


@dataclass(slots=True, kw_only=True)
class Review:
    """The patches of webhooks and the attributes of the write.

    `version` is the resourceVersion of the object that webhooks saw: empty if there was no object,
    None if no webhook saw it yet. `before` is the write before validation, `after` the write after
    validation.
    """

    patches: tuple[Patch, ...] = ()
    version: str | None = None
    before: Attributes | None = None
    after: Attributes | None = None

    def check(self, old: JsonView | None) -> None:
        """Raises ReviewOutdated if webhooks saw another version of the object."""
        if self.version not in (None, version_of(old)):
            raise ReviewOutdated("the object has been modified while webhooks were asked")

    def changed(self, attributes: Attributes) -> JsonObject:
        """Returns the object with the patches, in the storage version, before defaulting.

        Raises Rejected for patches that cannot be applied, and ReviewOutdated as `check` does.
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
    """The resourceVersion of an object; empty if there is no object."""
    return "" if tree is None else meta.resource_version(tree)


def failed(text: str) -> Rejected:
    """The refusal of a write because of a failed webhook call or an unusable patch.

    Parity: objects.md 15.4; upstream's text.
    """
    return Rejected(
        f"Internal error occurred: {text}", causes=(StatusCause(reason="", message=text),)
    )


def cannot_be_changed(name: str = "") -> Rejected:
    """The refusal of a write whose object webhooks cannot change, such as a Scale."""
    text = "attempted to modify the object, which is not supported for this operation"
    return failed(f'admission webhook "{name}" {text}' if name else f"a webhook {text}")


def _patched(kind: Kind, tree: JsonObject, patch: Patch) -> JsonObject:
    target = registry.api_version(*patch.group_version)
    source = kind.storage_api_version
    try:
        shown = conversion.convert(tree, kind, source, target) if target != source else tree
        patched = patches.apply_operations(json_tree.copy(shown), patch.operations)
        if patched.get("kind") != kind.kind or patched.get("apiVersion") != target:
            raise failed("a webhook may not change the kind of an object")
        return conversion.convert(patched, kind, target, source) if target != source else patched
    except (patches.PatchError, BadRequest) as problem:
        raise failed(str(problem)) from problem
