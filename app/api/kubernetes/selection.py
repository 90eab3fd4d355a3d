"""The selection of a request: namespace, name, label and field selectors.

Parity: api.md 6. Names and namespaces are compared with the key, so that selecting one object by
name decodes no object.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache

from app.domain.errors import BadRequest
from app.domain.log import Event, ObjectKey
from app.domain.objects.registry import FieldLabel, Kind
from app.domain.values import api_groups, selectors
from app.domain.values.fields import meta
from app.domain.values.selectors import FieldRequirement, LabelSelector, SelectorError
from projections.last_events import HeldEvents, LastEvent, plain
from projections.objects import ObjectsProjection

_NAME, _NAMESPACE = "metadata.name", "metadata.namespace"
_IMMUTABLE = frozenset({"spec.driver", "spec.pool.name"})
"""Selectable fields of slices that never change: a watch need not keep the matching objects."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Selection:
    """A compiled selection. `namespace` is None for all namespaces; `name` is empty for any."""

    namespace: str | None
    name: str
    keyed: tuple[FieldRequirement, ...]
    fields: tuple[tuple[FieldLabel, FieldRequirement], ...]
    labels: LabelSelector | None

    @property
    def selects_by_content(self) -> bool:
        """Whether the selection depends on the object's content, not only on its key."""
        return self.labels is not None or bool(self.fields)

    @property
    def can_change(self) -> bool:
        """Whether an update can make an object enter or leave the selection."""
        return self.labels is not None or any(
            label.label not in _IMMUTABLE for label, _ in self.fields
        )

    @property
    def is_everything(self) -> bool:
        """Whether only namespace and resource restrict the selection."""
        return not (self.name or self.keyed or self.selects_by_content)

    def matches_key(self, key: ObjectKey) -> bool:
        """Whether the key is selected."""
        if self.namespace is not None and key.namespace != self.namespace:
            return False
        if self.name and key.name != self.name:
            return False
        for requirement in self.keyed:
            value = key.name if requirement.field == _NAME else key.namespace
            if (value == requirement.value) is not requirement.equal:
                return False
        return True

    def matches(self, event: Event) -> bool:
        """Whether the object after the event (for deletions: before it) is selected."""
        if not self.matches_key(event.key):
            return False
        if not self.selects_by_content:
            return True
        tree = event.object
        for label, requirement in self.fields:
            if (label.value(tree) == requirement.value) is not requirement.equal:
                return False
        if self.labels is None:
            return True
        return self.labels.matches(meta.labels(tree))

    def select(self, objects: ObjectsProjection, kind: Kind) -> Sequence[Event]:
        """The last events of the selected objects that exist, sorted by namespace and name."""
        return HeldEvents(self._select(objects, kind))

    def _select(self, objects: ObjectsProjection, kind: Kind) -> Iterator[LastEvent]:
        if self.name and (self.namespace is not None or not kind.namespaced):
            key = ObjectKey(kind.group, kind.plural, self.namespace or "", self.name)
            named = objects.event(key)
            if named is not None and self.matches(named):
                yield named
            return
        for key, kept in objects.kept(kind.group, kind.plural, self.namespace):
            if self.is_everything:
                yield kept
            elif self.matches_key(key):
                event = plain(kept)
                is_decoded = event.tree is not None
                if self.matches(event):
                    yield kept
                if not is_decoded:
                    # The objects outlive the look at their labels.
                    event.forget_tree()


def compile_selection(
    kind: Kind,
    *,
    group: str | None = None,
    namespace: str | None,
    name: str,
    label_selector: str,
    field_selector: str,
) -> Selection:
    """Compile selector texts. Raises BadRequest for a text that cannot be read."""
    keyed: list[FieldRequirement] = []
    fields: list[tuple[FieldLabel, FieldRequirement]] = []
    try:
        labels = _parse_labels(label_selector) if label_selector.strip() else None
        requirements = selectors.parse_fields(field_selector).requirements if field_selector else ()
    except SelectorError as problem:
        raise BadRequest(str(problem)) from problem
    for requirement in requirements:
        label = kind.field_label(requirement.field)
        if label is None or requirement.field.startswith(_elsewhere(kind, group)):
            raise BadRequest(_unsupported(kind, requirement.field))
        if requirement.field == _NAME and requirement.equal and not name and requirement.value:
            name = requirement.value
        elif requirement.field in (_NAME, _NAMESPACE):
            keyed.append(requirement)
        else:
            fields.append((label, requirement))
    return Selection(
        namespace=namespace, name=name, keyed=tuple(keyed), fields=tuple(fields), labels=labels
    )


def _elsewhere(kind: Kind, group: str | None) -> tuple[str, ...]:
    """Prefixes of fields that can be selected only under the other API group of Events."""
    if kind.alias_group != api_groups.EVENTS or group is None:
        return ()
    return _EVENTS_ONLY if group == kind.group else _CORE_ONLY


_CORE_ONLY = ("involvedObject.", "reportingComponent", "source")
_EVENTS_ONLY = ("regarding.", "reportingController")


def _unsupported(kind: Kind, field: str) -> str:
    """The message for an unknown field label. Parity: api.md 6.

    Kinds that select only by metadata have a message of their own.
    """
    if any(label.label not in (_NAME, _NAMESPACE) for label in kind.field_labels):
        return f"field label not supported: {field}"
    return f'"{field}" is not a known field selector: only "metadata.name", "metadata.namespace"'


@lru_cache(maxsize=256)
def _parse_labels(text: str) -> LabelSelector:
    return selectors.parse_labels(text)
