"""Lanes, starts of pods and writers of fields, counted from the raw events of a log.

A life is what happened to one object between two deletions; its versions are the events about it.
"""

import random
from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import datetime

from tests.truth.answers import Ask, differences
from tests.truth.facts import FINISHED, device_of, reserved_for, results
from tests.truth.raw import Key

LANES = ("pods", "resourceclaims", "nodes")
KINDS = (
    *LANES,
    "resourceslices",
    "deviceclasses",
    "devicetaintrules",
    "resourceclaimtemplates",
    "resourceslicepatches",
)
STEPS = ("claims", "devices", "binding", "starting")
OF_A_FIELD = ("revision", "actor", "agent")
_BOOKKEEPING = ("managedFields", "resourceVersion")

Path = tuple[object, ...]
State = tuple[str, str]


@dataclass(slots=True)
class Life:
    """An object from its creation on; `end` is the line that deleted it."""

    key: Key
    lines: list[dict] = field(default_factory=list)
    end: dict | None = None

    @property
    def tree(self) -> dict:
        """The object as it was last."""
        return self.lines[-1]["object"]

    def since(self, test) -> dict | None:
        """The line since which every version passes a test; None if the last one does not."""
        first = None
        for line in self.lines:
            if not test(line["object"]):
                first = None
            elif first is None:
                first = line
        return first

    def first(self, test) -> dict | None:
        """The first line whose version passes a test."""
        return next((line for line in self.lines if test(line["object"])), None)


Lives = dict[Key, list[Life]]
Stretch = tuple[str, str, int, int]
"""A state, its label, and the revisions of its begin and its end; 0 while it lasts."""


def lives(lines: list[dict]) -> Lives:
    """The lives of all objects by their names, in the order of their beginnings."""
    all: Lives = {}
    for line in lines:
        if not line["type"].startswith("Object"):
            continue
        key = (line["resource"], line["namespace"], line["name"])
        own = all.setdefault(key, [])
        if line["type"] == "ObjectDeleted":
            own[-1].end = line
            continue
        if not own or own[-1].end is not None:
            own.append(Life(key))
        own[-1].lines.append(line)
    return all


def time_of(line: dict) -> datetime:
    """When an event happened."""
    return datetime.fromisoformat(line["stamp"]["time"])


async def judge(lines: list[dict], ask: Ask, pick: random.Random, objects: int) -> list[str]:
    """The starts of all pods, and lanes and fields of so many drawn objects of each kind."""
    known = lives(lines)
    holders = held(known)
    wrong = await pace(known, ask)
    for kind in KINDS:
        own = sorted(key for key in known if key[0] == kind)
        for key in pick.sample(own, min(objects, len(own))):
            wrong += await fields(known, ask, key)
            if kind in LANES:
                wrong += await lanes(known, holders, ask, key[2])
    return wrong


async def lanes(known: Lives, held: dict[str, list[Stretch]], ask: Ask, name: str) -> list[str]:
    """The states of all lanes of a question, and that an object with the name is among them."""
    answer = await ask("lanes", name=name)
    wrong: list[str] = []
    shown = set()
    for lane in answer["lanes"]:
        key = (lane["resource"], lane["namespace"], lane["name"])
        shown.add(key)
        said = [
            (one["state"], one["label"], one["begin"], one["end"], one["count"])
            for one in lane["states"]
        ]
        counted = held[lane["name"]] if lane["resource"] == "devices" else states(known[key])
        if all(one[-1] == 1 for one in said):
            counted = [(*one, 1) for one in counted]
            wrong += differences(f"lane {key}", sorted(said), sorted(counted))
        else:
            wrong += differences(f"lane {key}", sum(one[-1] for one in said), len(counted))
            missing = {one[:-1] for one in said if one[-1] == 1} - {*counted}
            wrong += differences(f"lane {key}, not counted", missing, set())
    wanted = {key for key in known if key[0] in LANES and key[2] == name}
    if not answer["omitted"]:
        wrong += differences(f"lanes of {name}, missing", wanted - shown, set())
    return wrong


def states(own: list[Life]) -> list[Stretch]:
    """The states of the lives of one object, each with its begin and its end."""
    states = []
    for life in own:
        end = life.end["revision"] if life.end else 0
        begun: list[tuple[State, int]] = []
        for line in life.lines:
            state = _STATES[life.key[0]](line["object"])
            if not begun or begun[-1][0] != state:
                begun.append((state, line["revision"]))
        ends = [*(revision for _, revision in begun[1:]), end]
        states += [
            (*state, revision, last) for (state, revision), last in zip(begun, ends, strict=True)
        ]
    return states


def _pod(tree: dict) -> State:
    node, phase = tree["spec"].get("nodeName", ""), tree.get("status", {}).get("phase")
    if phase in FINISHED:
        return "finished", node
    if tree["metadata"].get("deletionTimestamp"):
        return "ending", node
    if phase == "Running":
        return "running", node
    return ("bound" if node else "waiting"), node


def _claim(tree: dict) -> State:
    if tree["metadata"].get("deletionTimestamp"):
        return "ending", ""
    if not (tree.get("status") or {}).get("allocation"):
        return "waiting", ""
    return ("reserved" if reserved_for(tree) else "allocated"), ""


def _node(tree: dict) -> State:
    known = (tree.get("status") or {}).get("conditions") or ()
    ready = {each["type"]: each["status"] for each in known}.get("Ready") == "True"
    cordoned = "cordoned" if tree.get("spec", {}).get("unschedulable") else ""
    return ("ready" if ready else "not ready"), cordoned


_STATES = {"pods": _pod, "resourceclaims": _claim, "nodes": _node}


def state_of(kind: str, tree: dict) -> str:
    """The state of a pod, claim or node, without its label."""
    return _STATES[kind](tree)[0]


def held(known: Lives) -> dict[str, list[Stretch]]:
    """By which claim each device was held from which revision to which."""
    all: dict[str, list[Stretch]] = {}
    for (resource, namespace, name), own in known.items():
        if resource != "resourceclaims":
            continue
        label = f"{namespace}/{name}"
        for life in own:
            before: dict[str, int] = {}
            for line in life.lines:
                now = {"/".join(device_of(one)) for one in results(line["object"])}
                for device in before.keys() - now:
                    all[device].append(("held", label, before.pop(device), line["revision"]))
                for device in now - before.keys():
                    all.setdefault(device, [])
                    before[device] = line["revision"]
            end = life.end["revision"] if life.end else 0
            for device, begin in before.items():
                all[device].append(("held", label, begin, end))
    return all


async def pace(known: Lives, ask: Ask) -> list[str]:
    """The steps of each shown start, and how many pods finished each step."""
    answer = await ask("pace")
    counted = {}
    for key, own in known.items():
        if key[0] == "pods":
            for life in own:
                counted[key[1], key[2], life.lines[0]["revision"]] = _start(known, life)
    wrong = list(differences("pods that began", answer["count"], len(counted)))
    for step, row in zip(STEPS, answer["steps"], strict=True):
        done = sorted(
            seconds for _, steps, _, _ in counted.values() for seconds in _seconds_of(step, steps)
        )
        wrong += differences(f"pods that ended {step}", row["count"], len(done))
        most = done[-1] if done else 0.0
        wrong += differences(f"longest {step}", round(row["most"], 6), round(most, 6))
        for share, column in ((50, "p50"), (90, "p90"), (99, "p99")):
            # The nearest rank: the least duration that so many of a hundred do not exceed.
            rank = max(1, -(-len(done) * share // 100))
            value = done[rank - 1] if done else 0.0
            wrong += differences(f"{column} of {step}", round(row[column], 6), round(value, 6))
    for column, number in (("waits_for", "waiting"), ("gone_before", "gone")):
        index = 2 if column == "waits_for" else 3
        many = sum(bool(each[index]) for each in counted.values())
        wrong += differences(f"pods with {column}", answer[number], many)
    for pod in answer["pods"]:
        created, steps, waits_for, gone_before = counted[
            pod["namespace"], pod["name"], pod["revision"]
        ]
        what = f"start of {pod['name']}"
        said = [(one["name"], round(one["seconds"], 6)) for one in pod["steps"]]
        wrong += differences(what, said, [(name, round(one, 6)) for name, one in steps])
        ends = (pod["waits_for"], pod["gone_before"])
        wrong += differences(f"{what}, its end", ends, (waits_for, gone_before))
        wrong += differences(f"{what}, created", pod["created"], created)
    return wrong


def _seconds_of(step: str, steps: list[tuple[str, float]]) -> list[float]:
    return [seconds for name, seconds in steps if name == step]


def _start(known: Lives, life: Life) -> tuple[str, list[tuple[str, float]], str, str]:
    """When a pod was created, its finished steps, what it waits for, what it did not live to."""
    bound = life.first(lambda tree: tree["spec"].get("nodeName"))
    runs = life.first(lambda tree: _pod(tree)[0] in ("running", "finished"))
    claims, is_whole = _claims(known, life, bound)
    made = [one.lines[0] for one in claims]
    held = [one.since(lambda tree: (tree.get("status") or {}).get("allocation")) for one in claims]
    first = life.lines[0]
    ends = (
        _last(first, made) if is_whole or bound is not None else None,
        _last(first, held),
        bound,
        runs,
    )
    steps: list[tuple[str, float]] = []
    before = first
    for step, line in zip(STEPS, ends, strict=True):
        if line is None:
            return first["stamp"]["time"], steps, *(("", step) if life.end else (step, ""))
        after = max(before, line, key=lambda each: each["revision"])
        steps.append((step, (time_of(after) - time_of(before)).total_seconds()))
        before = after
    return first["stamp"]["time"], steps, "", ""


def _last(first: dict, lines: list[dict | None]) -> dict | None:
    if any(line is None for line in lines):
        return None
    return max((first, *lines), key=lambda line: line["revision"])


def _claims(known: Lives, life: Life, bound: dict | None) -> tuple[list[Life], bool]:
    """The claims of a pod as of its binding or of its last event, and whether all exist."""
    namespace, tree = life.key[1], life.tree
    until = (bound or life.end or {"revision": float("inf")})["revision"]
    named = {
        entry["resourceClaimName"]
        for entry in tree["spec"].get("resourceClaims") or ()
        if entry.get("resourceClaimName")
    }
    statuses = tree.get("status", {}).get("resourceClaimStatuses") or ()
    made = {
        each["resourceClaimName"]
        for line in life.lines
        for each in line["object"].get("status", {}).get("resourceClaimStatuses") or ()
        if each.get("resourceClaimName")
    }
    entries = len(tree["spec"].get("resourceClaims") or ())
    needless = sum(not each.get("resourceClaimName") for each in statuses)
    claims = []
    for (resource, place, name), own in known.items():
        if resource != "resourceclaims" or place != namespace:
            continue
        for each in own:
            cut = Life(each.key, [line for line in each.lines if line["revision"] <= until])
            cut.end = each.end if each.end and each.end["revision"] <= until else None
            if not cut.lines or (cut.end and cut.end["revision"] < life.lines[0]["revision"]):
                continue
            owners = each.lines[0]["object"]["metadata"].get("ownerReferences") or ()
            is_own = any(one["uid"] == life.lines[0]["uid"] for one in owners)
            if is_own or name in named or name in made:
                claims.append(cut)
    return claims, len({one.key for one in claims}) >= entries - needless


async def fields(known: Lives, ask: Ask, key: Key) -> list[str]:
    """Who wrote each field of an object, and its versions."""
    life = known[key][-1]
    answer = await ask("object", kind=key[0], name=key[2], namespace=key[1] or "default")
    about = [line for one in known[key] for line in (*one.lines, *((one.end,) if one.end else ()))]
    wrong = list(differences(f"existence of {key}", answer["exists"], life.end is None))
    said = [one["revision"] for one in answer["versions"]]
    counted = [line["revision"] for line in reversed(about)][: len(said)]
    wrong += differences(f"versions of {key}", said, counted)
    if answer["older"]:
        return wrong
    wrong += differences(f"first version of {key}", said[-1:], [about[0]["revision"]])
    written = {
        path: tuple(str(one) for one in (line["revision"], _actor(line), _agent(line)))
        for path, (line, _) in _written(life).items()
    }
    shown = {one["path"]: tuple(str(one[part]) for part in OF_A_FIELD) for one in answer["fields"]}
    wrong += differences(f"writers of {key}", shown, written)
    return wrong


def _actor(line: dict) -> str:
    return line["stamp"]["actor"]["user"]


def _agent(line: dict) -> str:
    return line["stamp"]["actor"].get("agent", "")


def _written(life: Life) -> dict[str, tuple[dict, object]]:
    """Each field of the last version by its path, with the event since which it has its value."""
    since: dict[Path, tuple[dict, object]] = {}
    places: dict[Path, str] = {}
    for line in (*life.lines, *((life.end,) if life.end else ())):
        now = dict(_leaves(line["object"], "", ()))
        since = {
            id: since[id] if id in since and since[id][1] == value else (line, value)
            for id, (_, value) in now.items()
        }
        places = {id: path for id, (path, _) in now.items()}
    return {places[id]: each for id, each in since.items()}


def _leaves(value: object, path: str, id: Path) -> Iterator[tuple[Path, tuple[str, object]]]:
    if value is None:
        return
    if isinstance(value, dict) and value:
        for name, part in value.items():
            if path == "metadata" and name in _BOOKKEEPING:
                continue
            step = f".{name}" if path else name
            yield from _leaves(
                part, path + (step if name.isidentifier() else f"[{name!r}]"), (*id, name)
            )
    elif isinstance(value, list) and value:
        for index, (own, part) in enumerate(zip(_names(value), value, strict=True)):
            yield from _leaves(part, f"{path}[{index}]", (*id, own))
    else:
        yield id, (path, value)


_NAMED = (
    ("uid",),
    ("type",),
    ("name",),
    ("driver", "pool", "device", "shareID"),
    ("key", "effect"),
    ("id",),
)


def _names(rows: list) -> list[object]:
    """What tells the entries of a list apart wherever they stand; else their places."""
    for parts in _NAMED:
        own = [
            tuple(row.get(part, "") for part in parts)
            for row in rows
            if isinstance(row, dict) and parts[0] in row
        ]
        if len(own) == len(rows) == len(set(own)):
            return [(parts, one) for one in own]
    if all(isinstance(row, str) for row in rows) and len(set(rows)) == len(rows):
        return list(rows)
    return list(range(len(rows)))
