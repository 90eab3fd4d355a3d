"""Checks after every event: the invariants around what the event touched, and what never happens
twice.

A full look at a world after each event would cost the square of its length. Here only the
neighbourhood of an event is looked at, by the same rules (`check_invariants`): the claims that hold
devices of the same pools, the pods of these claims. `check_whole` looks at everything; a world asks
for it at intervals, which also proves that nothing was overlooked between.
"""

from collections import defaultdict
from collections.abc import Iterable, Mapping

from app.domain.devices.inventory import Inventory
from app.domain.devices.model import DeviceId
from app.domain.log import Event, EventType, ObjectKey
from app.domain.values import json_tree
from app.domain.values.json_tree import JsonObject, JsonView
from app.service.invariants import FINISHED, GROUP, Violation, check_invariants
from app.service.views import LiveViews

PoolId = tuple[str, str]

_ONCE = {"Scheduled", "Evicted"}
"""Decisions that a pod gets once in its life."""


class Unsound(AssertionError):
    """A rule is broken; the text names the event."""


class _Near:
    """Some objects, read as if there were no others."""

    def __init__(self, objects, keys: Iterable[ObjectKey]) -> None:
        self._objects = objects
        self._keys: dict[tuple[str, str], list[ObjectKey]] = defaultdict(list)
        for key in sorted(keys):
            self._keys[key.group, key.resource].append(key)

    def get(self, key: ObjectKey) -> JsonObject | None:
        return self._objects.get(key)

    def event(self, key: ObjectKey) -> Event | None:
        return self._objects.event(key)

    def keys(self, group: str, resource: str, namespace: str | None = None) -> list[ObjectKey]:
        return self._keys[group, resource]


class _NearStock:
    """Some pools of an inventory."""

    def __init__(self, stock: Inventory, pools: Iterable[PoolId]) -> None:
        self._stock = stock
        self._pools = sorted(pools)

    def pool_ids(self) -> list[PoolId]:
        return self._pools

    def slices_of(self, pool: PoolId):
        return self._stock.slices_of(pool)

    def slices(self):
        return [found for pool in self._pools for found in self._stock.slices_of(pool)]


class Soundness:
    """Follows a history from its first event. `fold` raises Unsound at the first broken rule."""

    def __init__(self, views: LiveViews) -> None:
        self.events = 0
        self.decisions = 0
        self._views = views
        self._known: set[DeviceId] = set()
        self._held: dict[ObjectKey, frozenset[PoolId]] = {}
        self._holders: dict[PoolId, set[ObjectKey]] = defaultdict(set)
        self._pods_of: dict[ObjectKey, set[ObjectKey]] = defaultdict(set)
        self._claims_of: dict[ObjectKey, frozenset[ObjectKey]] = {}
        self._last: dict[ObjectKey, JsonView] = {}
        self._decided: dict[tuple[str, str], int] = {}
        self._made: dict[tuple[str, str], ObjectKey] = {}
        self._said: set[str] = set()

    def fold(self, event: Event) -> None:
        """Look at one event; the views show it already, and nothing after it."""
        self.events += 1
        key = event.key
        if event.type is EventType.DECISION_RECORDED:
            self._check_decision(event)
            return
        if not event.is_about_object:
            return
        gone = event.type is EventType.OBJECT_DELETED
        tree = {} if gone else event.object
        if not gone:
            version = json_tree.text(tree, "metadata", "resourceVersion")
            _must(version == str(event.revision), event, f"has the resourceVersion {version}")
        place = (key.group, key.resource)
        if place == (GROUP, "resourceclaims"):
            self._fold_claim(event, tree, gone=gone)
        elif place == ("", "pods"):
            self._fold_pod(event, tree, gone=gone)
        elif place == (GROUP, "resourceslices"):
            self._fold_slice(event, tree)
        elif place == ("", "events") and event.type is EventType.OBJECT_CREATED:
            self._fold_said(event, tree)

    def check_whole(self) -> None:
        """All invariants on all objects, transient ones too: the world must be at rest."""
        views = self._views
        found = check_invariants(views.objects, views.inventory, known_devices=self._known)
        if found:
            raise Unsound(f"at rest at revision {views.revision}: {_texts(found)}")

    def _fold_claim(self, event: Event, tree: JsonObject, *, gone: bool) -> None:
        key = event.key
        before = {} if event.type is EventType.OBJECT_CREATED else self._last.get(key, {})
        earlier = json_tree.get(before, "status", "allocation")
        now = json_tree.get(tree, "status", "allocation")
        is_kept = earlier is None or now is None or _results(earlier) == _results(now)
        _must(is_kept, event, "was allocated again without having been deallocated")
        if event.type is EventType.OBJECT_CREATED:
            self._check_made_once(event, tree)
        self._remember(key, tree, gone=gone)
        pools = frozenset(
            (json_tree.text(result, "driver"), json_tree.text(result, "pool"))
            for result in _results(now or {})
        )
        for pool in self._held.pop(key, frozenset()) - pools:
            self._holders[pool].discard(key)
        if pools:
            self._held[key] = pools
            for pool in pools:
                self._holders[pool].add(key)
        self._check_near(event, {key}, pools)

    def _check_made_once(self, event: Event, tree: JsonObject) -> None:
        """One claim per entry of a pod, unless the one before is gone or going."""
        owner = next(iter(json_tree.objects(tree, "metadata", "ownerReferences")), {})
        entry = json_tree.text(
            tree, "metadata", "annotations", "resource.kubernetes.io/pod-claim-name"
        )
        if not owner or not entry:
            return
        place = (json_tree.text(owner, "uid"), entry)
        earlier = self._made.get(place)
        old = self._last.get(earlier) if earlier is not None else None
        is_single = old is None or "deletionTimestamp" in old["metadata"]
        _must(is_single, event, f"is a second claim for {entry} of one pod beside {earlier}")
        self._made[place] = event.key

    def _fold_pod(self, event: Event, tree: JsonObject, *, gone: bool) -> None:
        key = event.key
        before = {} if event.type is EventType.OBJECT_CREATED else self._last.get(key, {})
        node = json_tree.text(before, "spec", "nodeName")
        if not gone:
            is_kept = not node or json_tree.text(tree, "spec", "nodeName") == node
            _must(is_kept, event, f"was bound to {node} and moved")
            phase = json_tree.text(before, "status", "phase")
            is_over = phase not in FINISHED or json_tree.text(tree, "status", "phase") == phase
            _must(is_over, event, f"was {phase} and is not any more")
        self._remember(key, tree, gone=gone)
        for claim in self._claims_of.pop(key, frozenset()):
            self._pods_of[claim].discard(key)
        claims = frozenset(_claims_of(key, tree))
        if claims:
            self._claims_of[key] = claims
            for claim in claims:
                self._pods_of[claim].add(key)
        self._check_near(event, claims, ())

    def _fold_slice(self, event: Event, tree: JsonObject) -> None:
        spec = tree or event.object
        driver, pool = json_tree.text(spec, "spec", "driver"), ""
        pool = json_tree.text(spec, "spec", "pool", "name")
        for device in json_tree.objects(tree, "spec", "devices"):
            self._known.add((driver, pool, json_tree.text(device, "name")))
        self._check_near(event, (), {(driver, pool)})

    def _fold_said(self, event: Event, tree: JsonObject) -> None:
        """`Scheduled` is said once of each pod."""
        if json_tree.text(tree, "reason") == "Scheduled":
            uid = json_tree.text(tree, "involvedObject", "uid")
            _must(uid not in self._said, event, "says a second time that the pod was scheduled")
            self._said.add(uid)

    def _check_decision(self, event: Event) -> None:
        self.decisions += 1
        outcome = json_tree.text(event.object, "outcome")
        uid = json_tree.text(event.object, "inputs", "uid")
        if outcome in _ONCE and uid:
            earlier = self._decided.setdefault((uid, outcome), event.revision)
            _must(
                earlier == event.revision,
                event,
                f"decides {outcome} of {uid} again, first at {earlier}",
            )

    def _remember(self, key: ObjectKey, tree: JsonObject, *, gone: bool) -> None:
        if gone:
            self._last.pop(key, None)
        else:
            self._last[key] = tree

    def _check_near(
        self, event: Event, claims: Iterable[ObjectKey], pools: Iterable[PoolId]
    ) -> None:
        near = set(claims)
        for pool in pools:
            near |= self._holders.get(pool, set())
        pods = {pod for claim in claims for pod in self._pods_of.get(claim, ())}
        if event.key.resource == "pods" and event.type is not EventType.OBJECT_DELETED:
            pods.add(event.key)
        objects = self._views.objects
        present = [key for key in (*near, *pods) if objects.get(key) is not None]
        found = [
            violation
            for violation in check_invariants(
                _Near(objects, present),
                _NearStock(self._views.inventory, pools),
                known_devices=self._known,
            )
            if not violation.is_transient
        ]
        if found:
            raise Unsound(f"revision {event.revision} ({event.key}): {_texts(found)}")


def _claims_of(key: ObjectKey, tree: JsonView) -> Iterable[ObjectKey]:
    made = {
        json_tree.text(status, "name"): json_tree.text(status, "resourceClaimName")
        for status in json_tree.objects(tree, "status", "resourceClaimStatuses")
    }
    names = [
        json_tree.text(entry, "resourceClaimName") or made.get(json_tree.text(entry, "name"), "")
        for entry in json_tree.objects(tree, "spec", "resourceClaims")
    ]
    names.append(json_tree.text(tree, "status", "extendedResourceClaimStatus", "resourceClaimName"))
    return (ObjectKey(GROUP, "resourceclaims", key.namespace, name) for name in names if name)


def _results(allocation: object) -> list[JsonObject]:
    assert isinstance(allocation, Mapping)
    return json_tree.objects(allocation, "devices", "results")


def _must(holds: bool, event: Event, text: str) -> None:
    if not holds:
        raise Unsound(f"revision {event.revision}: {event.key} {text}")


def _texts(found: Iterable[Violation]) -> str:
    return "; ".join(str(violation) for violation in found)
