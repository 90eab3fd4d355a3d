"""A model of one node that states what two of its histories must be said to differ in, and why.

It knows nothing of the product: pods that want one device each get the first one that is free, in
the order of priority; a device is free if it is published, selected, not tainted, not held, and if
its counter suffices. From the courses of two worlds that differ in one change follow the classes
of each pod, and the chain of causes: whoever holds the first device that only one world has free
comes before the pod that lacks it, otherwise the change does.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field

CHANGE = "the change"


@dataclass(frozen=True)
class Step:
    """What happens in a step of its own: `pod`, `kill`, `cordon`, `taint`, `publish` or nothing."""

    verb: str = ""
    name: str = ""
    priority: int = 0


@dataclass(frozen=True)
class World:
    """A node: devices by name with their model, those published late, and what happens there.

    `selected` are the models that the class selects. `slots` is the counter of which each device
    consumes one; 0 for none. `pods_max` is the quota; 0 for none. `has_taints` is the gate.
    """

    steps: tuple[Step, ...]
    devices: tuple[tuple[str, str], ...]
    late: tuple[str, ...] = ()
    tainted: frozenset[str] = frozenset()
    selected: frozenset[str] = frozenset({"a", "b"})
    slots: int = 0
    pods_max: int = 0
    has_taints: bool = True


@dataclass
class Lived:
    """The course of a pod, by the numbers of steps; `seen` has each device at each of its turns."""

    priority: int
    placed: int | None = None
    device: str = ""
    evicted: int | None = None
    ended: int | None = None
    seen: dict[int, Mapping[str, str]] = field(default_factory=dict)

    @property
    def is_there(self) -> bool:
        return self.ended is None and self.evicted is None


FREE, EXCLUDED, SHORT = "", "excluded", "counter"


def lived(world: World) -> dict[str, Lived]:
    """The course of each pod in a world."""
    pods: dict[str, Lived] = {}
    tainted, published = set(world.tainted), {name for name, _ in world.devices}
    is_cordoned = False
    for number, step in enumerate(world.steps):
        there = [name for name, pod in pods.items() if pod.is_there]
        match step.verb:
            case "pod" if not world.pods_max or len(there) < world.pods_max:
                pods[step.name] = Lived(step.priority)
            case "kill" if step.name in there:
                pods[step.name].ended = number
            case "cordon":
                is_cordoned = True
            case "taint":
                tainted.add(step.name)
            case "publish":
                published.update(world.late)
            case _:
                pass
        for name in there if world.has_taints and step.verb == "taint" else ():
            if pods[name].device == step.name and pods[name].is_there:
                pods[name].evicted = number
        waiting = [pod for pod in pods.values() if pod.is_there and pod.placed is None]
        for pod in sorted(waiting, key=lambda each: -each.priority):
            state = _state(world, pods, published, tainted if world.has_taints else set())
            if is_cordoned:
                state = dict.fromkeys(state, EXCLUDED)
            pod.seen[number] = state
            free = [device for device, why in state.items() if why == FREE]
            if free:
                pod.placed, pod.device = number, free[0]
    return pods


def _state(
    world: World, pods: Mapping[str, Lived], published: set[str], tainted: set[str]
) -> dict[str, str]:
    """Why each device is not free, in order: its holder, or a word."""
    held = {pod.device: name for name, pod in pods.items() if pod.device and pod.is_there}
    models = {**dict(world.devices), **dict.fromkeys(world.late, "a")}
    state = {}
    for device, model in models.items():
        is_open = device in published and device not in tainted and model in world.selected
        is_short = bool(world.slots) and len(held) >= world.slots
        state[device] = held.get(device) or (
            EXCLUDED if not is_open else SHORT if is_short else FREE
        )
    return state


def classes(a: Lived | None, b: Lived | None) -> set[str]:
    """The classes of a pod, in the words of the page about comparisons."""
    if a is None or b is None:
        return {"only in B" if a is None else "only in A"}
    said: set[str] = set()
    if a.evicted is None and b.evicted is not None:
        said.add("evicted")
    if a.evicted is not None and b.evicted is None and b.placed is not None:
        said.add("spared")
    if (a.placed is None) != (b.placed is None):
        said.add("newly placed" if a.placed is None else "newly unschedulable")
    elif a.placed is not None and a.device != b.device:
        said.add("moved")
    instants = [(a.placed, b.placed)] if None not in (a.placed, b.placed) else []
    if a.evicted is not None and b.evicted is not None:
        instants.append((a.evicted, b.evicted))
    is_alike = (a.placed is None) == (b.placed is None)
    if is_alike and a.evicted is None and b.evicted is None:
        instants.append((a.ended, b.ended))
    for left, right in instants:
        if left != right:
            is_later = right is None or (left is not None and right > left)
            said.add("later" if is_later else "earlier")
    return said


def before(name: str, pods: Mapping[str, Mapping[str, Lived]], subject: str) -> set[str]:
    """The causes directly before what befalls a pod that differs: pods, or the change."""
    if name == subject or name not in pods["a"] or name not in pods["b"]:
        return {CHANGE}
    a, b = pods["a"][name], pods["b"][name]
    if (a.placed, a.device) == (b.placed, b.device):
        return {CHANGE}
    turn = min(each.placed for each in (a, b) if each.placed is not None)
    seen = {"a": a.seen[turn], "b": b.seen[turn]}
    positions: dict[str, int] = {}
    for state in sorted(seen.values(), key=len, reverse=True):
        for position, device in enumerate(state):
            positions.setdefault(device, position)
    for device in sorted(positions, key=lambda each: positions[each]):
        why = {side: seen[side].get(device, EXCLUDED) for side in seen}
        if (why["a"] == FREE) == (why["b"] == FREE):
            continue
        side = "b" if why["a"] == FREE else "a"
        lacking = why[side]
        if lacking == SHORT:
            # Who only here consumes the counter, or else less of it.
            users = {each: {*state.values()} & {*pods[each]} for each, state in seen.items()}
            return users[side] - users["a" if side == "b" else "b"] or {CHANGE}
        return {CHANGE} if lacking == EXCLUDED else {lacking}
    raise AssertionError(f"nothing tells the worlds apart for {name}")
