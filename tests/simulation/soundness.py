"""Checks after every event: the rules near the event, and actions that must not happen twice.

A check of the whole world after each event would cost the square of its length. So only the
neighbourhood of an event is checked (`broken_near`): the claims that hold devices of the same
pools, and the pods of these claims. `check_whole` checks everything; a world calls it at intervals,
which also proves that the checks between found everything. The judge shares no code with what it
judges: `plain_state` reads the events.
"""

from collections.abc import Iterable

from app.domain.log import Event, EventType, ObjectKey
from tests.simulation.plain_state import CLAIMS, FINISHED, PODS, PlainState, results_of

_ONCE = {"Scheduled", "Evicted"}
"""Decisions that are made at most once per pod."""


class Unsound(AssertionError):
    """A rule is broken; the text names the event."""


class Soundness:
    """Follows a history from its first event. `fold` raises Unsound at the first broken rule."""

    def __init__(self) -> None:
        self.events = 0
        self.decisions = 0
        self._state = PlainState()
        self._decided: dict[tuple[str, str], int] = {}
        self._made: dict[tuple[str, str], ObjectKey] = {}
        self._said: set[str] = set()

    def fold(self, event: Event) -> None:
        """Checks one event and its neighbourhood."""
        self.events += 1
        if event.type is EventType.DECISION_RECORDED:
            self._check_decision(event)
            return
        if not event.is_about_object:
            return
        key = event.key
        before = self._state.objects.get(key) or {}
        if event.type is EventType.OBJECT_CREATED:
            before = {}
        if event.type is not EventType.OBJECT_DELETED:
            tree = event.object
            version = tree["metadata"].get("resourceVersion")
            _must(version == str(event.revision), event, f"has the resourceVersion {version}")
            if (key.group, key.resource) == CLAIMS:
                self._check_claim(event, before, tree)
            elif (key.group, key.resource) == PODS:
                _check_pod(event, before, tree)
            elif (key.group, key.resource) == ("", "events"):
                self._check_said(event, tree)
        self._state.fold(event)
        broken = list(self._state.broken_near(event))
        if broken:
            raise Unsound(f"revision {event.revision} ({key}): {'; '.join(broken)}")

    def check_whole(self) -> None:
        """Checks all rules on all objects of a world at rest; some rules hold only then."""
        broken = sorted(self._state.broken())
        if broken:
            raise Unsound(f"at rest: {'; '.join(broken)}")

    def _check_claim(self, event: Event, before: dict, tree: dict) -> None:
        earlier, now = results_of(before), results_of(tree)
        is_kept = not _is_allocated(before) or not _is_allocated(tree) or earlier == now
        _must(is_kept, event, "was allocated again without having been deallocated")
        if event.type is EventType.OBJECT_CREATED:
            self._check_made_once(event, tree)

    def _check_made_once(self, event: Event, tree: dict) -> None:
        """Checks that an entry of a pod has one claim, unless the earlier one ends or is gone."""
        owners = tree["metadata"].get("ownerReferences") or [{}]
        annotations = tree["metadata"].get("annotations") or {}
        entry = annotations.get("resource.kubernetes.io/pod-claim-name")
        if not owners[0] or not entry:
            return
        place = (owners[0]["uid"], entry)
        earlier = self._made.get(place)
        old = self._state.objects.get(earlier) if earlier is not None else None
        is_single = old is None or "deletionTimestamp" in old["metadata"]
        _must(is_single, event, f"is a second claim for {entry} of one pod beside {earlier}")
        self._made[place] = event.key

    def _check_said(self, event: Event, tree: dict) -> None:
        """Checks that each pod has one `Scheduled` Event."""
        if event.type is EventType.OBJECT_CREATED and tree.get("reason") == "Scheduled":
            uid = tree["involvedObject"]["uid"]
            _must(uid not in self._said, event, "says a second time that the pod was scheduled")
            self._said.add(uid)

    def _check_decision(self, event: Event) -> None:
        self.decisions += 1
        outcome = event.object.get("outcome")
        uid = (event.object.get("inputs") or {}).get("uid")
        if outcome in _ONCE and uid:
            earlier = self._decided.setdefault((uid, outcome), event.revision)
            _must(
                earlier == event.revision,
                event,
                f"decides {outcome} of {uid} again, first at {earlier}",
            )


def check_events(events: Iterable[Event]) -> Soundness:
    """Checks a whole history, which must be at rest at its end. Raises Unsound."""
    sound = Soundness()
    for event in events:
        sound.fold(event)
    sound.check_whole()
    return sound


def _check_pod(event: Event, before: dict, tree: dict) -> None:
    node = (before.get("spec") or {}).get("nodeName")
    is_kept = not node or tree["spec"].get("nodeName") == node
    _must(is_kept, event, f"was bound to {node} and moved")
    phase = (before.get("status") or {}).get("phase")
    now = (tree.get("status") or {}).get("phase")
    _must(phase not in FINISHED or now == phase, event, f"was {phase} and is not any more")


def _is_allocated(claim: dict) -> bool:
    return (claim.get("status") or {}).get("allocation") is not None


def _must(holds: bool, event: Event, text: str) -> None:
    if not holds:
        raise Unsound(f"revision {event.revision}: {event.key} {text}")
