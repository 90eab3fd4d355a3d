"""Fuzzes `redra minimise` with recordings and incidents, and predicates drawn from what they show.

Each history is read twice by `tests/simulation/own_runs.py`: as it was recorded, and decided
again. From the raw objects of both come the pods that wait or were evicted, the causes that their
attempts count, the broken rules, the classes of differences, and the objects that a command looks
for. With `differs`, every gate, every quirk and each pair of releases is tried. As for drawn
histories, `tests/simulation/one_minimal.py` judges the result.
"""

import random
from collections.abc import Callable, Iterator, Mapping
from dataclasses import fields
from functools import cache
from itertools import combinations
from pathlib import Path
from tempfile import TemporaryDirectory

import anyio

from app.adapters.history.formats.bundle import BundleWriter
from app.analysis.incidents.incident import Incident, IncidentVariant
from app.analysis.verify.invariants.watch import InvariantWatch
from app.bootstrap.gallery import incident_files, playing
from app.bootstrap.stores import memory_store
from app.domain.allocation.quirks import Quirks
from app.domain.controllers.quirks import ControllerQuirks
from app.domain.objects import profile as profiles
from app.service import exporting
from tests.fuzz import minimals
from tests.fuzz.minimals import Case
from tests.shared_data import REPOSITORY, shared_path
from tests.simulation import one_minimal, own_runs
from tests.simulation.own_runs import OwnRun, OwnRuns

RECORDINGS = (
    "j-api-versions",
    "a-quickstart",
    "c-multihost-tpu",
    "e-taints",
    "e-taints-rules-ignored",
    "b-mig-partitions",
)
RELEASES = (*profiles.VERSIONS, "1.36.2")
SWITCHES = {
    "gate": sorted(set(profiles.GATES) - set(profiles.FIXED)),
    "quirk": [each.name for each in (*fields(ControllerQuirks), *fields(Quirks))],
    "profile": [",".join(pair) for pair in combinations(RELEASES, 2)],
}
"""The values of each switch that two control planes can differ in."""


class Shown:
    """What a history shows, as recorded and when it is decided again."""

    def __init__(self, path: Path) -> None:
        self.sides = [OwnRuns(path).whole, OwnRuns(path, is_recorded=True).whole]

    def cases(self, kind: str) -> list[Case]:
        """All predicates of a kind."""
        return list(KINDS[kind](self))

    def unschedulable(self) -> Iterator[Case]:
        """The pods that wait."""
        for pod in self._pods("PodScheduled", "False"):
            yield Case(f"unschedulable {pod}", "unschedulable", pod)

    def because(self) -> Iterator[Case]:
        """The pods that wait, each with each cause that its attempts count."""
        for pod in self._pods("PodScheduled", "False"):
            counted = one_minimal.counted(self.sides[0], pod)
            for cause in sorted({each.partition(":")[0] for each in counted}):
                words = f"{pod} because {cause}"
                yield Case(f"unschedulable {words}", "unschedulable", words)

    def evicted(self) -> Iterator[Case]:
        """The pods that are evicted, each also with the reason."""
        for pod in self._pods("DisruptionTarget", "True"):
            yield Case(f"evicted {pod}", "evicted", pod)
            reasons = set[str]().union(*map(one_minimal.evicted(pod), self.sides))
            for reason in sorted(reasons):
                yield Case(f"evicted {pod} because {reason}", "evicted", pod)

    def open(self) -> Iterator[Case]:
        """The predicates that leave the pod, the rule or the class to the history."""
        for word in ("unschedulable", "evicted", "violation"):
            yield Case(word, word, "")

    def in_namespaces(self) -> Iterator[Case]:
        """The pods that wait or are evicted, with their namespaces."""
        for kind, status, word in (
            ("PodScheduled", "False", "unschedulable"),
            ("DisruptionTarget", "True", "evicted"),
        ):
            for pod in self._pods(kind, status):
                for space in sorted(self._namespaces(pod)):
                    yield Case(f"{word} {space}/{pod}", word, pod)

    def classes(self) -> Iterator[Case]:
        """All values of all switches, each with each class of differences."""
        for switch in SWITCHES:
            for case in self.differing(switch):
                for kind in minimals.CLASSES:
                    yield Case(f"{case.predicate} {kind!r}", case.fact, case.about)

    def violations(self) -> Iterator[Case]:
        """The broken rules."""
        for rule in sorted({rule for side in self.sides for rule in _broken(side)}):
            yield Case(f"violation {rule}", "violation", rule)

    def differing(self, switch: str) -> Iterator[Case]:
        """All values of a switch, whether or not they make a difference."""
        for value in SWITCHES[switch]:
            words = value if switch == "profile" else f"{switch}={value}"
            yield Case(f"differs {switch}={value}", "differs", words)

    def differences(self) -> Iterator[Case]:
        """The classes of what a decide replay finds."""
        report = own_runs.decide(self.sides[1])
        for reason in sorted({str(each.reason) for each in report.differences}):
            yield Case(f"difference '{reason}'", "difference", reason)

    def commands(self) -> Iterator[Case]:
        """For each kind of object, a command that looks for the name of the last one."""
        names = {event.key.resource: event.key.name for event in self.sides[1].events}
        for name in sorted(set(names.values())):
            words = minimals.NAMED.format(name)
            yield Case(f"command {words}", "command", words)

    def _namespaces(self, pod: str) -> set[str]:
        """The namespaces that have had a pod of this name."""
        return {
            event.key.namespace
            for side in self.sides
            for event in side.events
            if (event.key.resource, event.key.name) == ("pods", pod)
        }

    def _pods(self, sort: str, status: str) -> list[str]:
        """The pods that have had a condition."""
        return sorted({
            event.key.name
            for side in self.sides
            for event in side.events
            if next(one_minimal.conditions([event], "", sort, status), None) is not None
        })  # fmt: skip


KINDS: Mapping[str, Callable[[Shown], Iterator[Case]]] = {
    "unschedulable": Shown.unschedulable,
    "because": Shown.because,
    "evicted": Shown.evicted,
    "violation": Shown.violations,
    "gate": lambda shown: shown.differing("gate"),
    "quirk": lambda shown: shown.differing("quirk"),
    "profile": lambda shown: shown.differing("profile"),
    "difference": Shown.differences,
    "command": Shown.commands,
    "open": Shown.open,
    "in namespaces": Shown.in_namespaces,
    "classes": Shown.classes,
}


def _broken(side: OwnRun) -> set[str]:
    watch = InvariantWatch(side.switches)
    watch.follow(side.events)
    return {each.rule for each in watch.violations()}


def finding_of(incident: Incident) -> Case | None:
    """The predicate that the finding of an incident is; None where it is none."""
    for fact in incident.finding:
        if fact.violated:
            return Case(f"violation {fact.violated}", "violation", fact.violated)
        if fact.pod and fact.evicted:
            return Case(f"evicted {fact.pod}", "evicted", fact.pod)
        if fact.pod and fact.node == "":
            return Case(f"unschedulable {fact.pod}", "unschedulable", fact.pod)
    return None


def histories() -> list[str]:
    """The names of all histories: recordings, then incidents."""
    return [*RECORDINGS, "maintenance", *incident_files.names()]


def path_of(name: str, folder: Path) -> Path:
    """The files of a history; an incident is played and written into the folder."""
    if name in RECORDINGS:
        return shared_path("histories", name)
    if name not in incident_files.names():
        return REPOSITORY / "examples" / "recordings" / name
    path = folder / f"{name}.zip"
    if not path.exists():
        anyio.run(_write_incident, name, path)
    return path


async def _write_incident(name: str, path: Path) -> None:
    incident = incident_files.read(name).incident
    events = playing.play(incident, IncidentVariant.BROKEN).events
    log = memory_store().log
    created = min(playing.START, events[0].stamp.time)
    settings = incident.cluster.settings()
    info = await log.create_history(name, seed=playing.SEED, settings=settings, created=created)
    await log.append(info.id, expected=await log.head(info.id), events=events)
    info = await log.find_history(name)
    writer = BundleWriter(path)
    await exporting.export_history(log, info, writer, program="tests", file=path.name)


@cache
def shown_by(path: Path) -> Shown:
    """What a history shows, read once."""
    return Shown(path)


def drawn(chance: random.Random, folder: Path) -> tuple[str, Case]:
    """A history, half of the time a recording, and one of the predicates that it may show."""
    while True:
        name = chance.choice(chance.choice((RECORDINGS, histories()[len(RECORDINGS) :])))
        cases = shown_by(path_of(name, folder)).cases(chance.choice([*KINDS]))
        if cases:
            return name, chance.choice(cases)


def run(*, cases: int, seed: int) -> list[str]:
    """Draws and checks; prints a line for each case, and returns what came of each."""
    outcomes = []
    with TemporaryDirectory() as folder:
        for number in range(cases):
            chance = random.Random(f"minimal recordings {seed} {number}")
            name, case = drawn(chance, Path(folder))
            path = path_of(name, Path(folder))
            with TemporaryDirectory() as results:
                said = minimals.check(case, path, Path(results) / "small.zip")
            outcomes.append(said)
            words = case.predicate.partition(" -c ")
            print(f"{seed} {number} {name}, {words[0]}: {said}", flush=True)
    return outcomes
