"""Fuzzes `redra minimise`: drawn histories, and predicates drawn from what they show or do not.

A history is a cluster in virtual time in which pods come and go, nodes are cordoned, rules taint
devices and slices change, perhaps with a defect planted in the engine. The predicate is drawn with
it. `tests/simulation/one_minimal.py`, which shares no code with the search, says which facts the
history shows, and whether the result shows the same one and has nothing that can be left out.
"""

import json
import random
import re
import sys
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory

from app.analysis.replay.classes import DifferenceClass
from tests.cluster import Cluster
from tests.command_line import redra
from tests.simulation import one_minimal, planted_soak
from tests.simulation.one_minimal import Fact
from tests.simulation.own_runs import OwnRuns

KINDS = ("unschedulable", "evicted", "violation", "differs", "command")
WORDS = ("counters", "allocated", "taint", "selector", "node")
"""Texts of causes: some are in the history, most are not."""

SWITCHES = (
    "profile=1.34,1.37",
    "profile=1.36,1.37",
    "profile=1.36.2,1.37",
    "quirk=q1",
    "quirk=q3",
    "quirk=c15",
    "quirk=c24",
    "gate=DRADeviceTaints",
    "gate=DRAPartitionableDevices",
)
CLASSES = {
    "moved": "moved",
    "newly placed": "placed",
    "newly unschedulable": "placed",
    "evicted": "evicted",
    "spared": "spared",
}
"""The classes of differences that the own check sees, each with its word for it."""

NAMED = (
    f"{sys.executable} -c 'import sys, zipfile; "
    'sys.exit(b"{}" not in zipfile.ZipFile(sys.argv[1]).read("events.jsonl"))\' {{}}'
)
"""A command that exits with 0 for a bundle in which a text stands."""


@dataclass(frozen=True)
class Case:
    """A history in a bundle, the predicate, and its fact for the own check."""

    predicate: str
    fact: str
    about: str


def history(chance: random.Random) -> Cluster:
    """A soak, and drawn changes at its end."""
    cluster = planted_soak.soak(chance.randrange(1_000_000), chance.randrange(6, 16))
    for number in range(chance.randrange(5)):
        node = f"node-{chance.randrange(planted_soak.NODES)}"
        match chance.randrange(5):
            case 0:
                spec = {"spec": {"unschedulable": True}}
                cluster.patch("nodes", node, spec)
            case 1:
                effect = chance.choice(("NoExecute", "NoSchedule"))
                selector = {"driver": "gpu.example.com", "pool": node}
                cluster.rule(f"rule-{number}", selector=selector, effect=effect)
            case 2:
                cluster.pod(f"late-{number}", template=chance.choice(("two", "part", "one")))
            case 3 if node in cluster.names("resourceslices"):
                cluster.delete("resourceslices", node)
            case _:
                cluster.pod(f"stray-{number}", template="one", nodeSelector={"no": "where"})
        cluster.settle().wait(chance.random() * 20)
    return cluster


def predicate(chance: random.Random, cluster: Cluster, defect: str) -> Case:
    """A predicate that the history may show; more often one that it does show."""
    events, kind = cluster.line.events, chance.choice(KINDS)
    match kind:
        case "unschedulable" | "evicted":
            sort, status = ("PodScheduled", "False")
            if kind == "evicted":
                sort, status = ("DisruptionTarget", "True")
            named = sorted({each.key.name for each in events if each.key[1] == "pods"})
            shown = [
                name
                for name in named
                if next(one_minimal.conditions(events, name, sort, status), None) is not None
            ]
            pod = chance.choice(("", chance.choice(shown or named), chance.choice(named)))
            because = f" because {chance.choice(WORDS)}" if chance.random() < 0.3 else ""
            return Case(f"{kind} {pod}".strip() + because, kind, pod)
        case "violation":
            rules = [each.rule for each in planted_soak.DEFECTS.values()]
            own = planted_soak.DEFECTS[defect].rule if defect else ""
            rule = chance.choice(("", own, own, chance.choice(rules)))
            return Case(f"violation {rule}".strip(), kind, rule)
        case "differs":
            switch = chance.choice(SWITCHES)
            return Case(f"differs {switch}", kind, switch.removeprefix("profile="))
        case _:
            words = NAMED.format(chance.choice(("nodeSelector", "DeviceTaintRule", "part-2", "zz")))
            return Case(f"command {words}", kind, words)


def check(case: Case, bundle: Path, small: Path, *, seconds: int = 0) -> str:
    """Minimises and judges; the words say what came of it. Raises AssertionError.

    With `seconds` the search may end before its end. Its result must show the predicate then, too.
    """
    bound = ("--seconds", seconds) if seconds else ()
    code, out, error = redra(
        "minimise", bundle, "--keep", case.predicate, "-o", small, "--output", "json", *bound
    )
    whole = fact_of(case, "")
    sides = [OwnRuns(bundle, is_recorded=True).whole]
    if case.fact != "difference":
        sides.append(OwnRuns(bundle).whole)
    shown = any(map(whole, sides))
    if code == 2:
        assert "does not show it" in error, error
        assert not small.exists(), "a refusal leaves no file"
        # A cause in words is narrower than the fact, and a difference needs more than another end.
        assert "because" in case.predicate or case.fact == "differs" or not shown, (case, shown)
        return "not shown"
    assert code == 0, error
    report = json.loads(out)
    assert report["minimal"] or seconds, report
    pod, _, said = report["sighting"].partition(": ")
    fact = fact_of(case, pod.rpartition("/")[2])
    if case.fact == "unschedulable":
        fact = saying(fact, said.partition(": ")[2])
    # Control planes may differ in more than where pods and claims end.
    kind = next((CLASSES[each] for each in CLASSES if report["predicate"].endswith(each)), "")
    if case.fact == "differs" and kind:
        fact = one_minimal.differs(f"{case.about} {kind}")
        shown = any(map(fact, sides))
    if case.fact == "difference" and case.about != DifferenceClass.AFTER_END:
        # A shorter history has others after its end.
        fact = about_the_same(fact, whole(sides[0]))
    is_recorded = report["decisions"] == "recorded"
    faults = one_minimal.impossible(OwnRuns(small, is_recorded=is_recorded).whole)
    whole_faults = map(one_minimal.impossible, sides if faults else ())
    assert faults <= frozenset[str]().union(*whole_faults), (case, faults)
    if case.fact != "differs" or kind:
        assert shown, case
        if not report["minimal"]:
            assert fact(OwnRuns(small, is_recorded=is_recorded).whole), case
            return f"{report['eventsBefore']} events to {report['events']} at the bound"
        more = list(one_minimal.superfluous(small, fact, is_recorded=is_recorded))
        assert more == [], (case, more)
    if not report["minimal"]:
        return f"{report['eventsBefore']} events to {report['events']} at the bound"
    # The result shows the predicate to the command, too, and gets no smaller.
    again = small.with_name("again.zip")
    code, out, error = redra(
        "minimise", small, "--keep", case.predicate, "-o", again, "--output", "json"
    )
    assert code == 0, error
    assert json.loads(out)["inputs"] == report["inputs"], (report, out)
    return f"{report['eventsBefore']} events to {report['events']}"


def fact_of(case: Case, pod: str) -> Fact:
    """The fact of the own check; of a pod, where the predicate is about pods."""
    about_pods = case.fact in ("unschedulable", "evicted")
    return one_minimal.FACTS[case.fact](case.about or (pod if about_pods else ""))


def saying(fact: Fact, message: str) -> Fact:
    """The fact with one of its messages: that of the result, not one of an earlier attempt."""
    words = message.partition("preemption:")[0].partition("…")[0].strip()
    plain = re.sub(r"\d+|\"[^\"]*\"", "#", words)
    return lambda ran: frozenset(way for way in fact(ran) if way.startswith(plain))


def about_the_same(fact: Fact, ways: frozenset[str]) -> Fact:
    """The fact, about an object of these ways: the result shows what the whole shows."""
    meant = set(map(_subject, ways))
    return lambda ran: frozenset(way for way in fact(ran) if _subject(way) in meant)


def _subject(way: str) -> str:
    """The object of a way in which a difference shows: `ASPECT OBJECT: DETAIL`."""
    return way.partition(": ")[0].rpartition(" ")[2]


def run(*, cases: int, seed: int) -> list[str]:
    """Draws and checks; prints a line for each case, and returns what came of each."""
    outcomes = []
    for number in range(cases):
        chance = random.Random(f"minimals {seed} {number}")
        defect = chance.choice(("", "", *planted_soak.DEFECTS))
        with ExitStack() as stack:
            if defect:
                stack.enter_context(planted_soak.planted(defect))
            folder = Path(stack.enter_context(TemporaryDirectory()))
            cluster = history(chance)
            case = predicate(chance, cluster, defect)
            bundle = folder / "drawn.zip"
            planted_soak.write(cluster, bundle)
            said = check(case, bundle, folder / "small.zip")
        outcomes.append(said)
        shown = case.predicate.partition(" -c ")[0]
        print(f"{seed} {number} {defect or 'sound'}, {shown}: {said}", flush=True)
    return outcomes
