"""An own check that nothing can be left out of a minimised history.

It shares no code with the search: it reads the bundle's lines, leaves out each object and each
write in turn, has redra's engine decide what is left, and looks at the raw objects whether the fact
still shows. As a program: `python -m tests.simulation.one_minimal BUNDLE FACT [ARGUMENT]`, with the
facts `evicted POD`, `unschedulable POD`, `violation RULE` and `differs PROFILE,PROFILE`.
"""

import json
import re
import sys
import zipfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import anyio

from app.analysis.minimise.material import Candidate
from app.analysis.replay.variants import Switches
from app.analysis.verify.invariants.watch import InvariantWatch
from app.bootstrap.engines import Engines
from app.bootstrap.minimising import sources
from app.domain.log import Event
from app.service.replays.trials import Ran, Runner
from app.settings import Settings

Tree = Mapping[str, Any]
Fact = Callable[[Ran], frozenset[str]]
"""The ways in which a run shows a fact; the fact stays if one of the first ways stays."""

_CONTROLLERS = ("system:kube-scheduler", "system:serviceaccount:kube-system:")


def lines(path: Path) -> list[dict[str, Any]]:
    """The events of a bundle as they are written."""
    with zipfile.ZipFile(path) as bundle:
        return [json.loads(line) for line in bundle.read("events.jsonl").splitlines()]


def place_of(line: Tree) -> tuple[str, str, str, str]:
    """Group, resource, namespace and name of the object of a line."""
    payload = line["payload"]
    return payload["group"], payload["resource"], payload["namespace"], payload["name"]


def smaller(path: Path) -> Iterator[tuple[str, list[int]]]:
    """Each object and each later write of users, by its words and the inputs that stay.

    Inputs are numbered. A namespace goes with what is in it, because nothing can be made there.
    """
    inputs = [line for line in lines(path) if is_input(line)]
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


def is_input(line: Tree) -> bool:
    """Whether no controller made the event."""
    user = line["stamp"]["actor"]["user"]
    return line["type"].startswith("Object") and not user.startswith(_CONTROLLERS)


class Deciding:
    """Decides subsets of a bundle's inputs, as its settings say."""

    def __init__(self, path: Path) -> None:
        self.source = anyio.run(sources.read_files, Settings(), (path,), None)
        self.runner = Runner(self.source.decided, self.source.info, Engines())

    @property
    def count(self) -> int:
        """The number of inputs."""
        return len(self.source.decided.steps)

    def run(self, kept: Sequence[int]) -> Ran:
        """What the controllers make of these inputs."""
        return self.runner.run(Candidate(kept=frozenset(kept), until=self.source.last))


def evicted(pod: str) -> Fact:
    """That a pod is evicted, with the reason of its condition."""

    def ways(ran: Ran) -> frozenset[str]:
        told = conditions(ran.events, pod, "DisruptionTarget", "True")
        return frozenset(condition["reason"] for condition in told)

    return ways


def unschedulable(pod: str) -> Fact:
    """That a pod cannot be scheduled, with its message without numbers and names."""

    def ways(ran: Ran) -> frozenset[str]:
        told = conditions(ran.events, pod, "PodScheduled", "False")
        messages = (condition["message"].split("preemption:")[0] for condition in told)
        return frozenset(re.sub(r"\d+|\"[^\"]*\"", "#", message) for message in messages)

    return ways


def conditions(events: Sequence[Event], pod: str, sort: str, status: str) -> Iterator[Tree]:
    """The conditions of pods of this name (empty: of all pods) that have a status."""
    for event in events:
        if event.key[:2] == ("", "pods") and pod in ("", event.key.name):
            for condition in event.object.get("status", {}).get("conditions", ()):
                if (condition["type"], condition["status"]) == (sort, status):
                    yield condition


def violation(rule: str) -> Fact:
    """That an invariant does not hold."""

    def ways(ran: Ran) -> frozenset[str]:
        watch = InvariantWatch(ran.switches)
        watch.follow(ran.events)
        failed = {each.rule for each in watch.violations() if each.kind.is_failure}
        return frozenset(failed & {rule or next(iter(failed), "")})

    return ways


def differs(releases: str) -> Fact:
    """That pods end with another node or other devices under two releases."""
    a, b = (Switches(profile=each) for each in releases.split(","))

    def ways(ran: Ran) -> frozenset[str]:
        ends = [end_of(ran.under(switches).events) for switches in (a, b)]
        return frozenset(
            name
            for name in ends[0].keys() | ends[1].keys()
            if ends[0].get(name) != ends[1].get(name)
        )

    return ways


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


FACTS: Mapping[str, Callable[[str], Fact]] = {
    "evicted": evicted,
    "unschedulable": unschedulable,
    "violation": violation,
    "differs": differs,
}


def superfluous(path: Path, fact: Fact) -> Iterator[str]:
    """The objects and writes without which the fact still shows, in words."""
    deciding = Deciding(path)
    there = [line for line in lines(path) if is_input(line)]
    assert deciding.count == len(there), "the engine takes the same lines for inputs"
    wanted = fact(deciding.run(range(deciding.count)))
    assert wanted, "the whole bundle shows it"
    for words, kept in smaller(path):
        if kept and wanted & fact(deciding.run(kept)):
            yield words


def main() -> int:
    """Prints what could be left out; exit code 1 if there is something."""
    path, word, *about = sys.argv[1:]
    more = list(superfluous(Path(path), FACTS[word](about[0] if about else "")))
    for each in more:
        print(f"can be left out: {each}")
    return 1 if more else 0


if __name__ == "__main__":
    sys.exit(main())
