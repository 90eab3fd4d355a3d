"""Recordings in which one value of one line is another one: it must not pass.

`python -m tests.adversary.one_value RECORDING --each 4` changes one value at a time, at drawn
positions of each sort in `SORTS`, asks `verify` and then `decide`, and counts by sort the logs that
fail, that are only doubted, and of which neither says anything.

What must be noticed follows from the lines alone: other lines about the object show the value,
which nobody can have changed, or a controller computes it from what others wrote. A value that only
one line shows and that somebody outside chooses could have been the other one, and is left out.
"""

import argparse
import copy
import json
import random
import tempfile
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.adversary.catalogue import FAILS
from tests.adversary.contradictions import CONTRADICTING, FINISHED, reports_ready
from tests.adversary.log import Json, Log, later
from tests.adversary.places import Path_, Place, at, is_write
from tests.adversary.running import Answer, ask, baseline, recording

_SIDES = ("requestObject", "responseObject")
_PUBLISHED = ("ResourceSlice", "DeviceTaintRule")


@dataclass(frozen=True)
class Sort:
    """Values of one meaning: where they are, what replaces one, and who else shows it.

    A value counts if another line about the object shows it, unless a controller computes it. One
    that `rises` may be higher in the last line.
    """

    kinds: tuple[str, ...]
    paths: Callable[[Json], Iterator[Path_]]
    other: Callable[[Any], Any]
    is_computed: bool = False
    rises: bool = False


def _results(name: str) -> Callable[[Json], Iterator[Path_]]:
    def paths(body: Json) -> Iterator[Path_]:
        base: Path_ = ("status", "allocation", "devices", "results")
        for number, _ in enumerate(at(body, base) or ()):
            yield (*base, number, name)

    return paths


def _requests(name: str, *base: str) -> Callable[[Json], Iterator[Path_]]:
    def paths(body: Json) -> Iterator[Path_]:
        top: Path_ = (*base, "devices", "requests")
        for number, _ in enumerate(at(body, top) or ()):
            yield (*top, number, "exactly", name)
            yield (*top, number, name)

    return paths


def _listed(base: Path_, name: str) -> Callable[[Json], Iterator[Path_]]:
    def paths(body: Json) -> Iterator[Path_]:
        for number, _ in enumerate(at(body, base) or ()):
            yield (*base, number, name)

    return paths


def _only(*path: str) -> Callable[[Json], Iterator[Path_]]:
    return lambda body: iter((path,))


def _scheduled(name: str) -> Callable[[Json], Iterator[Path_]]:
    def paths(body: Json) -> Iterator[Path_]:
        for number, one in enumerate(at(body, ("status", "conditions")) or ()):
            if one.get("type") == "PodScheduled" and one.get("status") == "False":
                yield ("status", "conditions", number, name)

    return paths


def _below(*names: str) -> Callable[[Json], Iterator[Path_]]:
    """The single values of a published spec that are below one of these names."""

    def paths(body: Json) -> Iterator[Path_]:
        yield from walk(body.get("spec"), ("spec",), is_below=False)

    def walk(node: Any, path: Path_, *, is_below: bool) -> Iterator[Path_]:
        if isinstance(node, dict):
            for name, value in node.items():
                yield from walk(value, (*path, name), is_below=is_below or name in names)
        elif isinstance(node, list):
            for number, value in enumerate(node):
                yield from walk(value, (*path, number), is_below=is_below)
        elif is_below:
            yield path

    return paths


def _another(value: Any) -> Any:
    """Another value of the same type, which a published spec may have."""
    if isinstance(value, bool):
        return not value
    if isinstance(value, int):
        return value + 1
    effects = {"NoSchedule": "NoExecute", "NoExecute": "NoSchedule"}
    if value[10:11] == "T" and value.endswith("Z"):
        return _hour(value)
    return effects.get(value) or (f"1{value}" if value[:1].isdigit() else f"{value}x")


def _uid(value: str) -> str:
    return f"{'0' * 8}{value[8:]}"


def _next(value: str) -> str:
    """The name with the next number, of which there may be one: `gpu-1` for `gpu-0`."""
    head, number = value[:-1], value[-1:]
    return f"{head}{(int(number) + 1) % 8}" if number.isdigit() else f"{value}-x"


def _hour(value: str) -> str:
    return f"{later(value, 3600)[:19]}Z"


SORTS: dict[str, Sort] = {
    "device": Sort(("ResourceClaim",), _results("device"), _next, is_computed=True),
    "pool": Sort(("ResourceClaim",), _results("pool"), _next, is_computed=True),
    "result request": Sort(("ResourceClaim",), _results("request"), lambda value: f"{value}-x"),
    "consumer": Sort(
        ("ResourceClaim",), _listed(("status", "reservedFor"), "uid"), _uid, is_computed=True
    ),
    "count": Sort(("ResourceClaim",), _requests("count", "spec"), lambda value: value + 1),
    "class": Sort(
        ("ResourceClaim",), _requests("deviceClassName", "spec"), lambda value: f"{value}.x"
    ),
    "template count": Sort(
        ("ResourceClaimTemplate",), _requests("count", "spec", "spec"), lambda value: value + 1
    ),
    "owner": Sort(
        ("ResourceClaim",),
        _listed(("metadata", "ownerReferences"), "uid"),
        _uid,
        is_computed=True,
    ),
    "uid": Sort(("Pod", "ResourceClaim", "ResourceSlice", "Node"), _only("metadata", "uid"), _uid),
    "generation": Sort(
        ("Pod",),
        _only("metadata", "generation"),
        lambda value: value + 7,
        rises=True,
    ),
    "deletion": Sort(("Pod", "ResourceClaim"), _only("metadata", "deletionTimestamp"), _hour),
    "creation": Sort(
        ("Pod", "ResourceClaim", "Node"), _only("metadata", "creationTimestamp"), _hour
    ),
    "allocated": Sort(
        ("ResourceClaim",), _only("status", "allocation", "allocationTimestamp"), _hour
    ),
    "node": Sort(
        ("Binding",), _only("target", "name"), lambda value: f"{value}9", is_computed=True
    ),
    "pod's node": Sort(("Pod",), _only("spec", "nodeName"), lambda value: f"{value}9"),
    "reason": Sort(("Pod",), _scheduled("reason"), lambda value: f"{value}X", is_computed=True),
    "message": Sort(("Pod",), _scheduled("message"), lambda value: f"{value}!", is_computed=True),
    "pod's claim": Sort(
        ("Pod",),
        _listed(("status", "resourceClaimStatuses"), "resourceClaimName"),
        lambda value: f"{value}x",
        is_computed=True,
    ),
    "taint": Sort(("ResourceSlice", "DeviceTaintRule"), _below("taint", "taints"), _another),
    "template of a pod": Sort(
        ("Pod",),
        _listed(("spec", "resourceClaims"), "resourceClaimTemplateName"),
        lambda value: f"{value}-x",
    ),
    "toleration": Sort(
        ("Pod",), _listed(("spec", "tolerations"), "key"), lambda value: f"{value}x"
    ),
    "scheduler": Sort(("Pod",), _only("spec", "schedulerName"), lambda value: f"{value}-x"),
    "priority": Sort(("Pod",), _only("spec", "priority"), lambda value: value + 1000),
}


USED: dict[str, Callable[[Any], Any]] = {"selected": _another, "drawn upon": lambda value: "0"}
"""Published values on which an allocation rests, though no other line shows them."""


def used(log: Log, name: str) -> Iterator[Place]:
    """The values of slices without which a recorded allocation could not have been made.

    A request of the claim selects its device by that attribute or capacity, or the device draws
    upon that counter; the slices of the pool were not written in between. An answer has to name
    the device, or the counter.
    """
    expressions: dict[str, str] = {}
    newest: dict[tuple[str, str], list[int]] = {}
    for number, line in enumerate(log.lines):
        body = line.get("responseObject")
        if not (is_write(line) and isinstance(body, dict)):
            continue
        if body.get("kind") == "DeviceClass":
            expressions[body["metadata"]["name"]] = str(body["spec"].get("selectors", ""))
        if body.get("kind") == "ResourceSlice":
            pool = body["spec"]["driver"], body["spec"]["pool"]["name"]
            newest[pool] = [
                each
                for each in newest.get(pool, ())
                if line["verb"] != "create" or _name(log, each) != body["metadata"]["name"]
            ] + [number]
        if body.get("kind") != "ResourceClaim" or line["objectRef"].get("subresource") != "status":
            continue
        asked = str(body["spec"]) + "".join(
            text for of, text in expressions.items() if f"'{of}'" in str(body["spec"])
        )
        for result in at(body, ("status", "allocation", "devices", "results")) or ():
            for where in newest.get((result["driver"], result["pool"]), ()):
                spec = log.lines[where]["responseObject"]["spec"]
                for path in _needed(spec, result["device"], asked, log, newest, name):
                    about = result["device"] if name == "selected" else str(path[-2])
                    yield Place(where, ("spec", *path), name, about=about)


def _name(log: Log, number: int) -> str:
    return str(log.lines[number]["responseObject"]["metadata"]["name"])


def _needed(
    spec: Json,
    device: str,
    asked: str,
    log: Log,
    newest: dict[tuple[str, str], list[int]],
    name: str,
) -> Iterator[Path_]:
    pool = newest[spec["driver"], spec["pool"]["name"]]
    if len({_name(log, each) for each in pool}) < len(pool):
        return  # One of its slices was written again.
    if name == "selected":
        for number, one in enumerate(spec.get("devices") or ()):
            for attribute, value in (one.get("attributes") or {}).items():
                for kind, text in value.items():
                    said = f".{attribute} == '{text}'" if kind == "string" else ""
                    said = f".{attribute} == {text}" if kind == "int" else said
                    if one["name"] == device and said and said in asked:
                        yield ("devices", number, "attributes", attribute, kind)
            for capacity, amount in (one.get("capacity") or {}).items():
                said = f'].{capacity} == quantity("{amount["value"]}")'
                if one["name"] == device and said in asked:
                    yield ("devices", number, "capacity", capacity, "value")
        return
    slices = [log.lines[each]["responseObject"]["spec"] for each in pool]
    drawn = {
        (part["counterSet"], counter)
        for each in slices
        for one in each.get("devices") or ()
        if one["name"] == device
        for part in one.get("consumesCounters") or ()
        for counter, amount in part["counters"].items()
        if amount["value"] != "0"
    }
    for number, one in enumerate(spec.get("sharedCounters") or ()):
        for counter in one["counters"]:
            if (one["name"], counter) in drawn:
                yield ("sharedCounters", number, "counters", counter, "value")


def places(log: Log, name: str) -> list[Place]:
    """The places of values of a sort that must not be another one unnoticed."""
    if name in USED:
        return sorted(set(used(log, name)), key=str)
    if name in CONTRADICTING:
        return sorted(set(CONTRADICTING[name](log, name)), key=str)
    sort = SORTS[name]
    # The last and the first line that show a value, by object and path.
    shown: dict[tuple[str, Path_, str], int] = {}
    first: dict[tuple[str, Path_, str], int] = {}
    here: list[tuple[int, str, Path_, Any]] = []
    for number, line in enumerate(log.lines):
        body = line.get("responseObject") or {}
        if sort.kinds == ("Binding",):
            body = line.get("requestObject") or {}
        if not (is_write(line) and isinstance(body, dict)) or body.get("kind") not in sort.kinds:
            continue
        named = body.get("metadata", {})
        # A new generation has another spec.
        counted = named.get("generation") if body["kind"] in _PUBLISHED else ""
        uid = f"{named.get('uid', '')} {counted}"
        for path in sort.paths(body):
            value = at(body, path)
            if value is None or value == "":
                continue
            here.append((number, uid, path, value))
            first.setdefault((uid, path, str(value)), number)
            shown[uid, path, str(value)] = number
    return [
        Place(number, path, name)
        for number, uid, path, value in here
        if sort.is_computed
        or shown[uid, path, str(value)] > number
        or (first[uid, path, str(value)] < number and not sort.rises)
    ]


def altered(log: Log, place: Place) -> Log:
    """The log with another value there, in the request and the answer of that line."""
    log = Log(list(log.lines))
    line = log.lines[place.line] = copy.deepcopy(log.lines[place.line])
    value = at(line.get("responseObject"), place.path)
    if value is None:
        value = at(line.get("requestObject"), place.path)
    other = place.other
    if other is None:
        other = (USED[place.sort] if place.sort in USED else SORTS[place.sort].other)(value)
    for side in _SIDES:
        if at(line.get(side), place.path) == value:
            at(line[side], place.path[:-1])[place.path[-1]] = other
    return log


FAILED, IN_PART, UNNOTICED = OUTCOMES = "failed", "in part", "not noticed"

MUST_FAIL = (
    "device",
    "pool",
    "result request",
    "consumer",
    "owner",
    "node",
    "reason",
    "message",
    "pod's claim",
)
"""Sorts that a controller computes from what a recording that lacks nothing has whole.

Where the request of a line gives the value, and not only its answer, its author wrote it. No line
that is lost makes another value right there, so the answer has to be that it failed, and to name
the object. Other values may have been changed by a line that is lost, and changed back by another.
"""


ONE_SPEC = ("taint",)
"""Sorts of values of a spec that another line shows with the same `metadata.generation`.

A server raises it with each change of the spec, so no lost line makes another value right.
"""


def must_fail(log: Log, place: Place) -> bool:
    """Whether another value at a place must be called a failure of this object."""
    if place.sort in (*USED, *ONE_SPEC) or (place.sort in CONTRADICTING and place.sort != FINISHED):
        return True
    request = log.lines[place.line].get("requestObject")
    is_given = at(request, place.path) not in (None, "")
    if place.sort == FINISHED:
        return is_given and reports_ready(log.lines[place.line])
    return place.sort in MUST_FAIL and is_given


def answers(name: str, log: Log, folder: Path) -> Iterator[tuple[str, Answer]]:
    """What verify says and, unless that is a failure, what decide says."""
    path = folder / "audit.jsonl"
    path.write_text(log.text())
    for mode in ("verify", "decide"):
        answer = ask(path, name, mode)
        yield mode, answer
        if answer.verdict == FAILS:
            return


def outcome(name: str, log: Log, place: Place, folder: Path) -> str:
    """The verdict on an altered log: it failed, with this object, or confirms less than before."""
    about = place.about or log.lines[place.line]["objectRef"].get("name", "")
    result = UNNOTICED
    for mode, answer in answers(name, log, folder):
        if answer.verdict == FAILS and about in json.dumps(answer.body):
            return FAILED
        if answer.verdict != baseline(name, mode, folder):
            result = IN_PART
    return result


def main(given: Sequence[str] | None = None) -> int:
    """Prints each change that was not called a failure, and counts by sort; 1 if one passed."""
    parser = argparse.ArgumentParser(
        prog="python -m tests.adversary.one_value", description=__doc__.split("\n")[0]
    )
    parser.add_argument("recording")
    parser.add_argument("--each", type=int, default=4, help="changes of each sort")
    parser.add_argument("--seed", default="1")
    parser.add_argument("--sort", default="")
    parser.add_argument("--sure", action="store_true", help="only values that must fail")
    options = parser.parse_args(given)
    name, log = options.recording, recording(options.recording)
    counts: dict[str, Counter[str]] = {}
    with tempfile.TemporaryDirectory() as folder:
        print({mode: baseline(name, mode, Path(folder)) for mode in ("verify", "decide")})
        for sort in (options.sort,) if options.sort else (*SORTS, *USED, *CONTRADICTING):
            drawn = random.Random(f"{options.seed} {sort}")
            all_places = [
                each for each in places(log, sort) if must_fail(log, each) or not options.sure
            ]
            counted = counts[sort] = Counter()
            for place in drawn.sample(all_places, min(options.each, len(all_places))):
                said = outcome(name, altered(log, place), place, Path(folder))
                counted[said] += 1
                if said == UNNOTICED or (said == IN_PART and must_fail(log, place)):
                    line = log.lines[place.line]
                    about = line["objectRef"]
                    print(
                        f"{said}: {sort}: line {place.line} {line['verb']} {about['resource']} "
                        f"{about.get('subresource', '')} {about.get('name', '')} by "
                        f"{line['user']['username']}: {place.path}",
                        flush=True,
                    )
    for sort, counted in counts.items():
        mark = "*" if sort in (*MUST_FAIL, *ONE_SPEC, *USED, *CONTRADICTING) else " "
        print(f"{mark} {sort:20} " + ", ".join(f"{each} {counted[each]}" for each in OUTCOMES))
    total = sum(counts.values(), Counter())
    print(f"{name}: {total.total()} logs with another value, {total[UNNOTICED]} not noticed")
    return int(total[UNNOTICED] > 0)


if __name__ == "__main__":
    raise SystemExit(main())
