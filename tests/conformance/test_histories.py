"""Recordings of a real control plane import, join, fold to their end and keep the rules.

What is joined is imported in each run, but the long recording. That and single parts come by day,
the same for all tests of them.
"""

import pytest

from app.analysis.verify.invariants import InvariantWatch, Switches, ViolationKind
from app.domain.log import EventType
from app.service.recorded_events import IMPORTER
from tests import draws
from tests.conformance import recordings
from tests.conformance.recordings import RECORDINGS, WAYS
from tests.kept import Kept
from tests.shared_data import shared_path

_imported: Kept[tuple[str, str], recordings.Imported] = Kept()


async def imported_once(name: str, way: str) -> recordings.Imported:
    """The recording, imported once for all tests that only look at it."""
    if (name, way) not in _imported:
        _imported[name, way] = await recordings.import_paths(paths_of(name, way))
    return _imported[name, way]


OWN_EVENT = "KubeAPIReadyz"
"""Reason of the one Event that the API server writes to itself; it is in no audit log."""


WITH_ETCD = ("a-quickstart", "b-mig-partitions", "e-taints", "e-taints-rules-ignored")

ALIKE = draws.BY_DAY("imports of recordings")

SOAK = "i-soak-short"
"""The long recording: an import takes two to four CPU seconds."""

LONG = [(SOAK, way) for way in ("audit", "watch", "folder")]
"""Imports of what `joined` reads as well."""

CASES = [
    pytest.param(name, way, marks=marks)
    for name in RECORDINGS
    for way in WAYS
    if way != "etcd" or name in WITH_ETCD
    for marks in (
        [draws.ONLY]
        if (name, way) in LONG
        else []
        if way == "joined" and name != SOAK
        else [ALIKE],
    )
]

JOINED = [draws.repeated(name) if name == SOAK else name for name in RECORDINGS]


def paths_of(name: str, way: str):
    return [shared_path("histories", name, part) for part in WAYS[way]]


@draws.in_turn("rows of recordings")
@pytest.mark.parametrize(("name", "way"), CASES)
async def test_recording_folds_to_its_recorded_final_state(name, way):
    imported = await imported_once(name, way)
    wanted = recordings.read_objects(shared_path("histories", name, "final.yaml.gz"))
    found = recordings.folded_objects(imported.objects)
    kinds = {key[0] for key in wanted}
    assert {key for key in found if key[0] in kinds} == set(wanted)
    different = [key for key, tree in wanted.items() if found[key] != tree]
    assert different == []


@pytest.mark.parametrize(("name", "way"), CASES)
async def test_event_objects_are_those_of_the_cluster(name, way):
    imported = await imported_once(name, way)
    path = shared_path("histories", name, "events-final.json.gz")
    wanted = {
        key: tree
        for key, tree in recordings.read_objects(path).items()
        if tree.get("reason") != OWN_EVENT
    }
    found = {
        key: tree
        for key, tree in recordings.folded_objects(imported.objects).items()
        if key[0] == "Event" and tree.get("reason") != OWN_EVENT
    }
    assert set(found) == set(wanted)
    assert [key for key, tree in wanted.items() if found[key] != tree] == []


@pytest.mark.parametrize(("name", "way"), CASES)
async def test_rules_hold_at_every_revision(name, way):
    """All rules, with none unsure: the writes of a real control plane break none, in any format.

    But what is known of the release: its scheduler does not see the rules (C24).
    """
    imported = await imported_once(name, way)
    watch = InvariantWatch(Switches(rules_unseen=name == "e-taints-rules-ignored"))
    for event in imported.events:
        watch.note(event)
    unknown = [each for each in watch.violations() if each.kind is not ViolationKind.KNOWN]
    assert [str(found) for found in unknown] == []
    assert [str(found) for found in watch.broken() if found.kind is not ViolationKind.KNOWN] == []


@pytest.mark.parametrize("name", JOINED)
async def test_joined_recording_has_the_revisions_of_the_store(name):
    """Every change in a stream has its position in the order of the store, with or without an
    actor."""
    imported = await imported_once(name, "joined")
    versions = [
        int(event.stamp.origin.resource_version)
        for event in imported.events
        if event.is_about_object and event.stamp.origin.resource_version
    ]
    assert versions == sorted(versions)
    assert len(versions) == len(set(versions))
    changes = [event for event in imported.events if event.is_about_object]
    assert len(changes) == len(versions)


@pytest.mark.parametrize("name", JOINED)
async def test_joined_recording_names_the_actor_of_every_requested_change(name):
    """Without an actor are the first steps of pod removals and the API server's own Event."""
    imported = await imported_once(name, "joined")
    for event in imported.events:
        if event.is_about_object and event.stamp.actor == IMPORTER:
            tree = event.object
            is_first_step = (
                event.type is EventType.OBJECT_UPDATED
                and tree["kind"] == "Pod"
                and tree["metadata"].get("deletionGracePeriodSeconds") == 0
            )
            assert is_first_step or tree.get("reason") == OWN_EVENT


@pytest.mark.parametrize(
    ("name", "rebuild", "timing"),
    [("a-quickstart", True, False), ("j-api-versions", True, False)],
)
async def test_report_of_a_joined_recording(name, rebuild, timing):
    imported = await imported_once(name, "joined")
    answers = [verdict.answer for verdict in imported.report.verdicts]
    assert answers == [rebuild, True, timing]
    assert "derived" in imported.report.verdicts[2].reasons[0]


async def test_bare_audit_log_says_what_it_cannot_know():
    imported = await imported_once("a-quickstart", "audit")
    rebuild, decide, timing = imported.report.verdicts
    assert not rebuild.answer
    assert "several changes were seen as one" in rebuild.reasons[0]
    assert not decide.answer
    assert "guess" in decide.reasons[0]
    assert timing.answer


@draws.in_turn("ways")
@pytest.mark.parametrize("name", WITH_ETCD)
async def test_snapshot_of_the_store_tells_every_change_that_the_streams_saw(name):
    """The same keys, versions and operations; the store also has kinds that were not watched."""
    streams = await imported_once(name, "watch")
    store = await imported_once(name, "etcd")

    def changes(imported):
        return {
            (event.key, event.stamp.origin.resource_version): event.type
            for event in imported.events
            if event.is_about_object
        }

    seen, stored = changes(streams), changes(store)
    assert seen.items() <= stored.items()
    watched = {key[:2] for key, _ in seen}
    assert {place for place in stored if place[0][:2] in watched} == set(seen)


@pytest.mark.parametrize(
    "name", ["a-quickstart", pytest.param(SOAK, marks=draws.in_turn("rows of recordings"))]
)
async def test_time_never_falls_along_the_history(name):
    imported = await imported_once(name, "joined")
    times = [event.stamp.time for event in imported.events]
    assert times == sorted(times)


@draws.in_turn("ways")
async def test_facts_of_the_quickstart_are_found_again():
    imported = await imported_once("a-quickstart", "audit")
    kinds = {kind.resource: kind.ops for kind in imported.report.kinds}
    assert kinds["resourceclaims"] == {"ADDED": 16, "CONTEXT": 8, "DELETED": 16, "MODIFIED": 50}
    assert kinds["pods"]["ADDED"] == 16
    assert kinds["pods"]["DELETED"] == 16
