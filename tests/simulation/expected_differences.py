"""An independent judge of differences: the effect of known changes on a scripted cluster.

A script is a list of acts, one per epoch, each in one part of a cluster. A part is a node with its
own pool, DeviceClass and pods, so the parts do not affect each other. The judge plays a script
twice: unchanged, and with at most one generated change per part. It needs only a few lines of
bookkeeping and no scheduler: a pod gets the first usable device in order. It returns the outcome of
each pod, and the change that is the root of a difference.
"""

import random
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

PLAIN, TOLERANT, STEADFAST = "plain", "tolerant", "steadfast"
"""Kinds of pods: without tolerations, with one that has no effect (c2), with one for NoExecute."""

WHOLE_CLUSTER = -1
"""The part of changes that concern all."""

SETTINGS = "settings"


@dataclass(frozen=True)
class Act:
    """One act: the kind of act (see `Play._do`), its part, the name of its object, and a value.

    A planted act comes in the second half of its epoch.
    """

    epoch: int
    part: int
    what: str
    name: str
    value: str = ""
    is_planted: bool = False

    @property
    def time(self) -> float:
        """The time of the act, in epochs."""
        return self.epoch + self.is_planted / 2


@dataclass(frozen=True)
class Script:
    """The devices of each part with their model, and the acts in the order of epochs.

    `c2` is upstream's defect: a toleration without an effect does not prevent eviction.
    """

    devices: tuple[tuple[tuple[str, str], ...], ...]
    acts: tuple[Act, ...]
    c2: bool = True

    @property
    def epochs(self) -> int:
        return len(self.acts)


@dataclass(frozen=True)
class Planted:
    """A planted change in a part, and the name of its root."""

    part: int
    root: str
    what: str


@dataclass
class Fate:
    """The outcome of one pod: its device, and the times of its changes in epochs."""

    made: float | None = None
    placed: float | None = None
    device: str = ""
    evicted: float | None = None
    ended: float | None = None


def draw(random_: random.Random, *, parts: int, acts: int) -> Script:
    """Draws a script in which devices become scarce, are tainted, and are released."""
    devices = tuple(
        tuple((f"gpu-{n}", random_.choice("ab")) for n in range(random_.randint(2, 4)))
        for _ in range(parts)
    )
    made: list[Act] = []
    pods: list[list[str]] = [[] for _ in range(parts)]
    rules: list[list[str]] = [[] for _ in range(parts)]
    for epoch in range(acts):
        part = random_.randrange(parts)
        what = random_.choices(("arrive", "finish", "remove", "taint", "untaint"), (9, 5, 1, 2, 2))[
            0
        ]
        if what in ("finish", "remove") and pods[part]:
            name = pods[part].pop(random_.randrange(len(pods[part])))
            made.append(Act(epoch, part, what, name))
        elif what == "taint":
            name = f"rule-{part}-{epoch}"
            rules[part].append(name)
            effect = random_.choice(("NoExecute", "NoSchedule"))
            device = random_.choice(devices[part])[0]
            made.append(Act(epoch, part, what, name, f"{device}:{effect}"))
        elif what == "untaint" and rules[part]:
            name = rules[part].pop(random_.randrange(len(rules[part])))
            made.append(Act(epoch, part, what, name))
        else:
            name = f"pod-{part}-{epoch}"
            pods[part].append(name)
            kind = random_.choices((PLAIN, TOLERANT, STEADFAST), (6, 2, 1))[0]
            made.append(Act(epoch, part, "arrive", name, kind))
    return Script(devices=devices, acts=tuple(made))


def plant(random_: random.Random, script: Script) -> tuple[Script, list[Planted]]:
    """The script with at most one change in each part, or with `c2` switched for all parts."""
    if random_.random() < 0.1:
        turned = replace(script, c2=not script.c2)
        return turned, [Planted(WHOLE_CLUSTER, SETTINGS, "quirk c2 off")]
    planted: list[Planted] = []
    for part in range(len(script.devices)):
        if random_.random() < 0.8:
            script, change = _plant_in(random_, script, part)
            planted += change
    return script, planted


def _plant_in(random_: random.Random, script: Script, part: int) -> tuple[Script, list[Planted]]:
    epoch = random_.randrange(script.epochs // 2)
    mine = [act for act in script.acts if act.part == part]
    arrivals = [act for act in mine if act.what == "arrive"]
    finishes = [act for act in mine if act.what == "finish"]
    removals = [act for act in mine if act.what == "untaint"]
    device = random_.choice(script.devices[part])[0]
    slices = f"resourceslices.resource.k8s.io/n{part}-slice"
    extra: Act | None = None
    gone: Act | None = None
    what = random_.choice(
        ("lose", "taint", "select", "earlier", "republish", "cordon", "drop", "keep", "end")
    )
    match what:
        case "lose":
            extra, root = Act(epoch, part, "lose", device), slices
        case "republish":
            extra, root = Act(epoch, part, "republish", f"n{part}"), slices
        case "taint":
            effect = random_.choice(("NoExecute", "NoSchedule"))
            name = f"planted-{part}"
            extra = Act(epoch, part, "taint", name, f"{device}:{effect}")
            root = f"devicetaintrules.resource.k8s.io/{name}"
        case "select":
            extra = Act(epoch, part, "select", f"gpu-{part}")
            root = f"deviceclasses.resource.k8s.io/gpu-{part}"
        case "cordon":
            extra, root = Act(epoch, part, "cordon", f"n{part}"), f"nodes/n{part}"
        case "keep" if removals:
            gone = random_.choice(removals)
            root = f"devicetaintrules.resource.k8s.io/{gone.name}"
        case "drop" if arrivals:
            gone = random_.choice(arrivals)
            root = f"pods/default/{gone.name}"
        case "end" if finishes:
            gone = random_.choice(finishes)
            root = f"pods/default/{gone.name}"
            later = random_.randint(gone.epoch + 1, script.epochs + 5)
            extra = replace(gone, epoch=later)
        case "earlier" if arrivals and arrivals[-1].epoch > 0:
            gone = arrivals[-1]
            root = f"pods/default/{gone.name}"
            extra = replace(gone, epoch=random_.randrange(gone.epoch))
        case _:
            return script, []
    acts = [act for act in script.acts if act is not gone]
    if extra is not None:
        acts.append(replace(extra, is_planted=True))
    ordered = tuple(sorted(acts, key=lambda act: (act.epoch, act.is_planted, act.part)))
    return replace(script, acts=ordered), [Planted(part, root, what)]


@dataclass
class Play:
    """Plays a script and records the fate of each pod.

    Waiting pods are tried in the order of priority, which is the order of the numbers in their
    names.
    """

    script: Script
    fates: dict[str, Fate] = field(default_factory=dict)
    kinds: dict[str, str] = field(default_factory=dict)
    _waiting: list[list[str]] = field(default_factory=list)
    _holders: list[dict[str, str]] = field(default_factory=list)
    _gone: list[set[str]] = field(default_factory=list)
    _taints: list[dict[str, tuple[str, str]]] = field(default_factory=list)
    _selects: list[str] = field(default_factory=list)
    _closed: list[bool] = field(default_factory=list)

    def __post_init__(self) -> None:
        for _ in self.script.devices:
            self._waiting.append([])
            self._holders.append({})
            self._gone.append(set())
            self._taints.append({})
            self._selects.append("ab")
            self._closed.append(False)

    def run(self) -> Mapping[str, Fate]:
        for act in self.script.acts:
            self._do(act)
            while self._settle(act.part, act.time):
                pass
        return self.fates

    def _do(self, act: Act) -> None:
        part = act.part
        match act.what:
            case "arrive":
                self.fates[act.name] = Fate(made=act.time)
                self.kinds[act.name] = act.value
                self._waiting[part].append(act.name)
            case "finish":
                # A waiting pod cannot finish.
                if act.name in self._holders[part].values():
                    self._leave(part, act.name, act.time)
            case "remove":
                fate = self.fates.get(act.name)
                if fate is not None and fate.ended is None:
                    self._leave(part, act.name, act.time)
            case "taint":
                device, _, effect = act.value.partition(":")
                self._taints[part][act.name] = (device, effect)
            case "untaint":
                self._taints[part].pop(act.name, None)
            case "lose":
                self._gone[part].add(act.name)
            case "select":
                self._selects[part] = "a"
            case "cordon":
                self._closed[part] = True
            case "republish":
                pass

    def _leave(self, part: int, name: str, time: float) -> None:
        if name in self._waiting[part]:
            self._waiting[part].remove(name)
        self._holders[part] = {d: p for d, p in self._holders[part].items() if p != name}
        self.fates[name].ended = time

    def _settle(self, part: int, time: float) -> bool:
        """Places waiting pods in order, then evicts; returns whether anything changed."""
        changed = False
        for name in sorted(self._waiting[part], key=number_of):
            device = next(self._free(part, name), None)
            if device is not None:
                self._waiting[part].remove(name)
                self._holders[part][device] = name
                self.fates[name].placed, self.fates[name].device = time, device
                changed = True
        for device, effect in self._taints[part].values():
            name = self._holders[part].get(device, "")
            if effect == "NoExecute" and name and self._goes(name):
                self.fates[name].evicted = time
                self._leave(part, name, time)
                changed = True
        return changed

    def _goes(self, name: str) -> bool:
        kind = self.kinds[name]
        return kind == PLAIN or (kind == TOLERANT and self.script.c2)

    def _free(self, part: int, name: str) -> Iterator[str]:
        if self._closed[part]:
            return
        for device, model in self.script.devices[part]:
            if device in self._holders[part] or device in self._gone[part]:
                continue
            if model not in self._selects[part]:
                continue
            effects = {effect for place, effect in self._taints[part].values() if place == device}
            kind = self.kinds[name]
            borne = {
                PLAIN: set(),
                TOLERANT: {"NoExecute", "NoSchedule"},
                STEADFAST: {"NoExecute"},
            }[kind]
            if effects <= borne:
                yield device


def number_of(pod: str) -> int:
    """The number at the end of a pod's name; a lower number is a higher priority."""
    return int(pod.rpartition("-")[2])


def classes(before: Fate | None, after: Fate | None) -> list[str]:
    """The differences of a pod's fate, gravest first; empty when there are none."""
    if before is None or after is None:
        return ["only in A" if after is None else "only in B"]
    told: list[str] = []
    if after.evicted is not None and before.evicted is None:
        told.append("evicted")
    if before.evicted is not None and after.evicted is None and after.placed is not None:
        told.append("spared")
    if before.placed is not None and after.placed is None:
        told.append("newly unschedulable")
    if after.placed is not None and before.placed is None:
        told.append("newly placed")
    both = before.placed is not None and after.placed is not None
    if both and before.device != after.device:
        told.append("moved")
    instants = [(before.placed, after.placed)] if both else []
    if before.evicted is not None and after.evicted is not None:
        instants.append((before.evicted, after.evicted))
    elif before.evicted is None and after.evicted is None and both:
        instants.append((before.ended, after.ended))
    late = [_is_later(one, other) for one, other in instants if one != other]
    told += ["later"] * any(late) + ["earlier"] * (not all(late))
    return told


def _is_later(before: float | None, after: float | None) -> bool:
    """True when `after` is later than `before`; None (never) is later than every time."""
    return after is None or (before is not None and after > before)


def expected(
    before: Script, after: Script, planted: Sequence[Planted]
) -> dict[str, tuple[list[str], str]]:
    """The classes of difference and their root, for each pod that differs."""
    old, new = Play(before).run(), Play(after).run()
    parts = {act.name: act.part for act in (*before.acts, *after.acts)}
    roots = {change.part: change.root for change in planted}
    found = {}
    for name in {**old, **new}:
        told = classes(old.get(name), new.get(name))
        if told:
            found[name] = (told, roots.get(WHOLE_CLUSTER) or roots.get(parts[name], ""))
    return found
