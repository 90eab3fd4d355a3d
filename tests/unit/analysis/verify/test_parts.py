"""Verification in parts: what is found is the same, wherever the history is divided.

Recordings, and the revisions at which a history is divided in two, come by day.
"""

import itertools
import pickle
from collections.abc import Callable, Sequence

import msgspec
import pytest

from app.adapters.memory import MemoryLog
from app.adapters.packed_events import PackedEvents
from app.adapters.shared_events import SharedBytes, SharedEvents
from app.analysis.verify import parts as verifying_parts
from app.analysis.verify.allocation_index import AllocationIndex
from app.analysis.verify.invariants import InvariantWatch
from app.analysis.verify.parts import START, Cut, Division, PartFindings, VerifiedPart
from app.bootstrap.deciders import deciders_of
from app.bootstrap.verifying import folding_ahead, part_workers
from app.bootstrap.verifying.folding_ahead import Assigned, LogFollowers
from app.domain.log import Actor, Event, EventType, HistoryId, HistoryInfo, Revision, chain
from app.domain.log.event import GENESIS
from app.domain.log.pages import Page
from app.domain.values import json_tree
from app.domain.values.json_tree import JsonObject
from app.service.replays import verifying
from app.service.replays.first_pass import FirstPass
from app.service.replays.replaying import ReplayBounds
from app.service.replays.verifying import Sharing, VerifyReport
from tests import draws
from tests.cluster import Cluster
from tests.unit.analysis.invariants.test_rules import Story
from tests.unit.analysis.invariants.worlds import key_of
from tests.unit.service.test_replaying import history_of, imported_log, resealed, story

BOUNDS = ReplayBounds(page_max=50)
ANYWHERE = Division(load=0, start=0, fold=0, worth_percent=100, apart=1)
"""Other processes cost nothing, so a history is divided into as many parts as are allowed."""

Lie = Callable[[Event, JsonObject], None]


class InThisProcess:
    """Verifies parts one after the other, through the same bytes as other processes.

    Where the number of parts is even, events are folded before a verifier gets its part: as many as
    may be, or half of them. `ahead` counts these parts.
    """

    def __init__(self, history: HistoryInfo, count: int) -> None:
        self.count = count
        self.parts: list[VerifiedPart] = []
        self.started = self.ahead = 0
        self._history = history
        self._events = PackedEvents()
        self._shared = SharedEvents()
        self._spans: list[SharedBytes] = []

    def expect(self, beside: int) -> None:
        assert beside == 0, "no views are kept"

    def keep(self, events: Sequence[Event], kept: object) -> None:
        self._events.add(events)
        self._spans.append(self._shared.add(events))

    async def start(self, parts: Sequence[VerifiedPart]) -> None:
        self.started = len(parts)

    async def verify(
        self, parts: Sequence[VerifiedPart], reached: Callable[[int, Revision], None]
    ) -> list[PartFindings]:
        self.parts += parts
        found: list[PartFindings] = []
        for place, part in enumerate(parts):
            latest = min(part.after - 1, *part.observers) if part.observers else part.after - 1
            end = Revision(latest if place % 4 < 2 else latest // 2)
            if self.count % 2 == 0 and part.may_continue(end, part.deciders):
                answer = self._verify_ahead(part, end)
            else:
                sent = pickle.loads(pickle.dumps((place, self._history, part)))
                answer = part_workers.verify_part(self._events.content(), sent)
            found.append(pickle.loads(pickle.dumps(answer)))
            reached(place, part.until)
        return found

    def _verify_ahead(self, part: VerifiedPart, end: Revision) -> PartFindings:
        self.ahead += 1
        assigned = Assigned(self._shared.put(pickle.dumps(part)))
        heard = iter([LogFollowers(part.deciders), *self._spans, assigned])
        return folding_ahead.verify_ahead(self._history, self._shared, end, heard)


async def verify(
    log: MemoryLog, info: HistoryInfo, *, parts: int = 1, until: int | None = None
) -> tuple[VerifyReport, list[VerifiedPart]]:
    """The report of verifying in so many parts, and the parts but for the first."""
    head = (await log.head(info.id)).revision
    workers = InThisProcess(info, parts)
    told: list[int] = []
    others: set[int] = set()

    def tell(doing: str, revision: int, _: int) -> None:
        if "again" in doing:
            told.append(revision)
            others.add(workers.started)

    report = await verifying.verify(
        log,
        info,
        until=head if until is None else Revision(until),
        deciders=deciders_of(info),
        bounds=BOUNDS,
        sharing=Sharing(workers=workers if parts > 1 else None, division=ANYWHERE),
        progress=tell,
    )
    late = [part for part in workers.parts if part.after > 1 and not part.begun]
    assert parts % 2 or workers.ahead >= len(late) // 2, "most parts had been begun"
    assert not told or others == {len(workers.parts)}, "others start before this process computes"
    assert told == sorted(told)
    assert told[-1:] == [report.revision][: len(told)], "in the end everything has been reached"
    return report, workers.parts


async def check_same_in_parts(
    events: Sequence[Event], counts: Sequence[int] = (2, 3, 7, 40), until: int | None = None
) -> VerifyReport:
    """Whatever the number of parts, the report is that of one process."""
    log, info = await history_of(events)
    alone, _ = await verify(log, info, until=until)
    for count in counts:
        report, parts = await verify(log, info, parts=count, until=until)
        assert len(parts) >= min(count - 1, 9), "the history was really divided"
        assert report.to_json() == alone.to_json()
        assert msgspec.json.encode(report) == msgspec.json.encode(alone)
    return alone


@pytest.fixture(scope="module")
def told() -> Cluster:
    """The story, and then pods that wait until a node comes: they are placed in one append."""
    cluster = story()
    for number in range(6):
        cluster.pod(f"q{number}", template="gpu")
    cluster.wait(5)
    cluster.node("n3")
    cluster.slice("n3", 4)
    cluster.wait(20)
    return cluster


@draws.in_turn("ways")
async def test_a_sound_history_is_the_same_in_parts(told: Cluster) -> None:
    assert (await check_same_in_parts(told.line.events)).agrees


async def test_part_whose_events_were_folded_before_it_was_known_is_verified_alike() -> None:
    """A short history with decisions of a few controllers, sound and with a wrong one at its end.

    What is folded ahead holds devices, so who forgets it chooses them again.
    """
    cluster = Cluster()
    cluster.device_class()
    cluster.node("n1")
    cluster.slice("n1", 3)
    cluster.template()
    for number in range(3):
        cluster.pod(f"p{number}", template="gpu")
        cluster.wait(2)
    assert (await check_same_in_parts(cluster.line.events, (2, 4))).agrees
    wrong = max(
        event.revision
        for event in cluster.line.events
        if event.type is EventType.DECISION_RECORDED and event.object["controller"] == "scheduling"
    )

    def lie(event: Event, tree: JsonObject) -> None:
        if event.revision == wrong:
            tree["outcome"] = "Imagined"

    report = await check_same_in_parts(resealed(cluster.line.events, lie), (2,))
    assert [found.revision for found in report.decisions.differences] == [wrong]


def test_part_ends_where_an_event_cannot_be_folded() -> None:
    """What comes after it is not judged, also a decision that observed a later state."""
    info = HistoryInfo(id=HistoryId(1), name="h")
    story = Story()
    for number in range(4):
        story.put(key_of("nodes", f"n{number}"), {})
    decision = msgspec.structs.replace(
        story.events[3],
        type=EventType.DECISION_RECORDED,
        stamp=msgspec.structs.replace(story.events[3].stamp, observed=3),
    )
    for broken, events, problem, reason in (
        (None, 4, "", "the observed revision is not in the log"),
        (3, 2, "revision 3: it cannot be folded (", "an event before it cannot be folded"),
    ):
        part = VerifiedPart(
            after=Revision(0),
            observers={Revision(7): (decision,)},
            deciders=frozenset(),
            index=AllocationIndex(),
        )
        verifier = verifying_parts.PartVerifier(part, deciders_of(info))
        for event in story.events:
            body = b"{" if event.revision == broken else event.body
            verifier.take_sound(msgspec.structs.replace(event, body=body))
        findings = verifier.findings()
        assert findings.events == findings.revision == events
        assert findings.unfoldable.startswith(problem)
        assert bool(findings.unfoldable) is bool(problem)
        assert set(findings.decisions.reasons) == {reason}


@pytest.mark.parametrize(
    ("ahead", "after", "observed", "deciders", "begun", "expected"),
    [
        pytest.param(9, 10, [], "a", 0, True, id="nothing passed"),
        pytest.param(10, 10, [], "a", 0, False, id="the first event of the part is folded"),
        pytest.param(9, 10, [9, 20], "a", 0, True, id="the next event is observed"),
        pytest.param(9, 10, [20, 8], "a", 0, False, id="an observed state is gone"),
        pytest.param(9, 10, [], "ab", 0, True, id="two that followed"),
        pytest.param(9, 10, [], "abc", 0, False, id="one that did not follow"),
        pytest.param(9, 10, [], "a", 3, False, id="controllers that began later"),
    ],
)
def test_events_may_be_folded_ahead_up_to_the_first_that_matters(
    ahead: int, after: int, observed: list[int], deciders: str, begun: int, expected: bool
) -> None:
    part = VerifiedPart(
        after=Revision(after),
        observers={Revision(each): () for each in observed},
        deciders=frozenset(deciders),
        index=AllocationIndex(),
        begun=Revision(begun),
    )
    assert part.may_continue(Revision(ahead), {"a", "b"}) is expected


@draws.in_turn("ways")
async def test_every_place_at_which_it_may_be_divided_is_sound(told: Cluster) -> None:
    """Two parts, with the seam at each revision before which no effect is expected."""
    log, info = await history_of(told.line.events)
    alone, _ = await verify(log, info)
    ahead = FirstPass(division=ANYWHERE, invariants=InvariantWatch())
    for event, parts in Page(told.line.events).splits:
        ahead.take(event, parts)
    seams = [cut.revision for cut in ahead.cuts]
    decisions = [each for each in told.line.events if each.type is EventType.DECISION_RECORDED]
    assert {each.revision - 1 for each in decisions} - {0} <= set(seams)
    assert any(
        each.stamp.observed < seam < each.revision for each in decisions for seam in seams
    ), "some decision observed what lies before a seam, and stands behind it"
    for seam in draws.of_today(seams):
        found, parts = await verify_at(log, info, seam)
        assert [part.after for part in parts] == [seam]
        assert found.to_json() == alone.to_json()


async def verify_at(
    log: MemoryLog, info: HistoryInfo, seam: Revision
) -> tuple[VerifyReport, list[VerifiedPart]]:
    """Verify in two parts with the seam there."""
    with pytest.MonkeyPatch.context() as patch:
        cut = Cut(revision=seam, events=seam, cost=seam)
        patch.setattr(verifying_parts, "divide", lambda *_: [cut])
        return await verify(log, info, parts=2)


@draws.in_turn("wrongs")
async def test_a_difference_is_found_in_whatever_part_it_lies(told: Cluster) -> None:
    decided = [
        event
        for event in told.line.events
        if event.type is EventType.DECISION_RECORDED and event.object["controller"] == "scheduling"
    ]
    for wrong in (decided[0], decided[len(decided) // 2], decided[-1]):

        def lie(event: Event, tree: JsonObject, wrong: Event = wrong) -> None:
            if event.revision == wrong.revision:
                tree["outcome"] = "Imagined"

        report = await check_same_in_parts(resealed(told.line.events, lie), (2, 5))
        assert [found.revision for found in report.decisions.differences] == [wrong.revision]


@draws.in_turn("wrongs")
async def test_many_differences_are_named_in_their_order(told: Cluster) -> None:
    def lie(event: Event, tree: JsonObject) -> None:
        if event.type is EventType.DECISION_RECORDED:
            tree["plan"] = "sha256:00"

    report = await check_same_in_parts(resealed(told.line.events, lie))
    named = [found.revision for found in report.decisions.differences]
    assert len(named) == 20
    assert sum(report.decisions.counts.values()) > 20


def steal(event: Event, tree: JsonObject) -> None:
    """Every allocation is of a device that nobody has, or that others have."""
    results = json_tree.objects(tree, "status", "allocation", "devices", "results")
    for result in results if event.key.resource == "resourceclaims" else ():
        result["device"] = "gpu-0" if event.revision % 2 else "gpu-9"


@draws.in_turn("wrongs")
async def test_objects_in_another_form_are_named_in_order_in_whatever_part(told: Cluster) -> None:
    """A pod and a node that a client wrote, early and late."""
    events = told.line.events
    created = [event for event in events if event.type is EventType.OBJECT_CREATED]
    pods, nodes = (
        [event.revision for event in created if event.key.resource == resource]
        for resource in ("pods", "nodes")
    )
    written = {pods[0], nodes[-1]}
    previous, changed = GENESIS, []
    for event in events:
        body = event.body + b" " if event.revision in written else event.body
        changed.append(chain.relinked(event, body, previous))
        previous = changed[-1].hash
    report = await check_same_in_parts(changed, (2, 5))
    words = "its object is not in the form in which objects are written"
    assert report.chain.problems == tuple(f"revision {each}: {words}" for each in sorted(written))


@draws.in_turn("wrongs")
async def test_effects_and_invariants_are_the_same_in_parts(told: Cluster) -> None:
    """Violations that begin in one part and end in another are told once, from where to where."""
    report = await check_same_in_parts(resealed(told.line.events, steal))
    assert not report.effects.agrees
    assert {found.rule for found in report.violations} >= {
        "allocated-device-existed",
        "device-in-one-claim",
    }
    ended = [found for found in report.violations if found.end is not None]
    assert any(found.end.revision > found.begin.revision + 1 for found in ended)


@draws.in_turn("wrongs")
@pytest.mark.parametrize("broken", [2, 60, 120])
async def test_a_broken_chain_is_named_whatever_the_parts(told: Cluster, broken: int) -> None:
    log, info = await history_of(told.line.events)
    stored = (await log.read(info.id, after=Revision(broken - 1), limit=1))[0]
    before = stored.hash
    stored.hash = bytes(32)
    try:
        alone, _ = await verify(log, info)
        report, _ = await verify(log, info, parts=5)
    finally:
        stored.hash = before
    assert alone.chain.problem.startswith(f"the hash chain breaks at revision {broken}:")
    assert report.to_json() == alone.to_json()


@draws.in_turn("wrongs")
async def test_decisions_that_claim_to_have_observed_the_future_are_told_once(
    told: Cluster,
) -> None:
    """One that observed a later part, one that observed what is not there, one from the start."""
    head = told.line.head.revision
    decided = [each for each in told.line.events if each.type is EventType.DECISION_RECORDED]
    claimed = {
        decided[3].revision: head - 20,
        decided[5].revision: head + 7,
        decided[8].revision: head,
        decided[-2].revision: 0,
        decided[-4].revision: 12,
    }
    events = [
        msgspec.structs.replace(
            event,
            stamp=msgspec.structs.replace(
                event.stamp, observed=claimed.get(event.revision, event.stamp.observed)
            ),
        )
        for event in told.line.events
    ]
    report = await check_same_in_parts(resealed(events, lambda *_: None))
    assert report.decisions.reasons == {
        "the observed revision is not in the log": {"system:kube-scheduler": 2}
    }


@draws.in_turn("ways")
@pytest.mark.parametrize("until", [1, 2, 40, 101])
async def test_a_history_cut_short_is_the_same_in_parts(told: Cluster, until: int) -> None:
    """Also one with fewer events than parts, and one that ends among the effects of a decision."""
    log, info = await history_of(told.line.events)
    alone, _ = await verify(log, info, until=until)
    for count in (2, 64):
        report, _ = await verify(log, info, parts=count, until=until)
        assert report.to_json() == alone.to_json()
    assert report.revision == until


async def test_an_empty_history_is_verified_in_parts() -> None:
    log, info = await history_of([])
    report, parts = await verify(log, info, parts=3)
    assert (report.events, report.agrees, parts) == (0, True, [])


@draws.in_turn("wrongs")
async def test_an_effect_that_is_missing_at_the_end_of_a_part_is_found(told: Cluster) -> None:
    """The last event before a decision is left out: what follows is the next part's."""
    events = told.line.events
    reports = [
        event.revision
        for event, following in itertools.pairwise(events)
        if event.key.resource == "events"
        and following.type is EventType.DECISION_RECORDED
        and following.stamp.observed == event.stamp.observed
    ]
    left_out = [event for event in events if event.revision != reports[-2]]
    renumbered = [
        msgspec.structs.replace(event, revision=Revision(number))
        for number, event in enumerate(left_out, start=1)
    ]
    report = await check_same_in_parts(resealed(renumbered, lambda *_: None), (2, 9, 40))
    assert [found.again["key"] for found in report.effects.differences] == [
        str(events[reports[-2] - 1].key)
    ]


@draws.in_turn("ways")
@pytest.mark.parametrize("count", [2, 8])
@pytest.mark.parametrize("name", ["e-taints-rules-ignored", "i-soak-short"])
async def test_allocations_of_a_real_scheduler_are_judged_alike_in_parts(
    name: str, count: int
) -> None:
    """Releases before a seam may be assumed after it; placements against rules are told."""
    log, info = await imported_log(name, {"DRADeviceTaintRules": True})
    alone, _ = await verify(log, info)
    report, parts = await verify(log, info, parts=count)
    assert len(parts) == count - 1
    assert report.to_json() == alone.to_json()
    assert alone.allocations.total > 20


@draws.in_turn("ways")
async def test_a_foreign_actor_takes_part_at_a_seam(told: Cluster) -> None:
    """Writes of others between decisions end the effects that are expected, in any part."""
    someone = Actor(user="mallory")

    def changed(event: Event) -> Event:
        if event.key.resource != "resourceclaims" or event.revision % 3:
            return event
        stamp = msgspec.structs.replace(event.stamp, actor=someone)
        return msgspec.structs.replace(event, stamp=stamp)

    events = [changed(event) for event in told.line.events]
    await check_same_in_parts(resealed(events, lambda *_: None))


EVEN = [Cut(revision=Revision(n * 10), events=n * 10, cost=n * 1_000) for n in range(1, 10)]
END = Cut(revision=Revision(100), events=100, cost=10_000)


@pytest.mark.parametrize(
    ("division", "count", "begins"),
    [
        (Division(load=0, start=0, fold=0, worth_percent=100), 1, []),
        (Division(load=0, start=0, fold=0, worth_percent=100), 2, [50]),
        (Division(load=0, start=0, fold=0, worth_percent=100), 5, [20, 40, 60, 80]),
        (Division(load=0, start=0, fold=50), 2, [70]),
        (Division(load=0, start=4_000, fold=0), 2, [70]),
        (Division(load=0, start=9_500, fold=0), 2, []),
        (Division(load=0, start=0, fold=100), 8, []),
        (Division(load=3_500, start=0, fold=0), 2, [50]),
        (Division(load=4_500, start=0, fold=0), 2, []),
        (Division(load=0, start=0, fold=0, beside=40), 2, [30]),
        (Division(load=0, start=0, fold=0, beside=200, apart=1), 2, [10]),
    ],
)
def test_parts_are_ready_at_about_the_same_time(
    division: Division, count: int, begins: list[int]
) -> None:
    """Others are ready later: they start, and fold what lies before their part."""
    found = verifying_parts.divide(EVEN, END, count, division)
    assert [cut.revision for cut in found] == begins


@pytest.mark.parametrize(
    ("division", "number", "count", "folded"),
    [
        (Division(ahead=1), 0, 4, 0),
        (Division(ahead=1), 1, 4, 25),
        (Division(ahead=1), 2, 3, 66),
        (Division(), 2, 3, 0),
        (Division(ahead=1, beside=30, usual=100), 1, 2, 35),
        (Division(ahead=1, beside=30, usual=100), 1, 3, 13),
        (Division(ahead=1, beside=30, usual=100), 2, 3, 56),
        (Division(ahead=1, beside=90, usual=30), 1, 2, 0),
    ],
)
def test_events_are_folded_ahead_up_to_an_equal_share(
    division: Division, number: int, count: int, folded: int
) -> None:
    assert division.fold_ahead(100, number, count) == folded
    assert type(division.fold_ahead(100, number, count)) is int


@pytest.mark.parametrize(
    ("division", "begin", "cost"),
    [
        (Division(start=0, fold=3), 50, 150),
        (Division(start=7, fold=3), 50, 157),
        (Division(start=0, fold=3, ahead=9), 40, 120),  # passed, so folded anew
        (Division(start=0, fold=3, ahead=9), 50, 150),
        (Division(start=0, fold=3, ahead=9), 60, 30),  # 50 are folded
        (Division(start=0, fold=3, ahead=1), 60, 80),  # in the time of 100
        (Division(start=0, fold=1, ahead=9), 51, 1),
    ],
)
def test_part_costs_what_is_not_folded_ahead(division: Division, begin: int, cost: int) -> None:
    cut = Cut(revision=Revision(begin), events=begin, cost=0)
    assert division.cost_before(cut, END, 1, 2) == cost


def test_a_history_without_a_place_to_divide_stays_whole() -> None:
    assert verifying_parts.divide([], END, 4, ANYWHERE) == []
    assert verifying_parts.divide([], START, 4, ANYWHERE) == []
