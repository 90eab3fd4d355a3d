"""Readers of `/redra/v1/histories/HISTORY/…`: they see what they may read as objects.

A reader sees an object when the user may `get` it or `list` its kind in its namespace. Answers that
are computed from the whole cluster (decisions, reasons, blast radii, views over pools) name
devices, nodes, pods and claims of all users; they need the right to list all of these everywhere.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field

from app.domain.log import Event, EventType, ObjectKey
from app.domain.log.projection import Row
from app.domain.objects import registry
from app.domain.objects.access import rules
from app.domain.objects.access.rules import AccessRequest, Grants
from app.domain.values import api_groups, api_resources
from app.domain.values.identifiers import GroupResource
from app.service.explaining.evidence import Sight
from app.service.recorded_events import IMPORTS
from projections import timeline_kinds

NODES, PODS, CLAIMS = api_resources.NODES, api_resources.PODS, api_resources.RESOURCE_CLAIMS
CLASSES, SLICES = api_resources.DEVICE_CLASSES, api_resources.RESOURCE_SLICES
RULES, PATCHES = (
    api_resources.DEVICE_TAINT_RULES,
    api_resources.RESOURCE_SLICE_PATCHES,
)

WORKED_OUT_FROM = (NODES, PODS, CLASSES, RULES, CLAIMS, PATCHES, SLICES)
"""The kinds that decisions, reasons and blast radii name."""

VIEWS_OVER: Mapping[str, tuple[GroupResource, ...]] = {
    "counters": (SLICES, CLAIMS),
    "decisions": WORKED_OUT_FROM,
    "devices": (SLICES, RULES, PATCHES),
    "outcomes": WORKED_OUT_FROM,
    "pools": (SLICES,),
    "taint_rules": (RULES, SLICES, CLAIMS, PODS),
    "taints": (RULES, SLICES, CLAIMS, PODS),
}
"""Views whose rows show many objects at once, and the kinds that their readers must be able to list
everywhere. In other views single rows are left out."""

EVERYTHING = ("*", "*")
"""All kinds; only rules for `*` cover them."""


_ALIASES = {api_resources.EVENTS: ("", api_groups.EVENTS)}
_OWN_GROUP = "redra"


@dataclass(slots=True, kw_only=True)
class HistoryReader:
    """The present rights of a user to read one history."""

    user: str
    grants: Grants
    is_unlimited: bool = False
    _collections: dict[tuple[str, str, str], bool] = field(default_factory=dict)

    def sees(self, key: ObjectKey) -> bool:
        """Whether the user may read an object."""
        if self.is_unlimited or self.sees_all((key.group, key.resource), key.namespace):
            return True
        return any(self._may(question) for question in _about(key))

    def sees_all(self, place: GroupResource, namespace: str = "") -> bool:
        """Whether the user may read all objects of a kind, in a namespace or (empty) everywhere."""
        if self.is_unlimited:
            return True
        where = (*place, namespace)
        sees = self._collections.get(where)
        if sees is None:
            sees = any(self._may(question) for question in _about(ObjectKey(*where, "")))
            self._collections[where] = sees
        return sees

    def check(self, key: ObjectKey) -> None:
        """Raise Forbidden unless the user may read an object."""
        if not self.sees(key):
            raise rules.forbidden(next(_about(key)), self.user)

    def check_all(self, places: Iterable[GroupResource]) -> None:
        """Raise Forbidden unless the user may read all objects of these kinds everywhere."""
        for group, resource in places:
            if not self.sees_all((group, resource)):
                question = AccessRequest(verb="list", group=group, resource=resource)
                raise rules.forbidden(question, self.user)

    def sees_event(self, event: Event) -> bool:
        """Whether the user may read an event of the log."""
        if self.is_unlimited:
            return True
        key = event.key
        if event.type is EventType.DECISION_RECORDED:
            resource = timeline_kinds.subject_of_fact(event).resource
            return self._sees_whole() and self.sees(_decided(resource, key.namespace, key.name))
        if event.type is EventType.CONFLICT_OBSERVED:
            return self.sees(timeline_kinds.subject_of_fact(event))
        if key.group == _OWN_GROUP:
            # Reports of imports name objects of any kind; redra's other events name no objects.
            return key.resource != IMPORTS.resource or self.sees_all(EVERYTHING)
        return self.sees(key)

    def sight(self, namespace: str = "") -> Sight:
        """The rights for an answer about an object of a namespace, or (empty) of all."""
        return Sight(
            reads_events=self.sees_all(api_resources.EVENTS, namespace),
            sees_all=self.sees_all(EVERYTHING),
            sees=self.sees_event,
            sees_key=self.sees,
        )

    def rows(self, view: str, rows: list[Row]) -> list[Row]:
        """The rows of a view that the user may read. Raises Forbidden for views over all kinds."""
        name = view.removeprefix("view_")
        if self.is_unlimited:
            return rows
        needed = VIEWS_OVER.get(name)
        if needed is not None:
            self.check_all(needed)
        sees = _ROWS.get(name)
        if sees is None:
            if needed is None:
                self.check_all((EVERYTHING,))
            return rows
        return sees(self, rows)

    def _sees_whole(self) -> bool:
        return all(self.sees_all(place) for place in WORKED_OUT_FROM)

    def _may(self, question: AccessRequest) -> bool:
        return self.grants.decide(question).allowed

    def _claims(self, rows: list[Row]) -> list[Row]:
        """Rows of claims and device shares; pods are left out when the user may not list pods."""
        shown = []
        for row in rows:
            namespace, name = row["namespace"], row.get("claim") or row["name"]
            if self.sees(ObjectKey(*CLAIMS, namespace, name)):
                pods = self.sees_all(PODS, namespace)
                shown.append(row if pods or "pods" not in row else {**row, "pods": []})
        return shown

    def _timeline(self, rows: list[Row]) -> list[Row]:
        """Rows about readable objects; the cause is left out when its row is not readable."""
        seen = {row["revision"]: row for row in rows if self._sees_entry(row)}
        return [
            row if not row["because"] or row["cause"] in seen else {**row, "because": ""}
            for row in seen.values()
        ]

    def _sees_entry(self, row: Row) -> bool:
        key = ObjectKey(row["api_group"], row["resource"], row["namespace"], row["name"])
        if row["kind"] == "Decision" and not self._sees_whole():
            return False
        if row["kind"] == "Warning" and not self.sees_all(
            api_resources.EVENTS, key.namespace or "default"
        ):
            return False
        if key.group == _OWN_GROUP:
            return key.resource != IMPORTS.resource or self.sees_all(EVERYTHING)
        return self.sees(key)

    def _decisions(self, rows: list[Row]) -> list[Row]:
        return [
            row
            for row in rows
            if self.sees(_decided(row["resource"], row["namespace"], row["name"]))
        ]

    def _activity(self, rows: list[Row]) -> list[Row]:
        """Counts of kinds that the user may read everywhere."""
        return [
            row
            for row in rows
            if self.sees_all(
                EVERYTHING
                if row["api_group"] == _OWN_GROUP
                else (row["api_group"], row["resource"])
            )
        ]


def _decided(resource: str, namespace: str, name: str) -> ObjectKey:
    """The object of a decision, which states only its resource."""
    kinds = [kind for kind in registry.find_name(resource) if kind.plural == resource]
    return ObjectKey(kinds[0].group if kinds else "", resource, namespace, name)


_ROWS: Mapping[str, Callable[[HistoryReader, list[Row]], list[Row]]] = {
    "activity": HistoryReader._activity,
    "claim_devices": HistoryReader._claims,
    "claims": HistoryReader._claims,
    "decisions": HistoryReader._decisions,
    "timeline": HistoryReader._timeline,
}


def _about(key: ObjectKey) -> Iterator[AccessRequest]:
    """The questions for an object, or a collection without name; one positive answer is enough."""
    namespace = key.namespace
    if (key.group, key.resource) == api_resources.NAMESPACES and key.name:
        namespace = key.name
    for group in _ALIASES.get((key.group, key.resource), (key.group,)):
        for verb in ("get", "list") if key.name else ("list", "get"):
            yield AccessRequest(
                verb=verb, group=group, resource=key.resource, namespace=namespace, name=key.name
            )
