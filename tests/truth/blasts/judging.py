"""Asks `blast` of a drawn change, makes the change in a twin, and compares what happened."""

from collections import Counter
from collections.abc import Iterator

from app.analysis.blast import compare
from app.analysis.blast import world as hypothetical
from app.analysis.blast.radius import BlastRadius
from app.domain.log import HistoryInfo
from tests.truth.blasts import changes, living
from tests.truth.blasts.living import FINISHED, Life
from tests.truth.blasts.worlds import UsedWorld
from tests.truth.facts import (
    Device,
    Facts,
    Published,
    amount,
    claims_of,
    device_of,
    reserved_for,
    results,
)
from tests.truth.raw import State
from tests.truth.waiting.model import SELECTORS

EVICTING = "DeletionByDeviceTaintManager"
COLLECTING = "DeletionByPodGC"
DRAINING = "EvictionByEvictionAPI"


def asked(world: UsedWorld, change: compare.Change) -> BlastRadius:
    """The answer about one change, now."""
    line = world.cluster.line
    info = HistoryInfo(id=1, name="default")
    frozen = hypothetical.freeze(line.views, info, line.rules, line.now)
    return compare.blast(frozen, [change])


def world_differences(seed: int) -> list[str]:
    """The differences between the answer and what happened in one world."""
    world = UsedWorld(seed)
    drawn = changes.draw(world, seed)
    answer = asked(world, drawn.proposed)
    deleted = drawn.name if drawn.kind == "pod deleted" else ""
    life = living.live(world.cluster, drawn.act, deleted)
    twin = living.live(UsedWorld(seed).cluster, lambda cluster: None)
    return [f"{drawn.kind} {drawn.name}: {one}" for one in differences(answer, life, twin, drawn)]


def differences(answer: BlastRadius, life: Life, twin: Life, drawn: changes.Drawn) -> Iterator[str]:
    """One line for each statement that did not come true."""
    yield from _pods(answer, life, twin, drawn)
    yield from _waiting(answer, life, twin)
    yield from _claims(answer, life, drawn)
    yield from _classes(answer, life)


def _pods(answer: BlastRadius, life: Life, twin: Life, drawn: changes.Drawn) -> Iterator[str]:
    said = {pod.name: pod for pod in answer.pods}
    for key, tree in life.before.items():
        if key[0] != "pods":
            continue
        name = key[2]
        pod = said.get(name)
        fate = pod.fate.value if pod else ""
        counted = _fate(name, tree, life, twin, drawn)
        if fate not in counted:
            yield f"pod {name} is {fate!r}, lived {counted}: {life.ended.get(name)}"
            continue
        if pod and fate in ("now", "later", "already"):
            due = living.seconds_between(answer.time, pod.due)
            if max(0.0, due) != life.ended[name][0]:
                yield f"pod {name} is evicted after {due} s, lived {life.ended[name]}"


def _fate(name: str, tree: dict, life: Life, twin: Life, drawn: changes.Drawn) -> tuple[str, ...]:
    """The fates of a pod that may be said, by what happened to it and to its twin."""
    is_bound = bool(tree["spec"].get("nodeName"))
    is_over = tree["status"].get("phase") in FINISHED
    is_ending = "deletionTimestamp" in tree["metadata"]
    end, other = life.ended.get(name), twin.ended.get(name)
    if drawn.kind == "pod deleted" and drawn.name == name:
        return ("deleted",) if name_is_known(name, life) else ("deleted", "")
    if drawn.kind == "node deleted" and tree["spec"].get("nodeName") == drawn.name:
        return ("orphaned",) if not is_over else ("",)
    if is_ending:
        return ("terminating", "")
    if end is None:
        if other is not None and is_bound:
            return ("spared",)
        if drawn.kind == "drain" and tree["spec"].get("nodeName") == drawn.name:
            return ("protected",)
        is_hit = is_bound and not is_over and _is_newly_tainted(tree, life)
        return ("tolerated",) if is_hit else ("",)
    if not is_bound:
        return ("",)  # it got a node by the change, and is among the waiting
    seconds, reason = end
    if drawn.kind == "drain" and reason != EVICTING and seconds == 0:
        return ("drained",)
    if reason == EVICTING:
        if other == end:
            is_kept = drawn.kind == "drain" and tree["spec"].get("nodeName") == drawn.name
            return ("protected",) if is_kept else ("already", "")
        return ("now",) if seconds == 0 else ("later",)
    return (f"not known: {end}",)


def _is_newly_tainted(pod: dict, life: Life) -> bool:
    """Whether a device that the pod uses has an evicting taint that it did not have before."""
    left, right = Facts(life.before), Facts(life.after)
    uid = pod["metadata"]["uid"]
    for name in claims_of(pod):
        claim = left.claims.get(f"default/{name}") or {}
        users = (claim.get("status") or {}).get("reservedFor") or ()
        for device in map(device_of, results(claim)) if uid in {u["uid"] for u in users} else ():
            if device in right.devices and _evicting(right, device) - _evicting(left, device):
                return True
    return False


def _evicting(facts: Facts, device: Device) -> set[tuple[str, str]]:
    """The evicting taints of a device: the rule that sets it, and its key."""
    taints = facts.taints(device) if device in facts.devices else ()
    return {(rule, one["key"]) for rule, one in taints if one["effect"] == "NoExecute"}


def name_is_known(name: str, life: Life) -> bool:
    """Whether the pod is still there after the change, so that it can be listed."""
    return ("pods", "default", name) in life.after


def _waiting(answer: BlastRadius, life: Life, twin: Life) -> Iterator[str]:
    """The prospects of waiting pods, but for pods that only change places.

    Pods of equal priority are tried in the order in which they were last tried, which no object
    tells: the answer takes that of their last writes. Where one pod lacks a place that another one
    got, the order decides.
    """
    said = {one.name: one for one in answer.waiting}
    lacking, more, other = [], [], []
    for key, tree in life.before.items():
        if key[0] != "pods" or tree["spec"].get("nodeName"):
            continue
        name = key[2]
        one = said.get(name)
        prospect = one.prospect.value if one else ""
        counted = _prospect(name, life, twin)
        node = life.at_once.get(name) or life.later.get(name, "")
        if prospect in counted:
            if one and prospect == "fits" and one.node != node:
                other.append(f"waiting {name} is placed on {one.node}, lived {node}")
            continue
        text = f"waiting {name} is {prospect!r}, lived {counted} on {node!r}"
        places = lacking if not prospect else more if counted == ("",) else other
        places.append(text)
    if not (lacking and more):
        yield from (*lacking, *more, *other)


def _prospect(name: str, life: Life, twin: Life) -> tuple[str, ...]:
    """The prospects of a waiting pod that may be said."""
    if name in twin.at_once:
        return ("",) if name in life.at_once else ("kept",)
    end = life.ended.get(name)
    since = life.since.get(name)
    if end and since is not None and end == (since, EVICTING):
        return ("evicted", "") if name in twin.later else ("evicted",)
    if name in life.at_once:
        return ("fits",)
    if name in life.later:
        # Not by the change, where it waited for a pod that ends without the change, too.
        is_by_others = since in {second for second, _ in twin.ended.values()}
        return ("freed", "") if is_by_others else ("freed",)
    return ("",)


def _claims(answer: BlastRadius, life: Life, drawn: changes.Drawn) -> Iterator[str]:
    """Claims that the change deletes, and those of which all pods end by it."""
    if drawn.kind == "resourceclaim deleted":
        yield from _deleted_claim(answer, life, drawn.name)
    doomed = {
        key[2]
        for key, tree in life.before.items()
        if key[0] == "pods" and _ends_by_the_change(key[2], tree, life, drawn)
    }
    counted = {}
    for key, tree in life.before.items():
        reserved = reserved_for(tree) if key[0] == "resourceclaims" else []
        if reserved and set(reserved) <= doomed:
            counted[key[2]] = (sorted(reserved), ["/".join(device_of(r)) for r in results(tree)])
    said = {one.name: (sorted(one.pods), [*one.devices]) for one in answer.claim_releases}
    if said != counted:
        yield f"claims {said} are released, counted {counted}"
    for name in counted:
        last = life.last.get(("resourceclaims", "default", name))
        if last and set(reserved_for(last)) & doomed:
            yield f"claim {name} is still reserved for {reserved_for(last)}"


def _ends_by_the_change(name: str, tree: dict, life: Life, drawn: changes.Drawn) -> bool:
    is_there = tree["spec"].get("nodeName") == drawn.name
    if drawn.kind == "node deleted":
        return is_there and tree["status"].get("phase") not in FINISHED
    if drawn.kind == "drain":
        end = life.ended.get(name)
        return is_there and end is not None and end[0] == 0 and end[1] != EVICTING
    return drawn.kind == "pod deleted" and drawn.name == name


def _deleted_claim(answer: BlastRadius, life: Life, name: str) -> Iterator[str]:
    (said,) = answer.claim_deletions
    place = ("resourceclaims", "default", name)
    before, after = life.before[place], life.after.get(place)
    is_held = after is not None and after["metadata"]["uid"] == before["metadata"]["uid"]
    if said.is_held != is_held:
        yield f"claim {name} is held: {said.is_held}, lived {is_held}"
    reserved = reserved_for(before) if is_held else []
    if sorted(said.reserved_for) != sorted(reserved):
        yield f"claim {name} is reserved for {said.reserved_for}, lived {reserved}"
    blocked, remade = [], []
    for key, pod in life.before.items():
        is_user = key[0] == "pods" and name in claims_of(pod)
        if not is_user or key[2] in reserved or pod["status"].get("phase") in FINISHED:
            continue
        if "deletionTimestamp" in pod["metadata"]:
            continue
        now = life.after.get(key)
        names = claims_of(now) if now else set()
        there = [life.after.get(("resourceclaims", "default", one)) for one in names]
        usable = all(one and "deletionTimestamp" not in one["metadata"] for one in there)
        (remade if usable and names else blocked).append(key[2])
    if sorted(said.blocked) != sorted(blocked) or sorted(said.remade) != sorted(remade):
        yield (
            f"claim {name} blocks {said.blocked} and is made again for {said.remade}, "
            f"lived {blocked} and {remade}"
        )


def _classes(answer: BlastRadius, life: Life) -> Iterator[str]:
    """The devices of each class before, and with the change and no pod or claim ended yet."""
    kept = {key: one for key, one in life.before.items() if key[0] in ("pods", "resourceclaims")}
    moved = {
        key: one for key, one in life.after.items() if key[0] not in ("pods", "resourceclaims")
    }
    left, right = _Devices(life.before), _Devices({**moved, **kept})
    if not (left.facts.is_known and right.facts.is_known):
        return
    said = {one.name: one for one in answer.classes}
    for name in sorted(said.keys() | left.classes | right.classes):
        old, new = left.counts(name), right.counts(name)
        one = said.get(name)
        if one is None:
            if old != new:
                yield f"class {name} is not listed, counted {old} and {new}"
            continue
        counts = tuple((c.devices, c.allocatable, c.free) for c in (one.before, one.after))
        if counts != (old, new):
            yield f"class {name} has {counts}, counted {(old, new)}"


class _Devices:
    """The devices of the classes of one state."""

    def __init__(self, state: State) -> None:
        self.facts = Facts(state)
        self.classes = {name for name, _ in self.facts.all("deviceclasses")}
        self.takers = [
            name
            for name, node in self.facts.all("nodes")
            if not node["spec"].get("unschedulable")
            and not any(
                one["key"].startswith("node.kubernetes.io/")
                for one in node["spec"].get("taints", ())
            )
        ]

    def counts(self, name: str) -> tuple[int, int, int]:
        """The selected devices, those without a blocking taint, and those that are free."""
        if name not in self.classes:
            return (0, 0, 0)
        chosen = [
            one
            for id, one in self.facts.devices.items()
            if self.facts.pools[id[:2]].is_usable and self._selects(name, one)
        ]
        open_ones = [one for one in chosen if not self.facts.is_tainted(one.id)]
        return (len(chosen), len(open_ones), sum(map(self._is_free, open_ones)))

    def _selects(self, name: str, device: Published) -> bool:
        tree = self.facts.state["deviceclasses", "", name]
        try:
            return all(
                SELECTORS[one["cel"]["expression"]](device)
                for one in tree["spec"].get("selectors") or ()
            )
        except LookupError:
            return False

    def _is_free(self, device: Published) -> bool:
        if not any(self.facts.for_node(device, node) for node in self.takers):
            return False
        if device.id not in self.facts.holders:
            return not self.facts.lacks(device)
        if not self.facts.is_shared(device.id):
            return False
        used: Counter = Counter()
        for claim in self.facts.claims.values():
            for one in results(claim):
                if device_of(one) == device.id:
                    for capacity, value in (one.get("consumedCapacity") or {}).items():
                        used[capacity] += amount(value)
        published = device.tree.get("capacity") or {}
        return all(amount(one["value"]) > used[name] for name, one in published.items())
