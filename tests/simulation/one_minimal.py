"""An own check that nothing can be left out of a minimised history.

It shares no code with the search: it reads the bundle's lines, leaves out each object, write,
controller, field and item in turn, has redra's engine decide what is left, and looks at the raw
objects whether the fact still shows. As a program:
`python -m tests.simulation.one_minimal BUNDLE FACT [ARGUMENT]`, with the facts `evicted POD`,
`unschedulable POD [because TEXT]`, `violation RULE`, `differs PROFILE,PROFILE`, `differs quirk=Q`
or `differs gate=G` (and `evicted`, `spared`, `placed` or `moved` behind it), `difference CLASS` (of
a decide replay) and `command WORD…` (with {} for the bundle).

Of many pieces that are alike but for the numbers in their words, such as the same field of 256
numbered pods, `ALIKE_MAX` are left out in turn: the first, the last, and others between.

A bundle that is kept as recorded (`difference` always is, and what shows the fact only so) is
looked at object by object: one goes with all that names it, because a recording in which a claim
has devices of no pool is none.
"""

import json
import re
import shlex
import subprocess
import sys
import zipfile
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from app.analysis.replay.variants import Switches
from app.analysis.verify.invariants.watch import InvariantWatch
from app.domain.controllers import registry
from app.domain.log import Event
from tests.simulation import own_runs
from tests.simulation.own_runs import OwnRun, OwnRuns

Tree = Mapping[str, Any]
Fact = Callable[[OwnRun], frozenset[str]]
"""The ways in which a run shows a fact; the fact stays if one of the first ways stays."""

Place = tuple[str, str, str, str]
"""Group, resource, namespace and name of an object."""

ALIKE_MAX = 20
"""The most pieces of those that are alike which are left out, each by itself."""

_DRA = "resource.k8s.io"


def lines(path: Path) -> list[dict[str, Any]]:
    """The events of a bundle as they are written."""
    with zipfile.ZipFile(path) as bundle:
        return [json.loads(line) for line in bundle.read("events.jsonl").splitlines()]


def place_of(line: Tree) -> Place:
    """Group, resource, namespace and name of the object of a line."""
    payload = line["payload"]
    return payload["group"], payload["resource"], payload["namespace"], payload["name"]


def smaller(inputs: Sequence[Tree]) -> Iterator[tuple[str, list[int]]]:
    """Each object and each later write of users, by its words and the inputs that stay.

    Inputs are numbered. A namespace goes with what is in it, because nothing can be made there.
    """
    places = [place_of(line) for line in inputs]
    numbers = range(len(inputs))
    for place in dict.fromkeys(places):
        is_space = place[1] == "namespaces"
        gone = {n for n in numbers if places[n] == place or (is_space and places[n][2] == place[3])}
        yield "/".join(place), [n for n in numbers if n not in gone]
    for number in numbers:
        if places[number] in places[:number]:
            words = f"write {number} of {'/'.join(places[number])}"
            yield words, [n for n in numbers if n != number]


def without_one_object(there: Sequence[Tree]) -> Iterator[tuple[str, list[int]]]:
    """Each object of a recording with all that names it, by its words and the lines that stay."""
    naming: dict[Place, set[Place]] = {}
    for line in there:
        for named in names_in(line, there):
            naming.setdefault(named, set()).add(place_of(line))
    for place in dict.fromkeys(map(place_of, there)):
        gone, left = {place}, [place]
        while left:
            for other in naming.get(left.pop(), set()) - gone:
                gone.add(other)
                left.append(other)
        yield "/".join(place), [n for n, line in enumerate(there) if place_of(line) not in gone]


def names_in(line: Tree, there: Sequence[Tree]) -> Iterator[Place]:
    """The objects that one state of an object names, whether or not they are there."""
    place, tree = place_of(line), line["payload"]["object"]
    space, spec, status = place[2], tree.get("spec") or {}, tree.get("status") or {}
    if space:
        yield ("", "namespaces", "", space)
    if node := spec.get("nodeName"):
        yield ("", "nodes", "", node)
    for entry in (*spec.get("resourceClaims", ()), *status.get("resourceClaimStatuses", ())):
        if claim := entry.get("resourceClaimName"):
            yield (_DRA, "resourceclaims", space, claim)
        if template := entry.get("resourceClaimTemplateName"):
            yield (_DRA, "resourceclaimtemplates", space, template)
    if place[1] in ("resourceclaims", "resourceclaimtemplates"):
        for name in re.findall(r'"deviceClassName": "([^"]*)"', json.dumps(spec)):
            yield (_DRA, "deviceclasses", "", name)
    for pod in status.get("reservedFor", ()):
        yield ("", "pods", space, pod["name"])
    for given in status.get("allocation", {}).get("devices", {}).get("results", ()):
        for other in there:
            published = other["payload"]["object"].get("spec") or {}
            in_pool = (published.get("driver"), (published.get("pool") or {}).get("name"))
            if place_of(other)[1] == "resourceslices" and in_pool == (
                given["driver"],
                given["pool"],
            ):
                yield place_of(other)
    uids = {owner["uid"] for owner in tree["metadata"].get("ownerReferences", ())}
    yield from (place_of(other) for other in there if other["payload"]["uid"] in uids)
    about = tree.get("involvedObject", {}).get("uid")
    yield from (place_of(other) for other in there if about and other["payload"]["uid"] == about)


class Deciding(OwnRuns):
    """Runs of a bundle whose inputs are those lines that no controller makes that runs."""

    def __init__(self, path: Path, *, is_recorded: bool = False) -> None:
        super().__init__(path, is_recorded=is_recorded)
        users = {registry.actor_of(name).user for name in self.controllers}
        self.lines = [
            line
            for line in lines(path)
            if line["type"].startswith("Object") and line["stamp"]["actor"]["user"] not in users
        ]
        self.count = len(self.whole.inputs)


def evicted(pod: str) -> Fact:
    """That a pod is evicted, with the reason of its condition."""

    def ways(ran: OwnRun) -> frozenset[str]:
        told = conditions(ran.events, pod, "DisruptionTarget", "True")
        return frozenset(condition["reason"] for condition in told)

    return ways


REFUSED = ("Unschedulable", "SchedulerError")
"""The reasons of a pod that was tried; others wait for their gates."""


def unschedulable(words: str) -> Fact:
    """That a pod cannot be scheduled, with its message without numbers and names, and why.

    Of the causes that the attempt counts, the one that excludes most devices is meant; with the
    words `POD because TEXT`, that the message or one of the causes has the text. What is taken as
    recorded has messages alone.
    """
    pod, _, text = words.partition("because ")
    pod = pod.strip()

    def ways(ran: OwnRun) -> frozenset[str]:
        told = [
            each
            for each in conditions(ran.events, pod, "PodScheduled", "False")
            if each.get("reason") in REFUSED
        ]
        is_counted = text and any(text in each for each in counted(ran, pod))
        if text and not is_counted:
            told = [each for each in told if text in each.get("message", "")]
        messages = (condition.get("message", "").split("preemption:")[0] for condition in told)
        plain = {re.sub(r"\d+|\"[^\"]*\"", "#", message) for message in messages}
        if text or ran.is_recorded:
            return frozenset(plain)
        return frozenset(f"{message}, {cause}" for message in plain for cause in causes(ran, pod))

    return ways


def counted(ran: OwnRun, pod: str) -> Iterator[str]:
    """Each cause that a failed attempt for a pod counts, with what it is about."""
    for event in ran.events:
        about = event.object
        if about.get("controller") == "scheduling" and pod in ("", about.get("name")):
            for cause in about.get("summary", {}).get("causes", ()):
                yield f"{cause['cause']}: {cause.get('about', '')}"


def causes(ran: OwnRun, pod: str) -> frozenset[str]:
    """The main cause of each failed attempt for a pod (empty: for all)."""
    found = set()
    for event in ran.events:
        about = event.object
        if about.get("controller") == "scheduling" and pod in ("", about.get("name")):
            counted: dict[str, int] = {}
            for cause in about.get("summary", {}).get("causes", ()):
                if cause["cause"] != "suitable":
                    counted[cause["cause"]] = counted.get(cause["cause"], 0) + cause["devices"]
            found.add(max(sorted(counted), key=counted.__getitem__, default="none"))
    return frozenset(found)


def conditions(events: Sequence[Event], pod: str, sort: str, status: str) -> Iterator[Tree]:
    """The conditions of pods of this name (empty: of all pods) that have a status."""
    for event in events:
        if event.key[:2] == ("", "pods") and pod in ("", event.key.name):
            for condition in event.object.get("status", {}).get("conditions", ()):
                if (condition.get("type"), condition.get("status")) == (sort, status):
                    yield condition


def violation(rule: str) -> Fact:
    """That an invariant does not hold, as a failure or (by name) as something known."""

    def ways(ran: OwnRun) -> frozenset[str]:
        watch = InvariantWatch(ran.switches)
        watch.follow(ran.events)
        shown = [each for each in watch.violations() if each.rule == rule or each.kind.is_failure]
        return frozenset(
            f"{each.rule} {each.kind.value}" for each in shown if each.rule == (rule or each.rule)
        )

    return ways


def differs(words: str) -> Fact:
    """That pods end with another node or other devices under two control planes.

    With the word `evicted` behind them, that a pod is evicted under one alone; with `spared`, that
    it is under the first alone and gets a node under the second; with `placed`, that it gets a node
    under one alone; with `moved`, that neither leaves it without one. Generated names may differ.
    """
    switch, _, kind = words.partition(" ")
    sides = switched(switch)
    seen = {"evicted": evictions_of, "placed": nodes_of}.get(kind, end_of)

    def ways(ran: OwnRun) -> frozenset[str]:
        runs = [ran.under(switches).events for switches in sides]
        if kind == "spared":
            first, second = map(evictions_of, runs)
            return frozenset((first.keys() - second.keys()) & nodes_of(runs[1]).keys())
        ends = [seen(events) for events in runs]
        return frozenset(
            name
            for name in ends[0].keys() | ends[1].keys()
            if ends[0].get(name) != ends[1].get(name)
            and (kind != "moved" or all(end.get(name) not in NOWHERE for end in ends))
        )

    return ways


def switched(switch: str) -> list[Switches]:
    """Two releases (`1.36,1.37`), or a quirk or gate on and off (`quirk=c24`, `gate=NAME`)."""
    name, _, value = switch.rpartition("=")
    if name == "quirk":
        return [Switches(quirks={value: on}) for on in (True, False)]
    if name == "gate":
        return [Switches(gates={value: on}) for on in (True, False)]
    return [Switches(profile=each) for each in value.split(",")]


def evictions_of(events: Sequence[Event]) -> dict[str, str]:
    """The pods that were evicted."""
    return {
        event.key.name: "evicted"
        for event in events
        if next(conditions([event], event.key.name, "DisruptionTarget", "True"), None) is not None
    }


def nodes_of(events: Sequence[Event]) -> dict[str, str]:
    """The pods that got a node."""
    return {
        event.key.name: "placed"
        for event in events
        if event.key[:2] == ("", "pods") and event.object.get("spec", {}).get("nodeName")
    }


NOWHERE = ("", "null")
"""The node of a pod without one, and the devices of a claim without any."""


def end_of(events: Sequence[Event]) -> dict[str, str]:
    """The last node of each pod and the last devices of each claim."""
    end: dict[str, str] = {}
    for event in events:
        tree, place = event.object, "/".join(event.key)
        if event.key[:2] == ("", "pods"):
            end[place] = tree.get("spec", {}).get("nodeName", "")
        elif event.key[:2] == ("resource.k8s.io", "resourceclaims"):
            devices = tree.get("status", {}).get("allocation", {}).get("devices", {})
            end[place] = json.dumps(devices.get("results"), sort_keys=True)
    return end


def command(words: str) -> Fact:
    """That a command ends with 0 for a bundle of the history."""

    def ways(ran: OwnRun) -> frozenset[str]:
        with TemporaryDirectory() as folder:
            path = Path(folder) / "candidate.zip"
            own_runs.export(ran, path)
            given = [word.replace("{}", str(path)) for word in shlex.split(words)]
            done = subprocess.run(given, capture_output=True, check=False)
        return frozenset(("0",) if done.returncode == 0 else ())

    return ways


def difference(wanted: str) -> Fact:
    """That a decide replay has a difference of a class, about whom, with which proof.

    One beside which the same pod or claim has an unexplained difference does not count.
    """

    def ways(ran: OwnRun) -> frozenset[str]:
        report = own_runs.decide(ran)
        open_ = {each.owner for each in report.differences if each.reason == "unexplained"}
        return frozenset(
            f"{each.aspect.value} {each.subject}: {each.detail}"
            for each in report.differences
            if each.reason == wanted and (wanted == "unexplained" or each.owner not in open_)
        )

    return ways


FACTS: Mapping[str, Callable[[str], Fact]] = {
    "evicted": evicted,
    "unschedulable": unschedulable,
    "violation": violation,
    "differs": differs,
    "difference": difference,
    "command": command,
}


def superfluous(path: Path, fact: Fact, *, is_recorded: bool = False) -> Iterator[str]:
    """The descriptions of the pieces without which the fact still shows."""
    deciding = Deciding(path, is_recorded=is_recorded)
    assert deciding.count == len(deciding.lines), "the engine takes the same lines for inputs"
    wanted = fact(deciding.whole)
    assert wanted, "the whole bundle shows it"
    whole, faults = contents(deciding.whole), impossible(deciding.whole)
    # Without the controller that ends a state, it lasts whether or not there is a defect.
    is_late = all(way.endswith(" late") for way in wanted)
    for words, smaller_one in pieces(deciding, is_recorded=is_recorded):
        if is_late and words.startswith("controller "):
            continue
        # A request may leave two lines, the mark and the removal of a pod: either makes the other.
        # A later write shows the whole object, also what controllers wrote into it before.
        if contents(smaller_one) == whole or not wanted & fact(smaller_one):
            continue
        if impossible(smaller_one) <= faults:
            yield words


def impossible(ran: OwnRun) -> frozenset[str]:
    """What no cluster comes to: the broken rules, and for a recording what its decide replay says.

    A piece without which something else is impossible cannot be left out.
    """
    watch = InvariantWatch(ran.switches)
    watch.follow(ran.events)
    rules = frozenset(each.rule for each in watch.violations() if each.kind.is_failure)
    return rules.union(own_runs.decide(ran).violations) if ran.is_recorded else rules


def pieces(deciding: Deciding, *, is_recorded: bool) -> Iterator[tuple[str, OwnRun]]:
    """Each piece by its words, and the run without it; objects first, parts of objects last."""
    left = dict((without_one_object if is_recorded else smaller)(deciding.lines))
    for words in some(left):
        if left[words]:
            yield words, deciding.run(left[words])
    for name in deciding.controllers:
        yield f"controller {name}", deciding.whole.without_controller(name)
    parts = {
        f"{'.'.join(part)} of {step.event.key}": (step.event.key, part)
        for step in deciding.whole.inputs
        for part in own_runs.parts_of(step.event.object)
    }
    for words in some(parts):
        cut = deciding.whole.cut(*parts[words])
        if cut is not None:
            yield words, cut


def some(pieces_in_words: Iterable[str]) -> list[str]:
    """All of the pieces, but of those alike `ALIKE_MAX`, at equal distances."""
    alike: dict[str, list[str]] = {}
    for words in pieces_in_words:
        alike.setdefault(re.sub(r"\d+", "#", words), []).append(words)
    return [
        words
        for group in alike.values()
        for words in (
            group
            if len(group) <= ALIKE_MAX
            else [group[n * (len(group) - 1) // (ALIKE_MAX - 1)] for n in range(ALIKE_MAX)]
        )
    ]


def contents(ran: OwnRun) -> list[bytes]:
    """What the events of a run contain."""
    return [event.body for event in ran.events]


def main() -> int:
    """Prints what could be left out; exit code 1 if there is something."""
    path, word, *about = sys.argv[1:]
    fact = FACTS[word](" ".join(about))
    is_recorded = word == "difference" or not fact(OwnRuns(Path(path)).whole)
    more = list(superfluous(Path(path), fact, is_recorded=is_recorded))
    for each in more:
        print(f"can be left out: {each}")
    return 1 if more else 0


if __name__ == "__main__":
    sys.exit(main())
