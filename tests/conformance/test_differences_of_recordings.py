"""Comparisons of recordings: with themselves read in another way, and of their forks.

Recordings compared with themselves come by day: between all of them nothing differs.
"""

from dataclasses import replace

import msgspec
import pytest

from app.analysis.diff import outcomes, text
from app.analysis.diff.classes import Class, PodAspect
from app.analysis.diff.compare import compare
from app.analysis.diff.report import DiffReport
from app.analysis.diff.sides import DiffBounds, Side
from app.analysis.edits import DeleteEdit
from app.analysis.explain import pages
from app.bootstrap import replays
from app.bootstrap.answers import differences
from app.bootstrap.rules import rules_for
from app.bootstrap.stores import Store, memory_store
from app.domain.controllers.registry import ControllerOptions
from app.domain.log import EventType
from app.domain.objects.profile import RULES_GATE, Profile
from app.domain.values.timestamps import SECOND, Instant
from app.service import diffing
from app.service.diffing import ComparisonAspect
from app.service.replays.reconciling import ReplayTimeline
from app.settings import Settings
from tests import draws
from tests.conformance.recordings import RECORDINGS, WAYS, import_paths
from tests.conformance.test_decide_recordings import replay
from tests.conformance.test_forks_of_recordings import recorded
from tests.imports import import_once
from tests.shared_data import shared_path

RULE = "evict-worker-2"


def side(name: str, line: ReplayTimeline) -> Side:
    return Side(
        name=name,
        profile=line.rules.profile,
        options=ControllerOptions(),
        events=line.events,
        revision=line.head.revision,
        until=line.now,
    )


async def compared(a: Side, b: Side, within: int = SECOND) -> DiffReport:
    return await diffing.drive(compare(a, b, DiffBounds(within=within)))


@draws.BY_DAY
@pytest.mark.parametrize("name", RECORDINGS)
async def test_audit_log_and_watches_of_one_cluster_decide_the_same(name: str) -> None:
    sides = []
    for way in ("audit", "watch"):
        found = await import_paths([shared_path("histories", name) / part for part in WAYS[way]])
        last = found.events[-1]
        sides.append(
            Side(
                name=way,
                profile=Profile(version="1.36", gates={RULES_GATE: True}),
                options=ControllerOptions(),
                events=found.events,
                revision=last.revision,
                until=last.stamp.time,
            )
        )
    # Watch streams tell of whole seconds.
    report = await compared(*sides, within=2 * SECOND)
    assert [each.pair.name for each in report.differences] == []
    assert report.same > 2


@pytest.mark.parametrize(
    ("hours", "said"),
    [(2, "B happened 120m after A"), (-2, "B happened 120m before A")],
)
async def test_recording_of_another_hour_is_compared_as_if_both_had_begun_as_one(
    hours: int, said: str
) -> None:
    found = await import_paths([shared_path("histories/e-taints/audit.jsonl.gz")])
    moved = hours * 3_600 * SECOND
    end = found.events[-1]
    a = Side(
        name="one",
        profile=Profile(version="1.36", gates={RULES_GATE: True}),
        options=ControllerOptions(),
        events=found.events,
        revision=end.revision,
        until=end.stamp.time,
    )
    later = []
    for event in found.events:
        stamp = msgspec.structs.replace(event.stamp, time=Instant(event.stamp.time + moved))
        later.append(msgspec.structs.replace(event, stamp=stamp))
    b = replace(a, name="other", events=later, until=Instant(a.until + moved), shift=moved)
    report = await compared(a, b)
    assert report.is_same
    assert any(said in line for line in pages.of_json(text.page_json(report), 200))


@draws.in_turn("ways")
async def test_pods_are_spared_in_a_fork_without_the_rule() -> None:
    recording = await recorded("e-taints")
    (made,) = [
        event.revision
        for event in await recording.events(recording.info)
        if event.key.name == RULE and event.type is EventType.OBJECT_CREATED
    ]
    with_rule = await recording.fork(made)
    recording = await recorded("e-taints")
    without = await recording.fork(made, DeleteEdit(name=f"devicetaintrule/{RULE}"))
    for line in (with_rule, without):
        line.advance(Instant(line.now + 600 * SECOND))
    a, b = side("with", with_rule), side("without", without)
    report = await compared(a, b)
    assert report.counts["spared"] > 1
    assert {each.root.name for each in report.differences} == {
        f"devicetaintrules.resource.k8s.io/{RULE}"
    }
    again = await compared(b, a)
    assert again.counts["evicted"] == report.counts["spared"]
    ends = await diffing.drive(outcomes.pods(a, b))
    spared = {f"pods/{each.pair.name}" for each in report.differences}
    assert spared <= {entry.subject for entry in ends.entries}
    schemas = rules_for(Profile(version="1.36")).schemas
    objects = await diffing.drive(outcomes.objects(a, b, schemas))
    (rule,) = [each for each in objects.entries if each.subject.endswith(f"/{RULE}")]
    assert (rule.a, rule.b) == ("exists", "does not exist")


async def again(
    name: str, *, profile: str | None = None, quirks: tuple[str, ...] = (), **bounds: int
) -> DiffReport:
    async def work(store: Store, settings: Settings, history: str, *_: object) -> DiffReport:
        report = await differences.diff_again(
            store,
            replace(settings, **bounds),
            history,
            "",
            ComparisonAspect.DECISIONS,
            1.0,
            profile,
        )
        assert isinstance(report, DiffReport)
        return report

    return await replay(work, name, quirks=quirks)


@draws.in_turn("ways")
@pytest.mark.parametrize(
    ("name", "quirks"),
    [
        ("a-quickstart", ()),
        ("c-multihost-tpu", ()),
        ("e-taints", ("c24=off",)),
        ("e-taints-rules-ignored", ()),
        ("j-api-versions", ()),
    ],
)
async def test_recording_that_is_decided_again_is_the_same(
    name: str, quirks: tuple[str, ...]
) -> None:
    report = await again(name, quirks=quirks)
    assert [each.pair.name for each in report.differences] == []
    assert report.same > 2


@draws.in_turn("ways")
async def test_difference_of_messages_alone_has_no_parting_and_no_root() -> None:
    # No run of decide is needed to see that another release says it otherwise.
    report = await again("b-mig-partitions", profile="1.37", decide_runs_max=0)
    assert not report.is_same
    assert {each.classes for each in report.differences} == {(Class.SAID,)}
    assert [each.pair.name for each in report.differences if each.parting is not None] == []
    assert report.roots() == []
    ((root, entries),) = report.texts()
    assert root.name == "settings"
    # What 1.36 adds to a refusal and 1.37 does not (r8).
    words = {"still not schedulable,", "no new claims to deallocate,"}
    assert {(each.before in words, each.after) for each in entries} == {(True, "")}
    assert text.counts_text(report).startswith("no pod has another outcome; only texts change")
    assert "they part" not in "\n".join(pages.of_json(text.page_json(report), 200))


@draws.in_turn("ways")
async def test_next_release_makes_none_of_the_seven_placements_against_rules() -> None:
    audit = await replay(replays.verify, "e-taints-rules-ignored", profile="1.36")
    forbidden = {
        f"taints/{each.objects[-1].name.partition('-dev-')[0]}"
        for each in audit.violations
        if each.rule == "placement-respects-taints"
    }
    assert len(forbidden) == 7
    report = await again("e-taints-rules-ignored", profile="1.37")
    fared = {
        each.pair.name: each
        for each in report.differences
        if each.parted.aspect is not PodAspect.MESSAGES
    }
    assert forbidden <= fared.keys()
    assert {each.root.name for each in report.differences} == {"settings"}
    for name in fared.keys() - forbidden:
        chain = [link.pair.name for link in fared[name].chain]
        assert forbidden & set(chain), f"{name} follows from {chain}"
    parted = [each.parting.b for each in fared.values() if each.parting is not None]
    assert sum("is not tolerated" in said for said in parted) >= 6


@draws.in_turn("ways")
async def test_pod_refused_for_devices_on_their_way_follows_from_their_pods() -> None:
    """One pod of two clusters is refused for devices that the log gives to others a moment later.

    They came early there, and within the same second, so that all of it is one instant.
    """
    store, names = memory_store(), ("e-taints", "e-taints-rules-ignored")
    settings = {"profile": "1.36", "recorded": True}
    for name in names:
        paths = [shared_path("histories", name)]
        await import_once(store.log, paths, name=name, settings=settings)
    report = await differences.diff(store, Settings(), *names, "", ComparisonAspect.DECISIONS, 1.0)
    assert isinstance(report, DiffReport)
    assert report.unexplained == 0
    (refused,) = [each for each in report.differences if each.pair.name == "taints/ns-0"]
    assert refused.root.name == "pods/taints/tolerate-0"
    assert [link.pair.name for link in refused.chain] == ["taints/tolerate-0"]
    assert refused.parting is not None
    assert refused.parting.device == "gpu.example.com/worker-1/gpu-0"
    assert (refused.parting.a, refused.parting.b[:12]) == ("chosen", "allocated to")
