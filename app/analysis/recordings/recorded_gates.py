"""The gates of a recorded cluster, which recordings do not contain, derived from its objects.

A cluster that had rules, or served them, had their gate on, whatever the default of its release.
The gate in the history's settings has precedence. Every reader of a recording uses this module:
imports, recorders, replays, forks and comparisons. Likewise, a cluster had the gate of a field on
that it stored (`ShownGates`): with the gate off, its API server would have dropped the field.
"""

from collections.abc import Iterable, Mapping

from app.domain.log import Event, EventType, ObjectKey, doubts
from app.domain.log.records import BASELINE_VERB
from app.domain.objects import registry
from app.domain.objects.profile import RULES_GATE
from app.domain.objects.schema import gates as gated_fields
from app.domain.values import api_resources, json_tree
from app.domain.values.fields import meta
from app.domain.values.json_tree import JsonObject, JsonView

_EVERYTHING = ObjectKey("", "", "", "")


def leave_rules_open(settings: Mapping[str, object]) -> bool:
    """True for the settings of a recording that do not name the gate."""
    is_recorded = settings.get("recorded") is True
    return is_recorded and RULES_GATE not in json_tree.mapping(settings, "gates")


def hold_rules(events: Iterable[Event]) -> bool:
    """True when one of the events is of a DeviceTaintRule."""
    return any(
        (event.key.group, event.key.resource) == api_resources.DEVICE_TAINT_RULES
        for event in events
    )


def served_rules(settings: Mapping[str, object]) -> JsonObject:
    """The settings of a cluster that served rules: the gate is on unless they name it."""
    gates = json_tree.mapping(settings, "gates")
    return {**settings, "gates": {**gates, RULES_GATE: gates.get(RULES_GATE, True)}}


class ShownGates:
    """Follows a recording and finds the gates that were on: those of fields that were stored.

    Objects from before the recording show nothing, because a gate may have been switched off since.
    Nor does a write that follows a state which was not recorded whole, because an object keeps the
    fields that it has. `oldest` is the first minor release that serves the versions in which
    objects were made: an older one had refused them. Parity: objects.md 1 and 12.
    """

    def __init__(self) -> None:
        self.found: set[str] = set()
        self.oldest = 0
        self._unsure: set[ObjectKey] = set()

    def note(self, event: Event, before: JsonView | None) -> None:
        """Processes an event; `before` is the object before it, None when there was none."""
        key = event.key
        if event.type is EventType.GAP_OBSERVED:
            self._unsure.add(key if key.resource else _EVERYTHING)
            return
        if not event.is_about_object or event.type is EventType.OBJECT_DELETED:
            return
        is_made = event.type is EventType.OBJECT_CREATED
        is_whole = not doubts.of_event(event)
        is_known = is_made or (before is not None and not self._is_unsure(key))
        if is_whole and is_known and event.stamp.verb != BASELINE_VERB:
            self.found |= self._shown(event, None if is_made else before)
            if is_made:
                self.oldest = max(self.oldest, _oldest(event))
        if is_whole:
            self._unsure.discard(key)
        else:
            self._unsure.add(key)

    def _is_unsure(self, key: ObjectKey) -> bool:
        """Whether the object, its kind or everything may have changed in unrecorded writes."""
        group, resource, namespace, _ = key
        kind = (ObjectKey(group, resource, place, "") for place in (namespace, ""))
        return not self._unsure.isdisjoint((key, *kind, _EVERYTHING))

    def _shown(self, event: Event, before: JsonView | None) -> frozenset[str]:
        key = event.key
        if (key.group, key.resource) == api_resources.DEVICE_TAINT_RULES:
            return frozenset((RULES_GATE,))
        kind = registry.find(key.group, key.resource)
        return frozenset() if kind is None else gated_fields.shown_by(kind, event.object, before)


def _oldest(event: Event) -> int:
    """The first minor release with the versions that a new object names; 0 if none is known."""
    kind = registry.find(event.key.group, event.key.resource)
    served = None if kind is None else kind.served
    if not served:
        return 0
    named = {meta.api_version(each) for each in meta.managed_entries(event.object)}
    versions = {version.rpartition("/")[2] for version in named}
    return max((served[each].since for each in versions & served.keys()), default=0)
