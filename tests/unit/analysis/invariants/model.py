"""The invariants by brute force: every rule, at every revision, from plain dicts.

Nothing is kept from one revision to the next but the states themselves. A state is a copy of all
objects; a rule reads the whole of it. What depends on the past (which allocation was written when,
since when a place is broken) is found by walking back through the states. The watch that goes along
a log event by event must come to the same.
"""

import calendar
import functools
import itertools
import time
from collections import defaultdict
from dataclasses import dataclass, field
from decimal import ROUND_UP, Decimal, InvalidOperation

import msgspec

from app.domain.log import CLOCKS, Event, EventType
from tests.unit.analysis.invariants import delays

GROUP = "resource.k8s.io"
FINALIZER = "resource.kubernetes.io/delete-protection"
SECOND = 1_000_000
LATE_AFTER = 60 * SECOND
IN_FLIGHT = 15 * SECOND
CLOCKS_DIFFER = 1 * SECOND
FACTORS = {"": 1, "n": "1e-9", "u": "1e-6", "m": "1e-3", "k": 10**3, "M": 10**6, "G": 10**9}
FACTORS |= {"T": 10**12, "P": 10**15, "E": 10**18}
FACTORS |= {f"{letter}i": 1024**power for power, letter in enumerate("KMGTPE", start=1)}
LOSSES = {"metadata_only", "truncated_body", "no_status", "spec_only", "unknown_patch"}
READ = {"resourceclaims", "resourceslices", "devicetaintrules", "resourceslicepatches"}
COUNTED = READ - {"resourceclaims"} | {"deviceclasses"}
READ |= {"pods", "nodes", "namespaces", "resourceclaimtemplates"}
LOSSES |= {"undecodable", "encrypted", "redacted", "contradicted"}
UNPROVEN = LOSSES | {"no_uid", "no_rv", "version_guess", "printed"}
ADMIN = "resource.kubernetes.io/admin-access"
RULES = GROUP, "devicetaintrules"
UNPLACED = {"no_rv", "version_guess", "late"}
GRACED = {
    "pods",
    "resourceclaims",
    "resourceslices",
    "resourceslicepatches",
    "devicetaintrules",
    "deviceclasses",
}
"""The kinds whose deletion is judged; a namespace has no grace period."""

PROVEN = {"fields-agree", "immutable-field-unchanged", "removed-before-renewed"}
MARK = "DeletionByDeviceTaintManager"
MANAGERS = {"system:kube-controller-manager"}
MANAGERS |= {"system:serviceaccount:kube-system:resource-claim-controller"}


def remembered(method):
    """What the method gives for its arguments, worked out once for each object that has it."""

    @functools.wraps(method)
    def ask(self, *arguments):
        place = method.__name__, *arguments
        if place not in self.memory:
            self.memory[place] = method(self, *arguments)
        return self.memory[place]

    return ask


@dataclass
class State:
    """All objects at a revision, when each was last written, and what the last events did."""

    revision: int
    time: int
    objects: dict = field(default_factory=dict)
    written: dict = field(default_factory=dict)
    made: dict = field(default_factory=dict)
    lossy: set = field(default_factory=set)
    collapsed: set = field(default_factory=set)
    touched: list = field(default_factory=list)
    gaps: dict = field(default_factory=dict)
    pools: frozenset = frozenset()
    missed: set = field(default_factory=set)

    def last_gap(self, key):
        """The last revision before which the object may have been written unseen."""
        scopes = [(key.resource, ""), (key.resource, key.namespace)]
        return max(self.gaps.get(scope, 0) for scope in scopes)

    def is_unseen(self, key):
        """Whether the object may differ from what was recorded of it."""
        return key in self.lossy or self.written.get(key, 0) < self.last_gap(key)


@dataclass
class Switches:
    """What of the cluster's features matters."""

    rules: bool = True
    taints: bool = True
    patches: bool = True
    distinct_by_last: bool = False
    later: tuple = ()


def in_force(switches, revision):
    """The switches at a revision: each fork has its own from its first event on."""
    return [switches, *(each for since, each in switches.later if since <= revision)][-1]


def quiet(events: list[Event], begin: int, until: int) -> int:
    """The longest time after `begin` in which nobody wrote into a recording, if it is long."""
    lengths = [
        two.stamp.time - one.stamp.time
        for one, two in itertools.pairwise(events)
        if two.stamp.origin is not None and begin < two.stamp.time <= until
    ]
    return max((each for each in lengths if each > LATE_AFTER), default=0)


def expected(events: list[Event], switches: Switches, lacking=frozenset()) -> list[tuple]:
    """Rule, kind, objects, from and until (None: to the end) of every violation, sorted.

    `lacking` are the resources of which the recording may lack whole objects.
    """
    states = states_of(events)
    judge = Judge(states, switches, lacking, events)
    found, still = [], {}
    causes: dict[tuple, set] = defaultdict(set)
    gaps = [event for event in events if event.type is EventType.GAP_OBSERVED]
    for number, state in enumerate(states):
        while gaps and gaps[0].revision < state.touched[0][1].revision:
            doubt_later(gaps.pop(0), events, states[number - 1 : number], [*found, *still.values()])
        doubt_by_unplaced(states[number - 1] if number else State(0, 0), state, found, still)
        broken = judge.broken(number)
        for place in [place for place in causes if place not in broken]:
            del causes[place]
        for place, (kind, objects) in broken.items():
            if kind == "":
                causes[place] |= judge.causes(number, place, objects)
                broken[place] = (BLAME[place[0]](causes[place]), objects)
        for place in list(still):
            if place not in broken or broken[place][0] != still[place].kind:
                still[place].last = state
                still[place].doubted |= may_be_swapped(still[place], events)
                found.append(still.pop(place))
        for place, (kind, objects) in broken.items():
            if place in still:
                still[place].objects.update(objects)
            else:
                doubted = judge.doubted(number, place, objects)
                pools = judge.pools(number, place, objects)
                unless = judge.unless(number, place)
                still[place] = Broken(place, kind, set(objects), state, doubted, pools, unless)
    for gap in gaps:
        doubt_later(gap, events, states[-1:], [*found, *still.values()])
    found += still.values()
    end = events[-1].stamp.time if events else 0
    seen = {event.key.resource for event in events if event.is_about_object}
    made = []
    for each in found:
        place, kind, first, last = each.place, each.kind, each.first, each.last
        if kind == "late" and (end if last is None else last.time) - first.time < LATE_AFTER:
            continue
        until = end if last is None else last.time
        if kind == "late" and until - first.time - quiet(events, first.time, until) < LATE_AFTER:
            kind = "unsure"
        is_failure = kind in ("late", "broken")
        if is_failure and place[0] == "reservation-names-pod" and "pods" not in seen:
            kind = "unsure"
        if each.doubted or (is_failure and is_doubted_by_lost(each, states, events, judge)):
            kind = "unsure"
        until = None if last is None else last.revision
        made.append((place[0], kind, tuple(sorted(map(str, each.objects))), first.revision, until))
    return sorted(made, key=repr)


def may_be_swapped(each, events):
    """Whether the two events that began and ended it may have been in the other order.

    One of them is of the pod and has no version; no version of the pod is between them, and clocks
    may differ by as much as their times.
    """
    if each.place[0] != "bound-pod-has-claims":
        return False
    (one_key, one), (other_key, other) = each.first.touched[-1], each.last.touched[-1]
    pod = each.place[1]
    if one_key == other_key or "baseline" in (one.stamp.verb, other.stamp.verb):
        return False
    between = [
        event
        for event in events
        if event.is_about_object and event.key == pod and "no_rv" not in losses_of(event)
        if one.revision < event.revision < other.revision
    ]
    is_guess = any(
        key == pod and "no_rv" in losses_of(event)
        for key, event in ((one_key, one), (other_key, other))
    )
    return is_guess and not between and other.stamp.time - one.stamp.time < CLOCKS_DIFFER


def doubt_by_unplaced(before, state, found, still):
    """Doubts what namespaces decided whose next write may in truth have come earlier."""
    for key, event in state.touched:
        if key.resource == "namespaces" and UNPLACED & set(losses_of(event)):
            since = before.written.get(key, 0) if key in before.objects else 0
            for each in [*found, *still.values()]:
                each.doubted |= key in each.objects and each.first.revision > since


@dataclass
class Broken:
    """A broken place: since and until when, and what decided it."""

    place: tuple
    kind: str
    objects: set
    first: State
    doubted: bool
    pools: list
    unless: set
    last: State | None = None


def doubt_later(gap, events, before, broken):
    """Doubts what a gap may concern that came after the unseen writes; `before` is the state."""
    key, origin = gap.key, gap.stamp.origin
    if key.name:
        if origin is None or tuple(origin.losses) != ("gap",) or key.resource not in READ:
            return
        objects = before[0].objects if before else {}
        is_there = key in objects and key.resource not in (
            "pods",
            "nodes",
            "resourceclaimtemplates",
        )
        since = before[0].written.get(key, 0) if is_there else 0
        spec = fields(objects.get(key), "spec")
        pool = text(spec, "driver"), text(spec, "pool", "name")
        for each in broken:
            if each.place[0] in PROVEN:
                continue  # states or versions prove it
            is_concerned = key in each.objects
            if key.resource == "resourceslices":
                is_any = key not in objects
                is_concerned |= bool(each.pools) if is_any else pool in each.pools
            if key.resource in ("devicetaintrules", "resourceslicepatches"):
                is_concerned |= key.resource in each.unless
            each.doubted |= is_concerned and each.first.revision > since
    elif origin is not None and origin.time_quality == "exact":
        is_all = key.group == "redra" or not key.resource
        for kind in READ if is_all else {key.resource}:
            written = [
                event.revision
                for event in events
                if event.is_about_object and event.key.resource == kind
                if event.revision < gap.revision
            ]
            for each in broken:
                is_later = each.first.revision > max(written, default=0)
                each.doubted |= is_later and kind in each.unless


BY_DEVICES = {"allocated-device-existed", "consumed-within-capacity", "constraint-holds"}
BY_DEVICES |= {"counters-not-overdrawn", "eviction-has-taint", "placement-respects-taints"}
BY_DEVICES |= {"share-of-shared-device"}


SHARED = {"device-in-one-claim", "consumed-within-capacity", "counters-not-overdrawn"}


def lacks_releases(events):
    """Whether several claims of templates were made since the log began, and no line makes one."""
    lines = imported(events)
    of_templates = [
        one
        for one in lines
        if one.key.resource == "resourceclaims" and one.type is EventType.OBJECT_CREATED
        if text(
            msgspec.json.decode(one.body),
            "metadata",
            "annotations",
            "resource.kubernetes.io/pod-claim-name",
        )
    ]
    unmade = {one.key for one in of_templates if one.stamp.origin.losses}
    made_late = unmade & {key for key, _ in lost_lines(events)}
    return len(made_late) >= 2 and all(one.stamp.origin.losses for one in of_templates)


def are_of_one_store(events):
    """Whether all lines are of requests, whose versions never fall."""
    lines = [
        each
        for each in imported(events)
        if each.stamp.verb != "baseline" and "synthetic_delete" not in losses_of(each)
    ]
    versions = [int(each.stamp.origin.resource_version or 0) for each in lines]
    versions = [each for each in versions if each]
    return all(each.stamp.request_id for each in lines) and versions == sorted(versions)


def follows_directly(key, revision, events):
    """Whether all versions from the line before to that of a revision are of lines."""
    own = [each for each in imported(events) if each.key == key and each.revision <= revision]
    versions = [int(each.stamp.origin.resource_version or 0) for each in own[-2:]]
    if not all(versions) or not are_of_one_store(events):
        return False
    seen = {each.stamp.origin.resource_version for each in imported(events)}
    return len(versions) == 2 and all(str(each) in seen for each in range(*versions))


def is_doubted_by_lost(each, states, events, judge):
    """Whether a lost line that nothing shows may be why a rule seems to be broken."""
    lost = lost_lines(events)
    rule, since = each.place[0], each.first.revision
    if rule == "removed-before-renewed":
        return not are_of_one_store(events)
    if rule == "bound-pod-has-claims":
        if len({key for key, _ in lost}) >= 2 and is_unwritten(each, events):
            return True
        lacks_ends = without_kubelets(events) or "ends" in judge.lacking
        if lacks_ends and is_pod_silent(each, events):
            return True
        return without_updates(events) and are_claims_silent(each, events)
    if rule == "reservation-names-pod":
        is_lossy = may_lack_claims(lost, events)
        return each.kind == "late" and is_lossy and are_claims_silent(each, events)
    if rule in SHARED:

        def given_back(since):
            return {
                key
                for key in each.objects
                if key.resource == "resourceclaims"
                and not is_told(key, since - 1, events)
                and not any(needs(state, key) for state in states if state.revision >= since)
            }

        if not lacks_releases(events) or not given_back(since):
            return False
        first = next(place for place, state in enumerate(states) if state is each.first)
        until = [place for place, state in enumerate(states) if state is each.last]
        return all(
            each.place not in judge.shared(number, given_back(states[number].revision))
            for number in range(first, *(until or [len(states)]))
        )
    if rule == "allocation-unchanged":
        # The line that took the allocation before may be lost: a status has no generation.
        return may_lack_claims(lost, events) and not follows_directly(each.place[1], since, events)
    if rule == "admin-access-allowed":
        spaces = [key for key in each.objects if key.resource == "namespaces"]
        is_seen = all(is_told(key, since, events) for key in spaces)
        return not is_seen and may_lack("namespaces", lost, since)
    if rule == "eviction-has-taint" and not knows_rules(each, events, lost, judge):
        return True
    pools = [pool for pool in each.pools if not stays(pool, since, states[-1], events)]
    if rule in BY_DEVICES and pools and may_lack("resourceslices", lost, since):
        return True
    if rule not in ("eviction-has-taint", "placement-respects-taints"):
        return False
    rules = [key for key in each.objects if key.resource == "devicetaintrules"]
    if rule == "eviction-has-taint":
        existed = [key for key in states[-1].objects if key.resource == "devicetaintrules"]
        rules = [key for key in existed if begun(key, events, states[-1]) <= since]
    left = [key for key in rules if not is_told(key, since, events)]
    return bool(left) and may_lack("devicetaintrules", lost, since)


def needs(state, key):
    """Whether a claim is reserved for a pod on a node whose line the state begins with."""
    claim = state.objects.get(key)
    users = {one.get("uid") for one in items(claim, "status", "reservedFor")} if claim else set()
    return any(
        uid_of(state.objects[pod]) in users
        and text(state.objects[pod], "spec", "nodeName")
        and text(state.objects[pod], "status", "phase") not in ("Succeeded", "Failed")
        for pod, _ in state.touched
        if pod.resource == "pods" and pod in state.objects
    )


def knows_rules(each, events, lost, judge):
    """Whether a rule that evicted would be in some line: before, or by its status afterwards."""
    about = [one for one in events if one.is_about_object and one.key[:2] == RULES]
    switches = in_force(judge.switches, each.first.revision)
    may_be = switches.rules or switches.rules_open
    if any(one.revision <= each.first.revision for one in about) or not may_be:
        return True
    if may_lack("devicetaintrules", lost, len(events) + 1) or judge.lacking & {"ends", "times"}:
        return False
    marked, end = each.first.time, each.first.time + 10 * SECOND + LATE_AFTER
    author = next(one.stamp.actor.user for one in events if one.revision == each.first.revision)
    writers = {one.stamp.actor.user for one in about if one.type is EventType.OBJECT_UPDATED}
    if author not in writers - {"redra:import"} or events[-1].stamp.time <= end:
        return False
    for one in events:
        is_rules = one.key.resource in ("devicetaintrules", "imports", "")
        is_soon = marked <= one.stamp.time <= end
        if one.type is EventType.GAP_OBSERVED and is_rules and is_soon:
            return False
    firsts = {}
    for one in about:
        firsts.setdefault((one.key, one.uid), one)
    return not any(
        one.stamp.time <= end and existed(one, marked + SECOND) for one in firsts.values()
    )


def existed(first, moment):
    """Whether the object of this first line existed at a moment."""
    made = instant(text(msgspec.json.decode(first.body), "metadata", "creationTimestamp"))
    losses = first.stamp.origin.losses if first.stamp.origin else ()
    is_made = first.type is EventType.OBJECT_CREATED and first.stamp.verb != "baseline"
    if made is None and is_made and "synthetic_create" not in losses:
        made = first.stamp.time
    return made is None or made <= moment


def lost_lines(events):
    """The objects of which a later line shows a lost one, with the last write before it."""
    lost = []
    for place, event in enumerate(events):
        key, origin = event.key, event.stamp.origin
        is_gap = event.type is EventType.GAP_OBSERVED and key.name and key.resource in READ
        if not is_gap or origin is None or tuple(origin.losses) != ("gap",):
            continue
        before = [one for one in events[:place] if one.is_about_object and one.key == key]
        is_there = bool(before) and before[-1].type is not EventType.OBJECT_DELETED
        is_known = is_there and key.resource not in ("nodes", "resourceclaimtemplates")
        lost.append((key, before[-1].revision if is_known else 0, event.revision))
    stretches = [one.revision for one in events if is_stretch(one)]
    if len(stretches) == 1 and all(after < stretches[0] < seen for _, after, seen in lost):
        return []
    return [(key, after) for key, after, _ in lost]


def is_stretch(event):
    """Whether the event tells where a stretch of all kinds begins to be missing."""
    is_gap = event.type is EventType.GAP_OBSERVED and not event.key.resource
    return is_gap and event.stamp.origin is not None and event.stamp.origin.time_quality != "exact"


def may_lack(resource, lost, revision):
    """Whether lines of a kind before a revision may be lost that nothing shows."""
    objects = defaultdict(set)
    before = defaultdict(set)
    for key, after in lost:
        objects[key.resource].add(key)
        if after < revision:
            before[key.resource].add(key)
    kinds = [kind for kind, keys in objects.items() if len(keys) >= 2]
    return len(before[resource]) >= 2 or (len(kinds) >= 2 and any(before.values()))


def may_lack_claims(lost, events):
    """Whether a line about a claim may be lost: one is, and it is not the only lost line."""
    keys = {key for key, _ in lost}
    of_claims = {key for key in keys if key.resource == "resourceclaims"}
    is_any = bool(of_claims) and len(keys) >= 2
    return is_any or may_lack("resourceclaims", lost, len(events) + 1)


def is_told(key, revision, events):
    """Whether a line after a revision is about an object that existed at it."""
    about = [one for one in events if one.is_about_object and one.key == key]
    uids = {one.uid for one in about if one.revision <= revision}
    return any(one.uid in uids for one in about if one.revision > revision)


def begun(key, events, state):
    """The revision of the first line about an object that exists."""
    uid = uid_of(state.objects[key])
    return min(
        one.revision for one in events if one.is_about_object and one.key == key and one.uid == uid
    )


def stays(pool, revision, state, events):
    """Whether later lines show each slice of the newest generation of a pool, which is whole."""
    slices = {
        key: tree["spec"]
        for key, tree in state.objects.items()
        if key.resource == "resourceslices"
        and (text(tree, "spec", "driver"), text(tree, "spec", "pool", "name")) == pool
    }
    newest = max((whole(spec, "pool", "generation") for spec in slices.values()), default=0)
    kept = {
        key: spec for key, spec in slices.items() if whole(spec, "pool", "generation") == newest
    }
    if not kept or len(kept) < whole(kept[min(kept)], "pool", "resourceSliceCount"):
        return False
    return all(is_told(key, revision, events) for key in kept)


def is_unwritten(each, events):
    """Whether since a violation began, none of its claims was written, or a pod of it was not."""
    return are_claims_silent(each, events) or is_pod_silent(each, events)


def meanwhile(each, events):
    """The lines about objects after the one that began a violation, to the one that ended it."""
    first = each.first.revision
    last = events[-1].revision if each.last is None else each.last.revision
    return [one for one in events if one.is_about_object and first < one.revision <= last]


def are_claims_silent(each, events):
    """Whether no claim of a violation was written since; what ends it says nothing of before."""
    end = None if each.last is None else each.last.revision
    about = [one for one in meanwhile(each, events) if one.revision != end]
    later = {one.key for one in about if one.type is not EventType.OBJECT_DELETED}
    return not any(key in later for key in each.objects if key.resource == "resourceclaims")


def is_pod_silent(each, events):
    """Whether a pod was written before a violation began, and neither then nor since."""
    about = {key for key, _ in each.first.touched} | {one.key for one in meanwhile(each, events)}
    return any(key.resource == "pods" and key not in about for key in each.objects)


def imported(events):
    return [one for one in events if one.stamp.origin is not None]


def without_kubelets(events):
    """Whether lines of pods name users of the system, and no node."""
    users = {one.stamp.actor.user for one in imported(events) if one.key.resource == "pods"}
    users = {user.split(":")[1] for user in users if user.startswith("system:")}
    return bool(users) and "node" not in users and not are_kubelets_played(events)


def are_kubelets_played(events):
    """Whether each new phase of a pod, two or more, is in a line that changes nothing else.

    Beside a phase that is not Failed, no controller's part of the status may be new.
    """
    courses = {}
    for one in imported(events):
        if one.key.resource == "pods" and one.is_about_object:
            courses.setdefault(one.uid, []).append(one)
    in_sight = []
    for course in courses.values():
        for was, now in itertools.pairwise(course):
            if was.type is EventType.OBJECT_DELETED:
                continue
            old, new = msgspec.json.decode(was.body), msgspec.json.decode(now.body)
            phases = [text(each, "status", "phase") for each in (old, new)]
            parts = [of_controllers(each) for each in (old, new)]
            is_alone = parts[0] == parts[1] or phases[1] == "Failed"
            for each in (old, new):
                each.pop("status", None)
                each["metadata"].pop("resourceVersion", None)
                each["metadata"].pop("managedFields", None)
            if phases[0] != phases[1]:
                is_whole = now.type is not EventType.OBJECT_DELETED
                in_sight.append(old == new and is_whole and is_alone)
    return len(in_sight) >= 2 and all(in_sight)


def of_controllers(pod):
    """The parts of a pod's status that the scheduler, the claim controller and evictions write."""
    conditions = items(pod, "status", "conditions")
    disrupted = [
        text(each, "status") for each in conditions if text(each, "type") == "DisruptionTarget"
    ]
    others = (at(pod, "status", name) for name in ("nominatedNodeName", "resourceClaimStatuses"))
    return disrupted[:1], *others


def without_updates(events):
    """Whether a log with creations and patches has no update."""
    verbs = {one.stamp.verb for one in imported(events)}
    return verbs >= {"create", "patch"} and "update" not in verbs


def blame(causes: set) -> str:
    if "allocated" in causes:
        return "broken"
    return "unsure" if causes & {"found", "chosen"} else "outside"


def blame_double(causes: set) -> str:
    return "broken" if causes & {"allocated", "found"} else "outside"


def blame_old(causes: set) -> str:
    """A device of an older generation: the scheduler took it, or it was taken before."""
    return "known" if "allocated" in causes else "outside"


BLAME = {
    "allocated-device-published": blame_old,
    "device-in-one-claim": blame_double,
    "counters-not-overdrawn": blame,
    "consumed-within-capacity": blame,
}


def states_of(events: list[Event]) -> list[State]:
    """The states of the cluster; what is listed when a recording begins is one."""
    states = []
    last = State(0, 0)
    listing = False
    gaps = {}
    pools = frozenset()
    missed = set()
    for event in events:
        if not event.is_about_object:
            if event.type is EventType.GAP_OBSERVED:
                listing = False
                if event.key.name:
                    missed |= {event.key} if event.key.resource in READ else set()
                elif event.key.group == "redra" or event.key.resource == "":
                    gaps = {(resource, ""): event.revision for resource in READ}
                elif "pool" in (body := msgspec.json.decode(event.body)):
                    pools |= {tuple(body["pool"].split("/", 1))}
                else:
                    gaps = {**gaps, event.key[1:3]: event.revision}
            if event.type is EventType.HISTORY_IMPORTED:
                known = msgspec.json.decode(event.body).get("positions", {})
                whole = {name.split(".")[0] for name in known}
                gaps = {scope: at for scope, at in gaps.items() if scope[0] not in whole}
                pools = frozenset() if "resourceslices" in whole else pools
            continue
        is_listed = event.stamp.verb == "baseline"
        if not (listing and is_listed):
            last = State(
                0,
                0,
                dict(last.objects),
                dict(last.written),
                dict(last.made),
                set(last.lossy),
                set(last.collapsed),
                [],
                gaps,
            )
            states.append(last)
        listing = is_listed
        last.gaps, last.pools = gaps, pools
        last.lossy |= missed
        last.missed |= missed
        missed.clear()
        take(last, event)
    return states


def take(state: State, event: Event) -> None:
    state.revision, state.time = event.revision, event.stamp.time
    key = event.key
    state.touched.append((key, event))
    if event.type is EventType.OBJECT_DELETED:
        state.objects.pop(key, None)
        state.written[key] = event.revision
        state.lossy.discard(key)
        return
    old = state.objects.get(key)
    if old is None or uid_of(old) != event.uid or event.type is EventType.OBJECT_CREATED:
        state.made[key] = event
    state.objects[key] = {**msgspec.json.decode(event.body), "": event.uid}
    origin = event.stamp.origin
    losses = set(origin.losses) if origin is not None else set()
    state.collapsed.discard(key)
    if "collapsed" in losses:
        state.collapsed.add(key)
    if origin is not None and origin.quality == "reconstructed" and state.is_unseen(key):
        return
    state.written[key] = event.revision
    state.lossy.discard(key)
    if losses & LOSSES or (origin is not None and origin.quality in ("partial", "identity")):
        state.lossy.add(key)


def uid_of(tree):
    return tree[""]


def at(tree, *path):
    for name in path:
        if not isinstance(tree, dict):
            return None
        tree = tree.get(name)
    return tree


def text(tree, *path):
    value = at(tree, *path)
    return value if isinstance(value, str) else ""


def items(tree, *path):
    value = at(tree, *path)
    return [item for item in value if isinstance(item, dict)] if isinstance(value, list) else []


def texts(tree, *path):
    value = at(tree, *path)
    return [item for item in value if isinstance(item, str)] if isinstance(value, list) else []


def fields(tree, *path):
    value = at(tree, *path)
    return value if isinstance(value, dict) else {}


def whole(tree, *path):
    value = at(tree, *path)
    return value if isinstance(value, int) and not isinstance(value, bool) else 0


def amount(value) -> Decimal:
    """The value of a quantity; 0 for what is none."""
    written = str(value).strip() if isinstance(value, str | int | float) else ""
    try:
        number = written.rstrip("numkKMGTPEi")
        exact = Decimal(number) * Decimal(FACTORS[written[len(number) :]])
        return exact.quantize(Decimal("1e-9"), rounding=ROUND_UP)
    except (InvalidOperation, KeyError):
        return Decimal(0)


def amounts(tree):
    """The counters of a set, or what a device draws from one."""
    return {
        name: amount(value.get("value"))
        for name, value in fields(tree, "counters").items()
        if isinstance(value, dict)
    }


def device_of(result):
    return text(result, "driver"), text(result, "pool"), text(result, "device")


def results_of(claim):
    return items(claim, "status", "allocation", "devices", "results")


def is_allocated(claim):
    return isinstance(at(claim, "status", "allocation"), dict)


def chosen(claim):
    """What an allocation consists of for telling whether it changed."""
    if claim is None or not is_allocated(claim):
        return None
    names = ("request", "driver", "pool", "device", "shareID")
    results = [
        (
            *(text(result, name) for name in names),
            at(result, "adminAccess") is True,
            sorted(fields(result, "consumedCapacity").items(), key=repr),
        )
        for result in results_of(claim)
    ]
    terms = items(claim, "status", "allocation", "nodeSelector", "nodeSelectorTerms")
    return results, terms, at(claim, "status", "allocation", "nodeSelector") is not None


class World:
    """One state, read."""

    def __init__(self, state: State, switches: Switches):
        self.state = state
        self.switches = switches
        self.memory = {}

    @remembered
    def of(self, resource, group=GROUP):
        return sorted(
            (key, tree)
            for key, tree in self.state.objects.items()
            if (key.group, key.resource) == (group, resource)
        )

    def slices(self, pool):
        return [
            tree
            for _, tree in self.of("resourceslices")
            if (text(tree, "spec", "driver"), text(tree, "spec", "pool", "name")) == pool
        ]

    @remembered
    def newest(self, pool):
        slices = self.slices(pool)
        newest = max((whole(each, "spec", "pool", "generation") for each in slices), default=0)
        return [each for each in slices if whole(each, "spec", "pool", "generation") == newest]

    @remembered
    def published(self, pool):
        """Devices of the newest generation by name."""
        devices = {}
        for each in self.newest(pool):
            for device in items(each, "spec", "devices"):
                devices.setdefault(text(device, "name"), device)
        return devices

    def device(self, device):
        return self.published(device[:2]).get(device[2])

    @remembered
    def can_give(self, device):
        """In the newest generation, of which all slices are there."""
        newest = self.newest(device[:2])
        counts = [whole(each, "spec", "pool", "resourceSliceCount") for each in newest[:1]]
        return self.device(device) is not None and len(newest) >= counts[0]

    @remembered
    def is_published(self, device):
        """In a slice of whatever generation."""
        return any(
            text(each, "name") == device[2]
            for one in self.slices(device[:2])
            for each in items(one, "spec", "devices")
        )

    @remembered
    def is_offered(self, device):
        """In the newest generation; in any, while not all slices of the newest are there."""
        if device[2] in self.published(device[:2]):
            return True
        newest = sorted(
            (
                (key.name, tree)
                for key, tree in self.of("resourceslices")
                if any(tree is each for each in self.newest(device[:2]))
            ),
            key=lambda each: each[0],
        )
        if newest and len(newest) >= whole(newest[0][1], "spec", "pool", "resourceSliceCount"):
            return False
        return self.is_published(device)

    @remembered
    def goes_unnoticed(self, device):
        """In a generation that the slices for one named node make complete, none newer for it."""
        slices = self.slices(device[:2])
        for node in {text(each, "spec", "nodeName") for each in slices} - {""}:
            near = [each for each in slices if text(each, "spec", "nodeName") in ("", node)]
            newest = max(whole(each, "spec", "pool", "generation") for each in near)
            own = [
                each
                for each in near
                if whole(each, "spec", "pool", "generation") == newest
                and text(each, "spec", "nodeName") == node
            ]
            having = [
                each
                for each in own
                if any(text(one, "name") == device[2] for one in items(each, "spec", "devices"))
                and whole(each, "spec", "pool", "resourceSliceCount") == len(own)
            ]
            if having:
                return True
        return False

    @remembered
    def holdings(self):
        held = defaultdict(list)
        for key, claim in self.of("resourceclaims"):
            for result in results_of(claim):
                if at(result, "adminAccess") is not True:
                    held[device_of(result)].append((key, result))
        return held

    def patched(self, device, field_name, name):
        """The value of an attribute or capacity after patches, and whether that is doubtful."""
        driver = device[0]
        value = fields(self.device(device), field_name).get(name)
        qualified = name if "/" in name else f"{driver}/{name}"
        is_doubtful = False
        best = None
        for key, patch in self.of("resourceslicepatches") if self.switches.patches else ():
            spec = fields(patch, "spec", "devices")
            chosen_by = fields(spec, "filter")
            names = [text(chosen_by, part) for part in ("driver", "pool", "device")]
            if any(want and want != has for want, has in zip(names, device, strict=True)):
                continue
            change = fields(spec, field_name).get(qualified)
            if not isinstance(change, dict):
                continue
            if items(chosen_by, "selectors") or text(chosen_by, "deviceClassName"):
                is_doubtful = True
                continue
            rank = (
                -whole(spec, "priority"),
                text(patch, "metadata", "creationTimestamp"),
                self.state.made[key].revision,
                key.name,
            )
            if best is None or rank < best[0]:
                best = rank, change
        if best is not None:
            value = None if "null" in best[1] else best[1]
        return value, is_doubtful


class Judge:
    def __init__(self, states: list[State], switches: Switches, lacking=frozenset(), events=()):
        self.states = states
        self.events = events
        self.switches = switches
        self.lacking = lacking
        self.memory = {}
        self.worlds = [World(state, in_force(switches, state.revision)) for state in states]

    def doubted(self, number, place, objects):
        """Whether what decides the place may look different from what was recorded."""
        state, switches = self.states[number], self.worlds[number].switches
        rule = place[0]
        decisive = set(objects)
        if rule == "pod-on-allocated-node":
            chosen_by = at(state.objects[place[2]], "status", "allocation", "nodeSelector")
            if not uses_labels(chosen_by):
                decisive = {key for key in decisive if key.resource != "nodes"}
        if any(state.is_unseen(key) for key in decisive):
            return True
        if rule in ("consumed-within-capacity", "constraint-holds") and switches.patches:
            lossy = {key.resource for key in state.lossy} | {resource for resource, _ in state.gaps}
            if "resourceslicepatches" in lossy:
                return True
        return any(self.is_doubtful(number, pool) for pool in self.pools(number, place, objects))

    def unless(self, number, place):
        """Kinds of which an object that nobody knows could make the place a sound one."""
        rule = place[0]
        if rule == "eviction-has-taint":
            return {"resourceclaims", "resourceslices", "devicetaintrules"}
        if rule == "reservation-names-pod":
            return {"pods"}
        if rule == "admin-access-allowed":
            return {"namespaces"}
        if rule == "bound-pod-has-claims":
            return set() if place[2] in self.states[number].objects else {"resourceclaims"}
        if rule in ("consumed-within-capacity", "constraint-holds"):
            return {"resourceslicepatches"}
        return set()

    def is_doubtful(self, number, pool):
        """Whether a pool may have other devices than those that were recorded."""
        state, world = self.states[number], self.worlds[number]
        for key in state.lossy:
            if key.resource != "resourceslices":
                continue
            spec = fields(state.objects.get(key), "spec")
            its_pool = text(spec, "driver"), text(spec, "pool", "name")
            if "" in its_pool or its_pool == pool:
                return True
        is_of_all = any(resource == "resourceslices" for resource, _ in state.gaps)
        if not is_of_all and pool not in state.pools:
            return False
        newest = world.newest(pool)
        keys = [
            key for key, tree in world.of("resourceslices") if any(tree is one for one in newest)
        ]
        wanted = [whole(one, "spec", "pool", "resourceSliceCount") for one in newest]
        # The slice with the least name says how many there are.
        first = min(range(len(keys)), key=lambda index: keys[index].name, default=None)
        if first is None or len(keys) < wanted[first]:
            return True
        return is_of_all and any(state.is_unseen(key) for key in keys)

    def pools(self, number, place, objects):
        """The pools whose slices decide the place."""
        rule, world = place[0], self.worlds[number]
        if rule == "counters-not-overdrawn":
            return [place[1]]
        if rule in ("allocated-device-published", "consumed-within-capacity"):
            return [place[1][:2]]
        if rule == "device-in-one-claim":
            held = world.holdings()[place[1]]
            return [place[1][:2]] if any(text(each, "shareID") for _, each in held) else []
        claims = [each for each in objects if each.resource == "resourceclaims"]
        trees = [world.state.objects.get(key) for key in claims]
        results = [each for tree in trees if tree is not None for each in results_of(tree)]
        if rule in ("allocated-device-existed", "share-of-shared-device"):
            return [device_of(results[place[3]])[:2]]
        if rule == "placement-respects-taints":
            return [device_of(results[place[3]])[:2]] if len(objects) == 1 else []
        if rule == "constraint-holds":
            constraint = items(trees[0], "spec", "devices", "constraints")[place[3]]
            wanted = texts(constraint, "requests")
            names = [(text(each, "request"), device_of(each)) for each in results]
            return [
                device[:2]
                for name, device in names
                if not wanted or name in wanted or name.split("/")[0] in wanted
            ]
        if rule == "eviction-has-taint":
            return [device_of(each)[:2] for each in results]
        return []

    def broken(self, number) -> dict:
        world = self.worlds[number]
        broken = {}
        broken |= self.double_use(world)
        broken |= self.counters(world)
        broken |= self.capacity(world)
        broken |= self.withdrawn(number)
        broken |= self.faults(number)
        for key, claim in world.of("resourceclaims"):
            broken |= self.claim(number, key, claim)
            broken |= self.allocation(number, key, claim)
        for key, pod in world.of("pods", ""):
            broken |= self.pod(number, key, pod)
        return broken

    def causes(self, number, place, holders) -> set:
        """Why the place may be broken: what the events of this state did to its holders."""
        causes = set()
        before = self.states[number - 1].objects if number else {}
        for key, event in self.states[number].touched:
            if key not in holders:
                continue
            new, old = self.states[number].objects.get(key), before.get(key)
            if chosen(new) is None or not self.uses(number, key, place):
                continue
            is_same = old is not None and uid_of(old) == event.uid
            if is_same and chosen(old) == chosen(new):
                continue
            is_found = not is_same or event.type is EventType.OBJECT_CREATED
            was_enough = not is_found and self.was_enough(number, key, place)
            causes.add("found" if is_found else "chosen" if was_enough else "allocated")
        return causes or {"outside"}

    def was_enough(self, number, key, place):
        """Whether there was enough when the allocation may have been chosen, for those of now."""
        if place[0] not in ("counters-not-overdrawn", "consumed-within-capacity"):
            return False
        held = self.worlds[number].holdings()
        devices = {
            device
            for device, holding in held.items()
            if any(each == key for each, _ in holding)
            and self.is_of_place(self.worlds[number], device, place)
        }
        for world in self.worlds_of_choice(number, key, devices):
            broken = self.counters(world, held) | self.capacity(world, held)
            if place in broken:
                if broken[place][0] == "unsure":
                    return True
            elif self.has_limit(world, place, held):
                return True
        return False

    def has_limit(self, world, place, held):
        """Whether nothing draws on the place, or it has a limit."""
        if place[0] == "consumed-within-capacity":
            limit, is_doubtful = world.patched(place[1], "capacity", place[2])
            return is_doubtful or isinstance(limit, dict)
        draws = any(self.is_of_place(world, device, place) for device in held)
        return not draws or any(
            text(each, "name") == place[2] and place[3] in amounts(each)
            for one in world.newest(place[1])
            for each in items(one, "spec", "sharedCounters")
        )

    def is_of_place(self, world, device, place):
        if place[0] == "consumed-within-capacity":
            return device == place[1]
        return device[:2] == place[1] and any(
            text(use, "counterSet") == place[2] and place[3] in amounts(use)
            for use in items(world.device(device), "consumesCounters")
        )

    def worlds_of_choice(self, number, key, devices):
        """Earlier states in which the allocation may have been chosen, if they had the devices."""
        since = self.chosen_from(number, key)
        for index in range(number - 1, -1, -1):
            changed = self.states[index + 1]
            if changed.time < since:
                return
            is_listed = any(event.stamp.verb == "baseline" for _, event in changed.touched)
            if not is_listed and all(map(self.worlds[index].can_give, devices)):
                yield self.worlds[index]

    def uses(self, number, key, place):
        claim = self.states[number].objects[key]
        for result in results_of(claim):
            if at(result, "adminAccess") is True:
                continue
            device = device_of(result)
            if place[1] == device:
                return True
            if place[0] == "counters-not-overdrawn" and place[1] == device[:2]:
                published = self.worlds[number].device(device)
                for use in items(published, "consumesCounters"):
                    if text(use, "counterSet") == place[2] and place[3] in amounts(use):
                        return True
        return False

    def shared(self, number, without):
        """What is broken about devices in use, had some claims given theirs back."""
        world = self.worlds[number]
        held = {
            device: [one for one in holding if one[0] not in without]
            for device, holding in world.holdings().items()
        }
        return {
            **self.double_use(world, held),
            **self.counters(world, held),
            **self.capacity(world, held),
        }

    def double_use(self, world, holdings=None):
        broken = {}
        for device, held in (world.holdings() if holdings is None else holdings).items():
            published = world.device(device)
            may_share = published is not None and at(published, "allowMultipleAllocations") is True
            shares = [text(result, "shareID") for _, result in held]
            is_twice = all(shares) and len(set(shares)) < len(shares)
            if len(held) > 1 and (is_twice or not all(may_share or share for share in shares)):
                broken["device-in-one-claim", device] = ("", {key for key, _ in held})
        return broken

    def counters(self, world, held=None):
        broken = {}
        held = world.holdings() if held is None else held
        for pool in {device[:2] for device in held}:
            limits, used, holders = {}, defaultdict(Decimal), defaultdict(set)
            for each in world.newest(pool):
                for counter_set in items(each, "spec", "sharedCounters"):
                    for name, counter in amounts(counter_set).items():
                        limits[text(counter_set, "name"), name] = counter
            for name, device in world.published(pool).items():
                holding = held.get((*pool, name), [])
                for use in items(device, "consumesCounters") if holding else []:
                    for counter, value in amounts(use).items():
                        place = text(use, "counterSet"), counter
                        used[place] += value
                        holders[place] |= {key for key, _ in holding}
            for place, total in used.items():
                if place in limits and total > limits[place]:
                    broken["counters-not-overdrawn", pool, *place] = ("", holders[place])
        return broken

    def capacity(self, world, holdings=None):
        broken = {}
        for device, held in (world.holdings() if holdings is None else holdings).items():
            if world.device(device) is None:
                continue
            used, holders = defaultdict(Decimal), defaultdict(set)
            for key, result in held:
                for name, value in fields(result, "consumedCapacity").items():
                    used[name] += amount(value)
                    holders[name].add(key)
            for name, total in used.items():
                limit, is_doubtful = world.patched(device, "capacity", name)
                if isinstance(limit, dict) and total > amount(limit.get("value")):
                    kind = "unsure" if is_doubtful else ""
                    broken["consumed-within-capacity", device, name] = (kind, holders[name])
        return broken

    def claim(self, number, key, claim):
        broken = self.exchanged(number, key, claim) if is_allocated(claim) else {}
        reserved = items(claim, "status", "reservedFor")
        if is_allocated(claim) and FINALIZER not in texts(claim, "metadata", "finalizers"):
            broken["allocation-has-finalizer", key] = (self.protection(number, key), {key})
        if reserved and not is_allocated(claim):
            broken["reservation-has-allocation", key] = ("broken", {key})
        if len(reserved) > 256:
            broken["reservations-within-limit", key] = ("broken", {key})
        for consumer in reserved:
            if text(consumer, "resource") != "pods" or text(consumer, "apiGroup"):
                continue
            pod = type(key)("", "pods", key.namespace, text(consumer, "name"))
            uid = text(consumer, "uid")
            tree = self.states[number].objects.get(pod)
            if tree is None or uid_of(tree) != uid:
                place = "reservation-names-pod", key, pod.name, uid
                kind = "broken" if self.is_stranger(number, key, pod, uid) else "late"
                if kind == "late" and (other := self.namesake(number, key, pod, uid)):
                    broken[place] = ("broken", {key, other})
                    continue
                is_nameless = tree is not None and not uid_of(tree)
                if "pods" in self.lacking or is_nameless:
                    kind = "unsure"
                broken[place] = (kind, {key, pod})
            elif key.name not in names_of(tree) and not owns(claim, uid):
                place = "reserved-pod-names-claim", key, pod.name, uid
                broken[place] = ("broken", {key, pod})
        return broken

    def is_change(self, index, key):
        """Whether the object was changed at a state, with the whole of it known before and after.

        That is: it is the same object as in the state before, and nothing of it was missed.
        """
        if not index or not any(each == key for each, _ in self.states[index].touched):
            return False
        before, after = self.states[index - 1], self.states[index]
        if key not in before.objects or key not in after.objects:
            return False
        if before.made[key] is not after.made[key] or not uid_of(after.objects[key]):
            return False
        if key in before.lossy | after.missed | after.lossy:
            return False
        return before.written.get(key, 0) >= after.last_gap(key)

    def life(self, number, key):
        """The states, latest first, in which an object was what it is now."""
        made = self.states[number].made[key]
        for index in range(number, -1, -1):
            state = self.states[index]
            if key not in state.objects or state.made[key] is not made:
                return
            yield index

    def event_of(self, index, key):
        return [event for each, event in self.states[index].touched if each == key][-1]

    @remembered
    def reserving(self, index, key):
        """Names and uids of the pods that a claim is reserved for at a state."""
        return {
            (text(each, "name"), text(each, "uid"))
            for each in items(self.states[index].objects[key], "status", "reservedFor")
            if text(each, "resource") == "pods" and not text(each, "apiGroup")
        }

    def namesake(self, number, key, pod, uid):
        """The other pod with the uid, where the claim was found allocated."""
        objects = self.states[number].objects
        if not uid or not is_allocated(objects[key]):
            return None
        if not self.is_found(self.first_allocated(number, key), key):
            return None
        return next(
            (
                other
                for other, tree in objects.items()
                if other.resource == "pods" and other != pod and uid_of(tree) == uid
            ),
            None,
        )

    def is_found(self, index, key):
        """Whether a claim is seen for the first time, or as created, in a state."""
        state = self.states[index]
        before = self.states[index - 1].objects.get(key) if index else None
        if before is None or uid_of(before) != uid_of(state.objects[key]):
            return True
        written = [event for each, event in state.touched if each == key]
        return any(event.type is EventType.OBJECT_CREATED for event in written)

    def is_stranger(self, number, key, pod, uid):
        """Whether the pod was gone for long, or never there, when the claim was reserved for it."""

        def has_entry(index):
            return (pod.name, uid) in self.reserving(index, key)

        added = number
        for index in self.life(number, key):
            if not has_entry(index):
                break
            added = index
        if not self.is_change(added, key) or has_entry(added - 1):
            return False
        if key in self.states[added].collapsed:
            return False
        there = self.states[added].objects.get(pod)
        if there is not None and uid_of(there) == uid:
            return False
        is_nameless = there is not None and not uid_of(there)
        if is_nameless and self.uid_told(added, number, pod) in ("", uid):
            return False
        if self.lost_nameless(added, pod, key):
            return False
        for index in range(added - 1, -1, -1):
            tree = self.states[index].objects.get(pod)
            if tree is not None and uid_of(tree) == uid:
                if self.states[index + 1].time < self.decided_from(added, key):
                    return True
                claim = self.states[added].objects[key]
                return key.name not in names_of(tree) and not owns(claim, uid)
        return True

    def uid_told(self, start, number, pod):
        """The uid that a pod is seen to have after a state, before it ends; "" if it is not."""
        for index in range(start + 1, number + 1):
            state = self.states[index]
            if any(key == pod and is_end(event) for key, event in state.touched):
                return ""
            if uid := uid_of(state.objects[pod]):
                return uid
        return ""

    def lost_nameless(self, added, pod, claim):
        """Whether a pod of the name, seen without its uid, ended a moment before a state."""
        for index in range(added, 0, -1):
            if self.states[index].time < self.decided_from(added, claim):
                return False
            before = self.states[index - 1].objects.get(pod)
            ends = [
                event for key, event in self.states[index].touched if key == pod and is_end(event)
            ]
            # One that is made again without a uid may be the same one.
            is_sure = any(one.uid or one.type is EventType.OBJECT_DELETED for one in ends)
            if before is not None and not uid_of(before) and is_sure:
                return True
        return False

    def withdrawn(self, number):
        """Devices in use that are published no more."""
        broken = {}
        for device, held in self.worlds[number].holdings().items():
            if self.worlds[number].is_offered(device):
                continue
            if self.was_published(number, device):
                holders = {key for key, _ in held}
                kind = "" if self.worlds[number].goes_unnoticed(device) else "outside"
                broken["allocated-device-published", device] = (kind, holders)
        return broken

    @remembered
    def was_published(self, number, device):
        return any(world.is_published(device) for world in self.worlds[: number + 1])

    def faults(self, number):
        """Writes that were wrong in themselves, of objects that are still there.

        A deletion stays wrong until the name is used again.
        """
        broken = {}
        for key in self.states[number].objects:
            broken |= self.faults_of(number, key)
        gone = {key for state in self.states[: number + 1] for key, _ in state.touched}
        for key in gone - set(self.states[number].objects):
            if key.resource == "resourceclaims":
                broken |= self.unprotected_end(number, key)
        for key in gone:
            if key.resource in COUNTED:
                broken |= self.generations(self.states[number].revision, key)
        return broken | self.successions(self.states[number].revision)

    @remembered
    def successions(self, revision):
        """Objects with the name of others, where too few versions lie between their lines.

        What is known of the first one is its last version, of the second one its first version.
        """
        broken, versions, last, is_proof = {}, set(), {}, True
        for event in self.events:
            origin, key = event.stamp.origin, event.key
            if origin is None or not event.is_about_object:
                continue
            losses = set(origin.losses)
            version, uid, unseen, since = last.get(key, (0, "", 0, 0))
            if losses & {"synthetic_delete", "synthetic_create"}:
                last[key] = (version, uid or event.uid, unseen + 1, event.revision)
                continue
            if not origin.resource_version:
                is_proof &= bool(event.stamp.request_id)
                continue
            now = int(origin.resource_version)
            is_proof &= bool(event.stamp.request_id) and now >= max(versions, default=0)
            versions.add(now)
            free = now - version - 1 - len([one for one in versions if version < one < now])
            begin = since if unseen > 1 else event.revision
            is_odd = uid not in ("", event.uid) and unseen > free
            if is_odd and is_proof and begin <= revision:
                broken["removed-before-renewed", key, uid] = ("broken", {key})
            last[key] = (now, event.uid, 0, 0)
        return broken

    @remembered
    def generations(self, revision, key):
        """Specs that changed while the generation stood still, and generations that fell.

        Where any object may have changed unseen, the store may have been restored.
        """
        broken, last, uid = {}, None, None
        for event in self.events:
            if event.revision > revision:
                break
            is_gap = event.type is EventType.GAP_OBSERVED
            if is_gap and not event.key.name and event.key != CLOCKS:
                last = None
            if not event.is_about_object or event.key != key:
                continue
            is_end = event.type is EventType.OBJECT_DELETED
            is_other = key.resource == "resourceslices" and event.uid != uid
            uid = event.uid
            if is_end or is_other or event.type is EventType.OBJECT_CREATED:
                broken = {}
            origin = event.stamp.origin
            is_own = origin is None or (
                origin.quality in ("", "full") and not UNPROVEN & set(origin.losses)
            )
            if not event.uid or not is_own:
                continue
            tree = msgspec.json.decode(event.body)
            now = event.uid, whole(tree, "metadata", "generation"), pruned({"x": at(tree, "spec")})
            if last is not None and last[0] == now[0] and last[1] and now[1]:
                names = ["metadata.generation"] * (now[1] < last[1] and not is_end)
                if last[1] == now[1] and clash(last[2], now[2], in_list=True):
                    names.append("spec (with the same metadata.generation)")
                for name in names:
                    place = "immutable-field-unchanged", key, name, event.revision
                    broken[place] = ("broken", {key})
            last = None if is_end else now
        return broken

    def unprotected_end(self, number, key):
        """What is wrong with the deletion of a claim."""
        index = number
        while index and key not in self.states[index - 1].objects:
            index -= 1
        if not index:
            return {}
        before, event = self.states[index - 1], self.event_of(index, key)
        is_known = key not in before.lossy | self.states[index].missed
        is_known &= before.written.get(key, 0) >= self.states[index].last_gap(key)
        claim = before.objects[key]
        if not is_known or not uid_of(claim) or uid_of(claim) != event.uid:
            return {}
        return self.unprotected(index, key, event, claim)

    def unprotected(self, index, key, event, before):
        """A claim that lost its finalizer while it was allocated, by the claim controller."""
        losses = losses_of(event)
        if not is_allocated(before) or FINALIZER not in texts(before, "metadata", "finalizers"):
            return {}
        if {"collapsed", "synthetic_delete"} & set(losses):
            return {}
        user = event.stamp.actor.user
        if user != "redra:import" and user not in MANAGERS | self.namers(index):
            return {}
        origin = event.stamp.origin
        is_partial = origin is not None and origin.quality in ("partial", "identity")
        kind = "unsure" if user == "redra:import" or is_partial else "broken"
        return {("finalizer-outlasts-allocation", key, index): (kind, {key})}

    @remembered
    def namers(self, index):
        """Who told pods the names of their generated claims until then."""
        users = set()
        for number in range(1, index + 1):
            for key, event in self.states[number].touched:
                if key.resource != "pods" or not self.is_change(number, key):
                    continue
                before, after = (self.states[each].objects[key] for each in (number - 1, number))
                names = [at(each, "status", "resourceClaimStatuses") for each in (before, after)]
                if names[0] != names[1] and "collapsed" not in losses_of(event):
                    users.add(event.stamp.actor.user)
        return users

    @remembered
    def faults_of(self, number, key):
        before, state = self.states[max(number - 1, 0)], self.states[number]
        lives = number and key in before.objects and before.made[key] is state.made[key]
        return (self.faults_of(number - 1, key) if lives else {}) | self.faults_at(number, key)

    def faults_at(self, index, key):
        """What is wrong with the write of an object; the same whenever one asks."""
        broken = self.changed_apart(index, key) | self.reports(index, key)
        broken |= self.forbidden(index, key) | self.early(index, key) | self.disagreeing(index, key)
        if not self.is_change(index, key):
            return broken
        before = self.states[index - 1].objects[key]
        after = self.states[index].objects[key]
        losses = losses_of(self.event_of(index, key))
        for name, kind in changed_fields(key, before, after, losses):
            broken["immutable-field-unchanged", key, name, index] = (kind, {key})
        is_kept = is_allocated(after) and chosen(before) == chosen(after)
        is_open = is_kept and FINALIZER not in texts(after, "metadata", "finalizers")
        if key.resource == "resourceclaims" and is_open:
            broken |= self.unprotected(index, key, self.event_of(index, key), before)
        if key.resource == "resourceclaims" and is_taken(before, after, losses):
            kind = "unsure" if "no_rv" in losses else "broken"
            broken["terminating-claim-unused", key, index] = (kind, {key})
        if key.resource == "pods" and is_marked(after) and not is_marked(before):
            self.eviction(index, key, after, losses, broken)
        return broken

    def early(self, index, key):
        """Pods that the scheduler binds at a state to a claim whose devices were never ready.

        Of redra's own writes, which have an order that is no guess.
        """
        if key.resource != "resourceclaims" or not index:
            return {}
        broken = {}
        for pod, event in self.states[index].touched:
            after = self.states[index].objects.get(pod)
            before = self.states[index - 1].objects.get(pod)
            is_bound = pod.resource == "pods" and None not in (before, after)
            is_bound = is_bound and uid_of(before) == uid_of(after) and event.stamp.origin is None
            is_bound = is_bound and text(after, "spec", "nodeName") != ""
            if is_bound and text(before, "spec", "nodeName") == "":
                is_named = key.namespace == pod.namespace and key.name in names_of(before)
                if is_named and self.giver_of_unready(index, key) == event.stamp.actor.user:
                    place = "bound-pod-has-ready-devices", key, pod, self.states[index].revision
                    broken[place] = ("broken", {key, pod})
        return broken

    def giver_of_unready(self, index, key):
        """The user that gave a claim devices which were not ready at any state since."""
        while index:
            claim, before = (self.states[each].objects.get(key) for each in (index, index - 1))
            if claim is None or not is_allocated(claim) or is_ready(claim):
                return None
            if before is None or uid_of(before) != uid_of(claim):
                return None
            if not is_allocated(before):
                return self.event_of(index, key).stamp.actor.user
            index -= 1
        return None

    def disagreeing(self, index, key):
        """A namespace with the phase of one that is deleted, though it is not, or the reverse.

        Or with the name of another one in the label for its own. Of other objects, a deletion
        without its grace period, a slice that selects nodes in two ways, and a pod whose status
        names the claim of an entry that it does not have.
        """
        tree = self.states[index].objects.get(key)
        if tree is None or not uid_of(tree) or not self.shows(index, key):
            return {}
        broken = {}
        is_deleted = text(tree, "metadata", "deletionTimestamp") != ""
        if key.resource in GRACED and is_deleted:
            grace = at(tree, "metadata", "deletionGracePeriodSeconds")
            if not isinstance(grace, int) or grace < 0 or (grace and key.resource != "pods"):
                broken["fields-agree", key, "grace"] = ("broken", {key})
        if key.resource == "resourceslices":
            ways = [text(tree, "spec", "nodeName"), at(tree, "spec", "nodeSelector")]
            ways += [at(tree, "spec", each) for each in ("allNodes", "perDeviceNodeSelection")]
            if sum(map(bool, ways)) > 1:
                broken["fields-agree", key, "nodes"] = ("broken", {key})
        for pool in items(tree, "status", "pools"):
            names = ("totalDevices", "allocatedDevices", "unavailableDevices", "availableDevices")
            total, allocated, unavailable, available = (pool.get(name) for name in names)
            if total is not None and available != max(0, total - allocated - unavailable):
                broken["fields-agree", key, text(pool, "poolName")] = ("broken", {key})
        uids = [text(each, "uid") for each in items(tree, "status", "reservedFor")]
        for uid in uids if key.resource == "resourceclaims" else ():
            if uid and uids.count(uid) > 1:
                broken["fields-agree", key, "reserved", uid] = ("broken", {key})
        if key.resource == "resourcepoolstatusrequests":
            broken |= self.answered(index, key)
        if key.resource == "pods":
            told = [at(tree, "status"), *items(tree, "status", "conditions")]
            generations = [at(each, "observedGeneration") or 0 for each in told]
            generation = at(tree, "metadata", "generation") or 0
            if generation and max(generations) > generation:
                broken["fields-agree", key, "observed"] = ("broken", {key})
            entries = [text(each, "name") for each in items(tree, "spec", "resourceClaims")]
            for each in items(tree, "status", "resourceClaimStatuses"):
                if text(each, "name") not in entries:
                    broken["fields-agree", key, text(each, "name")] = ("broken", {key})
        if key.resource != "namespaces":
            return broken
        phase = text(tree, "status", "phase")
        if phase and phase != ("Terminating" if is_deleted else "Active"):
            broken["fields-agree", key, "status.phase"] = ("broken", {key})
        label = fields(tree, "metadata", "labels").get("kubernetes.io/metadata.name", key.name)
        if label != key.name:
            broken["fields-agree", key, "label"] = ("broken", {key})
        return broken

    def answered(self, index, key):
        """An answer about other pools than those that were asked for, or of another number."""
        tree, broken = self.states[index].objects[key], {}
        driver, wanted = text(tree, "spec", "driver"), text(tree, "spec", "poolName")
        pools, count = items(tree, "status", "pools"), at(tree, "status", "poolCount")
        for pool in pools:
            is_other = driver and text(pool, "driver") != driver
            if is_other or wanted not in ("", text(pool, "poolName")):
                broken["fields-agree", key, text(pool, "poolName")] = ("broken", {key})
        if count is None:
            return broken
        if len(pools) != min(count, at(tree, "spec", "limit") or 100):
            broken["fields-agree", key, "poolCount"] = ("broken", {key})
        for each in items(tree, "status", "conditions"):
            words = text(each, "message").split()
            if words[:3] == ["Calculated", "status", "for"] and words[3] != str(count):
                broken["fields-agree", key, "message"] = ("broken", {key})
        return broken

    def answered_anew(self, index, key, last):
        """The status of a request that was answered before, and has another one now."""
        before, after = (self.states[each].objects[key] for each in (last, index))
        one, other = (pruned({"x": at(tree, "status")}) for tree in (before, after))
        if key.resource != "resourcepoolstatusrequests" or not at(before, "status"):
            return {}
        if one == other:
            return {}
        return {("immutable-field-unchanged", key, "status", index): ("broken", {key})}

    def forbidden(self, index, key):
        """Admin access that is asked for in a namespace that does not allow it."""
        state = self.states[index]
        tree, space = state.objects.get(key), type(key)("", "namespaces", "", key.namespace)
        paths = {"resourceclaims": ["spec"], "resourceclaimtemplates": ["spec", "spec"]}
        events = [event for each, event in state.touched if each == key]
        if tree is None or key.resource not in paths or space not in state.objects or not events:
            return {}
        losses = set(losses_of(events[-1]))
        is_made = events[-1].type is EventType.OBJECT_CREATED and "synthetic_create" not in losses
        is_made &= events[-1].stamp.verb != "baseline"
        requests = items(tree, *paths[key.resource], "devices", "requests")
        is_admin = any(at(each, "exactly", "adminAccess") is True for each in requests)
        if not (is_made and is_admin) and not self.is_newly_admin(index, key):
            return {}

        def allows(number):
            labels = fields(self.states[number].objects.get(space), "metadata", "labels")
            return labels.get(ADMIN) == "true"

        if allows(index):
            return {}
        before = self.states[index - 1] if index else State(0, 0)
        allowing = [number for number in range(index) if allows(number)]
        is_sure = self.shows(index, key) and not losses & (UNPLACED | {"collapsed"})
        if allowing and state.time - self.states[allowing[-1] + 1].time <= IN_FLIGHT:
            is_sure = False
        labels = fields(state.objects[space], "metadata", "labels")
        is_sure &= labels.get("resource.k8s.io/admin-access") != "true"
        is_sure &= key not in before.lossy | state.missed
        is_sure &= before.written.get(key, 0) >= state.last_gap(key)
        kind = "broken" if is_sure else "unsure"
        return {("admin-access-allowed", key, index): (kind, {key, space})}

    def is_newly_admin(self, index, key):
        """Whether a claim gets devices with admin access and had none before."""
        if key.resource != "resourceclaims" or not self.is_change(index, key):
            return False
        given = [
            any(at(each, "adminAccess") is True for each in results_of(state.objects[key]))
            for state in self.states[index - 1 : index + 1]
        ]
        return given == [False, True]

    def reports(self, index, key):
        """Reports of drivers about devices that the claim does not have."""
        claim = self.states[index].objects.get(key)
        if key.resource != "resourceclaims" or claim is None or not self.shows(index, key):
            return {}
        names = ("driver", "pool", "device", "shareID")
        had = [[text(each, name) for name in names] for each in results_of(claim)]
        reported = [
            [text(each, name) for name in names] for each in items(claim, "status", "devices")
        ]
        return {
            ("reported-device-allocated", key, *each): ("broken", {key})
            for each in reported
            if each not in had or reported.count(each) > 1
        }

    def shows(self, index, key):
        """Whether the object was written at a state and recorded there as it was."""
        if key not in [each for each, _ in self.states[index].touched]:
            return False
        event = self.event_of(index, key)
        origin = event.stamp.origin
        if origin is None or not event.uid:
            return bool(event.uid)
        return origin.quality in ("", "full") and not UNPROVEN & set(origin.losses)

    def changed_apart(self, index, key):
        """Fields that nobody may change, in which the last two states that were shown differ."""
        if key not in self.states[index].objects or not self.shows(index, key):
            return {}
        earlier = [
            number for number in self.life(index, key) if number < index and self.shows(number, key)
        ]
        if not earlier:
            return {}
        before, after = (self.states[each].objects[key] for each in (earlier[0], index))
        found = {}
        for name, kind in changed_fields(key, before, after, ()):
            path = name.split(".")
            if path[-1] in ("spec", "resourceClaims"):
                one, other = (pruned({"x": at(tree, *path)}) for tree in (before, after))
                kind = "broken" if clash(one, other) else "unsure"
            found["immutable-field-unchanged", key, name, index] = (kind, {key})
        return found | self.ended_otherwise(index, key, earlier[0])

    def ended_otherwise(self, index, key, last):
        """A deletion that was taken back or moved, or a finalizer that came after its request.

        A gap of more than one object may be the restore of a backup.
        """
        begin, end = self.states[last].revision, self.states[index].revision
        for event in self.events:
            is_gap = event.type is EventType.GAP_OBSERVED and event.key != CLOCKS
            if is_gap and not event.key.name and begin < event.revision < end:
                return {}
        before, after = (self.states[each].objects[key] for each in (last, index))
        if uid_of(before) != uid_of(after):
            return {}
        path = "metadata", "deletionTimestamp"
        if answered := self.answered_anew(index, key, last):
            return answered
        one, other = text(before, *path), text(after, *path)
        is_moved = one > other or other == "" if key.resource != "pods" else other == ""
        is_moved |= other > one
        added = set(texts(after, "metadata", "finalizers"))
        added -= {*texts(before, "metadata", "finalizers"), "foregroundDeletion", "orphan"}
        if one and is_moved:
            field = "metadata.deletionTimestamp"
        elif one and added:
            field = "metadata.finalizers"
        else:
            return {}
        return {("immutable-field-unchanged", key, field, index): ("broken", {key})}

    def eviction(self, index, key, pod, losses, broken):
        claims = {type(key)(GROUP, "resourceclaims", key.namespace, n) for n in names_of(pod)}
        trees = [self.states[index].objects.get(claim) for claim in claims]
        held = [tree for tree in trees if tree is not None and is_allocated(tree)]
        if any(self.evicts(index, result) for tree in held for result in results_of(tree)):
            return
        seen = {each.resource for state in self.states[: index + 1] for each, _ in state.touched}
        is_sure = (
            len(held) == len(claims)
            and "collapsed" not in losses
            and not self.lacking & {"resourceclaims", "resourceslices", "devicetaintrules"}
            and "resourceslices" in seen
            and "devicetaintrules"
            not in {key.resource for key in self.states[index].lossy}
            | {resource for resource, _ in self.states[index].gaps}
        )
        kind = "broken" if is_sure else "unsure"
        broken["eviction-has-taint", key, index] = (kind, {key, *claims})

    def evicts(self, index, result):
        """A taint that evicts by now, or one that was taken away a moment ago."""
        now = self.states[index].time
        device = device_of(result)
        present = self.taint_sources(index, device)
        for taint in present.values():
            seconds = tolerated_seconds(result, taint)
            added = instant(text(taint, "timeAdded"))
            if seconds is not None and (added is None or added + seconds * SECOND <= now + SECOND):
                return True
        for number in range(index - 1, -1, -1):
            if now - self.states[number + 1].time > IN_FLIGHT:
                return False
            later = self.taint_sources(number + 1, device)
            for source, taint in self.taint_sources(number, device).items():
                if source not in later and tolerated_seconds(result, taint) is not None:
                    return True
        return False

    def taint_sources(self, number, device):
        """Taints of a device that may evict, by what they come from."""
        world = self.worlds[number]
        found = {}
        published = world.device(device)
        for taint in items(published, "taints") if published is not None else []:
            triple = tuple(text(taint, name) for name in ("key", "value", "effect"))
            found.setdefault(("slice", triple), taint)
        for key, rule in world.of("devicetaintrules"):
            if selects(rule, device):
                spec = msgspec.json.encode(at(rule, "spec"), order="sorted")
                found["rule", key, spec] = fields(rule, "spec", "taint")
        return {
            source: taint for source, taint in found.items() if text(taint, "effect") == "NoExecute"
        }

    def exchanged(self, number, key, claim):
        """Allocations that were changed in place, with the same devices and nodes as before."""
        broken = {}
        before = self.states[number].objects.get(key)
        for index in range(number, 0, -1):
            tree, before = before, self.states[index - 1].objects.get(key)
            if tree is before:
                continue
            if before is None or uid_of(before) != uid_of(claim):
                break
            if chosen(tree) != chosen(claim) or chosen(before) != chosen(claim):
                break
            allocations = [at(each, "status", "allocation") for each in (before, tree)]
            if pruned(allocations[0]) == pruned(allocations[1]):
                continue
            if not self.is_change(index, key):
                broken |= self.copies(index, key)
            else:
                kind = "unsure" if key in self.states[index].collapsed else "broken"
                broken["allocation-unchanged", key, index] = (kind, {key})
        return broken

    @remembered
    def copies(self, index, key):
        """Results without the tolerations of their requests, of an allocation that was there."""
        claim = self.states[index].objects[key]
        requests = requests_of(claim)
        return {
            ("tolerations-copied", key, index, number): ("broken", {key})
            for number, result in enumerate(results_of(claim))
            if text(result, "request") in requests
            if tolerations_of(result) != requests[text(result, "request")][3]
        }

    def is_steady(self, index, key):
        """Whether no device was published since the write of the claim before that one."""
        for number in range(index, -1, -1):
            for each, _ in reversed(self.states[number].touched):
                if each == key and number < index:
                    return True
                if each.resource in ("resourceslices", "resourceslicepatches"):
                    return False
        return True

    def protection(self, number, key):
        """A finalizer that the allocation had is missed late, one that it never had at once."""
        claim = self.states[number].objects[key]
        for index in range(number, -1, -1):
            tree = self.states[index].objects.get(key)
            if tree is None or uid_of(tree) != uid_of(claim) or chosen(tree) != chosen(claim):
                return "broken"
            if FINALIZER in texts(tree, "metadata", "finalizers"):
                return "late"
        return "broken"

    def pod(self, number, key, pod):
        broken = {}
        node = text(pod, "spec", "nodeName")
        if not node or text(pod, "status", "phase") in ("Succeeded", "Failed"):
            return broken
        made = {
            text(entry, "name"): text(entry, "resourceClaimName")
            for entry in items(pod, "status", "resourceClaimStatuses")
        }
        names = {
            text(entry, "resourceClaimName") or made.get(text(entry, "name"), "")
            for entry in items(pod, "spec", "resourceClaims")
        }
        names.add(text(pod, "status", "extendedResourceClaimStatus", "resourceClaimName"))
        creation = self.states[number].made[key]
        came_bound = (
            creation.stamp.verb != "baseline"
            and text(msgspec.json.decode(creation.body), "spec", "nodeName") != ""
        )
        for entry in items(pod, "spec", "resourceClaims"):
            is_templated = (
                text(entry, "resourceClaimTemplateName") and text(entry, "name") not in made
            )
            if is_templated and creation.stamp.origin is None:
                kind = "outside" if came_bound else "broken"
                broken["bound-pod-claims-made", key, text(entry, "name")] = (kind, {key})
        for name in names - {""}:
            claim_key = type(key)(GROUP, "resourceclaims", key.namespace, name)
            claim = self.states[number].objects.get(claim_key)
            users = [text(each, "uid") for each in items(claim, "status", "reservedFor")]
            if claim is None or not is_allocated(claim) or uid_of(pod) not in users:
                kind = "outside" if came_bound else "broken"
                if claim is None and "resourceclaims" in self.lacking:
                    kind = "unsure"
                broken["bound-pod-has-claims", key, claim_key] = (kind, {key, claim_key})
            if claim is not None and is_allocated(claim):
                fit = self.fits(number, key, claim_key)
                if fit != "fits":
                    node_key = type(key)("", "nodes", "", node)
                    kind = "outside" if came_bound else "broken"
                    kind = "unsure" if fit == "unknown" else kind
                    objects = {key, claim_key, node_key}
                    broken["pod-on-allocated-node", key, claim_key] = (kind, objects)
        return broken

    def fits(self, number, pod_key, claim_key):
        """As it was when the pod was on the node and the claim allocated for the first time."""

        def pair(index):
            objects = self.states[index].objects
            pod, claim = objects.get(pod_key), objects.get(claim_key)
            if pod is None or claim is None or not text(pod, "spec", "nodeName"):
                return None
            if not is_allocated(claim) or text(pod, "status", "phase") in ("Succeeded", "Failed"):
                return None
            if claim_key.name not in names_of(pod):
                return None
            terms = at(claim, "status", "allocation", "nodeSelector")
            return uid_of(pod), text(pod, "spec", "nodeName"), uid_of(claim), terms

        first = self.first_together(number, pod_key, claim_key, pair)
        _, node, _, selector = pair(number)
        if not isinstance(selector, dict):
            return "fits"
        tree = self.states[first].objects.get(type(pod_key)("", "nodes", "", node))
        labels = fields(tree, "metadata", "labels")
        is_listed = any(event.stamp.verb == "baseline" for _, event in self.states[first].touched)
        answers = [
            term_matches(term, node, labels, tree is not None)
            for term in items(selector, "nodeSelectorTerms")
        ]
        if True in answers:
            return "fits"
        return "unknown" if None in answers or (is_listed and uses_labels(selector)) else "no"

    def first_together(self, number, pod_key, claim_key, pair):
        place = "together", number, pod_key, claim_key
        if place not in self.memory:
            first = number
            if number and pair(number - 1) == pair(number):
                first = self.first_together(number - 1, pod_key, claim_key, pair)
            self.memory[place] = first
        return self.memory[place]

    def allocation(self, number, key, claim):
        """What was wrong with the allocation when it was written."""
        return self.placed(self.first_allocated(number, key), key) if is_allocated(claim) else {}

    @remembered
    def first_allocated(self, number, key):
        """The state since which the claim has its allocation."""
        claim = self.states[number].objects[key]
        before = self.states[number - 1].objects.get(key) if number else None
        if before is None or uid_of(before) != uid_of(claim):
            return number
        is_as_before = before is claim or chosen(before) == chosen(claim)
        return self.first_allocated(number - 1, key) if is_as_before else number

    @remembered
    def placed(self, first, key):
        state, world = self.states[first], self.worlds[first]
        before = self.states[first - 1].objects.get(key) if first else None
        tree = state.objects[key]
        broken = {}

        def breach(rule, kind, *place, objects=()):
            broken[rule, key, first, *place] = (kind, {key, *objects})

        written = [event for each, event in state.touched if each == key]
        if self.is_found(first, key):
            # When it was allocated is not known, but its requests were the same then.
            if written and requests_of(tree):
                self.judge_requests(tree, requests_of(tree), breach)
                broken |= self.copies(first, key)
            return broken
        if not written:
            return {}
        is_dated = self.is_change(first, key)
        if chosen(before) is not None:
            is_seen = is_dated and key not in state.collapsed
            breach("allocation-unchanged", "broken" if is_seen else "unsure")
        by_devices = "broken" if is_dated or self.is_steady(first, key) else "unsure"
        requests = requests_of(tree)
        self.judge_requests(tree, requests, breach)
        devices = {device_of(each) for each in results_of(tree)}
        worlds = list(self.worlds_of_choice(first, key, devices)) if is_dated else []
        self.judge_constraints(world, tree, breach, by_devices, worlds)
        for index, result in enumerate(results_of(tree)):
            self.judge_result(first, key, result, requests, index, breach)
        return broken

    def judge_requests(self, tree, requests, breach):
        counted = defaultdict(int)
        subs = defaultdict(set)
        for result in results_of(tree):
            name = text(result, "request")
            counted[name] += 1
            subs[name.partition("/")[0]].add(name)
        for main in sorted({name.partition("/")[0] for name in requests} | set(subs)):
            wanted = [name for name in requests if name.partition("/")[0] == main]
            if not wanted or len(subs[main]) != 1 or not subs[main] <= set(wanted):
                breach("request-satisfied", "broken", main)
                continue
            (name,) = subs[main]
            mode, count, is_admin, _ = requests[name]
            given = [result for result in results_of(tree) if text(result, "request") == name]
            is_short = mode in ("", "ExactCount") and counted[name] != (count or 1)
            if is_short or any((at(each, "adminAccess") is True) != is_admin for each in given):
                breach("request-satisfied", "broken", main)

    def judge_constraints(self, world, tree, breach, by_devices, earlier):
        for index, constraint in enumerate(items(tree, "spec", "devices", "constraints")):
            holds, is_doubtful = self.holds(world, tree, constraint)
            if not holds and any(
                one or other
                for one, other in (self.holds(each, tree, constraint) for each in earlier)
            ):
                is_doubtful = True
            if not holds:
                breach("constraint-holds", "unsure" if is_doubtful else by_devices, index)

    def holds(self, world, tree, constraint):
        """Whether a constraint holds, and whether that is doubtful."""
        listed = texts(constraint, "requests")
        under = [
            result
            for result in results_of(tree)
            if not listed
            or text(result, "request") in listed
            or text(result, "request").partition("/")[0] in listed
        ]
        match, distinct = (
            text(constraint, "matchAttribute"),
            text(constraint, "distinctAttribute"),
        )
        name = match or distinct
        if not name or not under:
            return True, False
        values, is_doubtful = [], False
        for result in under:
            device = device_of(result)
            published = world.device(device)
            domain, _, short = name.partition("/")
            attributes = fields(published, "attributes")
            spelt = name if name in attributes or domain != device[0] else short
            value, doubtful = world.patched(device, "attributes", spelt)
            is_doubtful |= doubtful or published is None
            values.append(None if published is None else values_of(value))
        if match:
            known = [value for value in values if value is not None]
            holds = (
                len(known) == len(values)
                and len({kind for kind, _ in known}) == 1
                and bool(set.intersection(*(found for _, found in known)))
            )
        else:
            names = [text(result, "request").partition("/")[0] for result in under]
            holds = are_distinct(names, values, by_last=world.switches.distinct_by_last)
        return holds, is_doubtful

    def judge_result(self, number, key, result, requests, index, breach):
        state, world = self.states[number], self.worlds[number]
        device = device_of(result)
        published = world.device(device)
        if not world.is_published(device):
            is_dated = self.is_change(number, key)
            kind = self.absence(number, key, device, is_dated)
            breach("allocated-device-existed", kind, index)
        if (
            text(result, "request") in requests
            and tolerations_of(result) != requests[text(result, "request")][3]
        ):
            breach("tolerations-copied", "broken", index)
        if published is None:
            return
        if text(result, "shareID") and at(published, "allowMultipleAllocations") is not True:
            is_sure = self.is_change(number, key) or self.is_steady(number, key)
            devices = {device_of(each) for each in results_of(state.objects[key])}
            for each in self.worlds_of_choice(number, key, devices):
                was_shared = at(each.device(device), "allowMultipleAllocations") is True
                is_sure &= not (was_shared and self.is_change(number, key))
            breach("share-of-shared-device", "broken" if is_sure else "unsure", index)
        if at(result, "adminAccess") is True or not world.switches.taints:
            return
        worst, is_dated = None, self.is_change(number, key)
        for taint, source in taints_of(world, device, published, world.switches.rules):
            if taint[2] not in ("NoSchedule", "NoExecute"):
                continue
            if any(tolerates(each, taint) for each in items(result, "tolerations")):
                continue
            since = self.since(number, device, taint, source)
            made = state.made[key].stamp.time
            if source is not None and world.switches.rules_unseen:
                kind = "known"
            elif (
                since is None
                or made >= since
                or (self.is_change(number, key) and since < self.chosen_from(number, key))
            ):
                kind = "broken"
            else:
                kind = "unsure"
            if worst is None or (kind == "broken" and worst[0] != "broken"):
                worst = kind, source
        if worst is not None:
            kind = worst[0]
            breach("placement-respects-taints", kind, index, objects=[worst[1]] if worst[1] else [])

    def chosen_from(self, number, key):
        """The earliest instant at which the allocation may have been chosen."""
        claim = self.states[number].objects[key]
        pods = {text(each, "uid") for each in items(fields(claim, "status"), "reservedFor")}
        return delays.decided_from(self.events, self.last_write(number, key), pods)

    @remembered
    def decided_from(self, number, key):
        """The earliest instant at which the write of a claim may have been decided."""
        return delays.decided_from(self.events, self.last_write(number, key))

    def last_write(self, number, key):
        """The last of the events that made a state that is of the object."""
        return [event for each, event in self.states[number].touched if each == key][-1]

    def absence(self, number, key, device, is_dated):
        """A device that was never published, or that went away a moment or long before.

        An allocation that is not dated may have been written before it went."""
        ever = any(
            key.resource == "resourceslices"
            for state in self.states[: number + 1]
            for key, _ in state.touched
        )
        if not ever:
            return "unsure"
        for index in range(number, 0, -1):
            if self.worlds[index - 1].is_published(device):
                gone = self.states[index].time
                is_late = is_dated and gone < self.chosen_from(number, key)
                return "broken" if is_late else "unsure"
        return "broken"

    def since(self, number, device, taint, source):
        """The instant from which on the taint was there; None when it always was."""
        first = number

        def has(index):
            world = self.worlds[index]
            published = world.device(device)
            if source is None:
                return published is not None and taint in own_taints(published)
            tree = self.states[index].objects.get(source)
            now = self.states[number].objects[source]
            return tree is not None and tree.get("spec") == now.get("spec")

        while first and has(first - 1):
            first -= 1
        state = self.states[first]
        if not any(event.stamp.verb == "baseline" for _, event in state.touched):
            return state.time
        # A server dates a rule with the second in which it was made.
        rule = {} if source is None else state.objects[source]
        made = instant(text(rule, "metadata", "creationTimestamp"))
        return None if made is None else min(made + SECOND, state.time)


def is_end(event):
    """Whether an event ends the object that was there: it is deleted, or there is a new one."""
    return event.type in (EventType.OBJECT_DELETED, EventType.OBJECT_CREATED)


def owns(claim, uid):
    return any(text(each, "uid") == uid for each in items(claim, "metadata", "ownerReferences"))


def losses_of(event):
    return () if event.stamp.origin is None else event.stamp.origin.losses


def pruned(value):
    """The value without what a writer may leave out."""
    if isinstance(value, dict):
        parts = {name: pruned(part) for name, part in value.items()}
        return {name: part for name, part in parts.items() if part not in (None, {}, [])}
    return [pruned(each) for each in value] if isinstance(value, list) else value


def clash(one, other, in_list=False):
    """Whether no server of another release explains the difference: one that knows fewer fields of
    the items of a list, or gives more of them their defaults."""
    match one, other:
        case dict(), dict():
            names = set(one) | set(other)
            both = set(one) & set(other)
            return (names != both and not in_list) or any(
                clash(one[name], other[name], in_list) for name in both
            )
        case list(), list():
            if len(one) != len(other):
                return True
            return any(clash(*pair, True) for pair in zip(one, other, strict=True))
    return one != other


def changed_fields(key, before, after, losses):
    """The names of fields that nobody may change and somebody did, and how sure that is."""

    def differs(*path):
        one, other = (pruned({"x": at(tree, *path)}) for tree in (before, after))
        return one != other

    if key.resource in ("resourceclaims", "resourceclaimtemplates") and differs("spec"):
        yield "spec", "broken"
    if key.resource == "resourceslices":
        for path in (("driver",), ("pool", "name"), ("nodeName",)):
            if text(before, "spec", *path) != text(after, "spec", *path):
                yield ".".join(("spec", *path)), "broken"
    if key.resource == "pods":
        node, other = text(before, "spec", "nodeName"), text(after, "spec", "nodeName")
        if node and node != other:
            is_guess = "no_uid" in losses or (not other and "no_rv" in losses)
            yield "spec.nodeName", "unsure" if is_guess else "broken"
        if differs("spec", "resourceClaims"):
            yield "spec.resourceClaims", "broken"
    if key.resource in ("pods", "resourceclaims"):
        path = "metadata", "deletionTimestamp"
        if text(before, *path) and not text(after, *path):
            is_guess = key.resource == "pods" and "no_rv" in losses
            yield ".".join(path), "unsure" if is_guess else "broken"


def is_taken(before, after, losses):
    """Whether a claim that is being deleted was allocated or reserved anew."""

    def consumers(claim):
        names = ("apiGroup", "resource", "name", "uid")
        return {
            tuple(text(each, name) for name in names)
            for each in items(claim, "status", "reservedFor")
        }

    path = "metadata", "deletionTimestamp"
    if not text(after, *path) or ("collapsed" in losses and not text(before, *path)):
        return False
    is_allocated_now = is_allocated(after) and not is_allocated(before)
    return is_allocated_now or bool(consumers(after) - consumers(before))


def is_marked(pod):
    return any(
        text(each, "type") == "DisruptionTarget"
        and text(each, "status") == "True"
        and text(each, "reason") == MARK
        for each in items(pod, "status", "conditions")
    )


def selects(rule, device):
    selector = at(rule, "spec", "deviceSelector")
    if not isinstance(selector, dict):
        return False
    names = [at(selector, part) for part in ("driver", "pool", "device")]
    return all(want is None or want == has for want, has in zip(names, device, strict=True))


def tolerated_seconds(result, taint):
    """0 for a taint that is not tolerated, None for one that is tolerated for ever."""
    bounds = []
    for each in items(result, "tolerations"):
        operator, key = text(each, "operator"), text(each, "key")
        is_value = operator in ("", "Equal") and text(each, "value") == text(taint, "value")
        if text(each, "effect") != "NoExecute" or key not in ("", text(taint, "key")):
            continue
        if operator != "Exists" and not is_value:
            continue
        if at(each, "tolerationSeconds") is None:
            return None
        bounds.append(max(0, whole(each, "tolerationSeconds")))
    return min(bounds, default=0)


def instant(written):
    """Microseconds of a time in whole seconds; None for what is none."""
    try:
        return calendar.timegm(time.strptime(written, "%Y-%m-%dT%H:%M:%SZ")) * SECOND
    except ValueError:
        return None


def is_ready(claim):
    """Whether each condition that a device needs is reported as true, and no failure is."""
    for each in results_of(claim):
        needed = texts(each, "bindingConditions")
        reports = [
            items(report, "conditions")
            for report in items(claim, "status", "devices")
            if all(text(report, name) == text(each, name) for name in ("driver", "pool", "device"))
        ]
        said = {text(it, "type"): text(it, "status") for it in [*reports, []][0]}
        failures = texts(each, "bindingFailureConditions")
        if needed and any(said.get(name) != "True" for name in needed):
            return False
        if needed and any(said.get(name) == "True" for name in failures):
            return False
    return True


def names_of(pod):
    made = {
        text(entry, "name"): text(entry, "resourceClaimName")
        for entry in items(pod, "status", "resourceClaimStatuses")
    }
    names = {
        text(entry, "resourceClaimName") or made.get(text(entry, "name"), "")
        for entry in items(pod, "spec", "resourceClaims")
    }
    names.add(text(pod, "status", "extendedResourceClaimStatus", "resourceClaimName"))
    return names - {""}


def requests_of(claim):
    """Mode, count, admin access and tolerations by `request` or `request/sub`."""
    requests = {}
    for request in items(claim, "spec", "devices", "requests"):
        name = text(request, "name")
        exactly = at(request, "exactly")
        places = [(name, exactly)] if isinstance(exactly, dict) else []
        places += [(f"{name}/{text(sub, 'name')}", sub) for sub in items(request, "firstAvailable")]
        for place, tree in places:
            requests[place] = (
                text(tree, "allocationMode"),
                whole(tree, "count"),
                at(tree, "adminAccess") is True,
                tolerations_of(tree),
            )
    return requests


def tolerations_of(tree):
    return [
        (
            *(text(each, name) for name in ("key", "operator", "value", "effect")),
            at(each, "tolerationSeconds"),
        )
        for each in items(tree, "tolerations")
    ]


def own_taints(device):
    return [
        tuple(text(taint, name) for name in ("key", "value", "effect"))
        for taint in items(device, "taints")
    ]


def taints_of(world, device, published, with_rules):
    found = [(taint, None) for taint in own_taints(published)]
    for key, rule in world.of("devicetaintrules") if with_rules else ():
        selector = at(rule, "spec", "deviceSelector")
        if not isinstance(selector, dict):
            continue
        names = [at(selector, part) for part in ("driver", "pool", "device")]
        if all(want is None or want == has for want, has in zip(names, device, strict=True)):
            taint = fields(rule, "spec", "taint")
            found.append((tuple(text(taint, name) for name in ("key", "value", "effect")), key))
    return found


def tolerates(toleration, taint):
    key, operator, value, effect = (
        text(toleration, name) for name in ("key", "operator", "value", "effect")
    )
    if effect not in ("", taint[2]) or key not in ("", taint[0]):
        return False
    return operator == "Exists" or (operator in ("", "Equal") and value == taint[1])


def values_of(value):
    if not isinstance(value, dict):
        return None
    for kind in ("int", "bool", "string", "version"):
        listed = value.get(f"{kind}s")
        if isinstance(listed, list) and listed:
            return kind, {msgspec.json.encode(each) for each in listed}
    for kind in ("int", "bool", "string", "version"):
        if value.get(kind) is not None:
            return kind, {msgspec.json.encode(value[kind])}
    return None


def are_distinct(names, values, *, by_last):
    stored = []
    for name, value in zip(names, values, strict=True):
        if stored and value is None:
            return False
        for _, other in stored:
            if other is not None and value[0] == other[0] and value[1] & other[1]:
                return False
        if by_last:
            stored = [(each, other) for each, other in stored if each != name]
        stored.append((name, value))
    return True


def uses_labels(selector):
    return any(items(term, "matchExpressions") for term in items(selector, "nodeSelectorTerms"))


def term_matches(term, node, labels, is_known):
    """True, False, or None when the node's labels are not known."""
    expressions, by_field = items(term, "matchExpressions"), items(term, "matchFields")
    if not expressions and not by_field:
        return False
    for each in by_field:
        if text(each, "key") != "metadata.name" or not holds(each, {"metadata.name": node}):
            return False
    if expressions and not is_known:
        return None
    return all(holds(each, labels) for each in expressions)


def holds(requirement, labels):
    key, operator = text(requirement, "key"), text(requirement, "operator")
    values = texts(requirement, "values")
    match operator:
        case "In":
            return key in labels and labels[key] in values
        case "NotIn":
            return key not in labels or labels[key] not in values
        case "Exists":
            return key in labels
        case "DoesNotExist":
            return key not in labels
        case "Gt" | "Lt":
            try:
                mine, limit = int(labels[key]), int(values[0])
            except (KeyError, IndexError, ValueError):
                return False
            return mine > limit if operator == "Gt" else mine < limit
    return False
