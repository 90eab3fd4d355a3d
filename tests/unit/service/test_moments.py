"""What a text means as a moment of a history."""

import pytest

from app.adapters.memory import MemoryLog, MemoryStore
from app.analysis.capacity.largest import Devices
from app.analysis.capacity.sampling import DeviceCourse
from app.analysis.views import LiveViews
from app.domain.devices.nodes import Node
from app.domain.devices.pools import Reading
from app.domain.errors import InputError, RevisionTooLarge
from app.domain.log import EventType, Head, ObjectKey, Revision
from app.domain.objects.profile import Profile
from app.domain.objects.write.commands import PatchObject, PatchType, RecordFact
from app.domain.values import api_resources
from app.domain.values import moments as written_moments
from app.domain.values.timestamps import Instant, parse
from app.service import moments, past_views
from tests.cluster import DRIVER, T0, USER, Cluster
from tests.unit.service.pacing.world import create, key, world


@pytest.mark.parametrize("text", ["", "²", "-1", "yesterday", "9" * 19, "2026-02-30"])
def test_text_that_means_nothing_is_refused_with_examples(text: str) -> None:
    with pytest.raises(InputError, match="neither a revision nor an instant"):
        written_moments.check(text)


@pytest.mark.parametrize("text", ["0", "42", "2026-01-02T03:04:05Z", "2026-01-02"])
def test_revisions_and_instants_are_moments(text: str) -> None:
    written_moments.check(text)


async def test_empty_history_has_revision_0_and_no_other() -> None:
    log = MemoryLog(MemoryStore())
    info = await log.create_history("h", seed=0, settings={}, created=Instant(0))
    assert await moments.find_revision(log, info, "0") == 0
    with pytest.raises(RevisionTooLarge, match="history 'h' has no revision 1: it ends at 0"):
        await moments.find_revision(log, info, "1")


async def test_time_of_an_instant_is_the_instant() -> None:
    log = MemoryLog(MemoryStore())
    info = await log.create_history("h", seed=0, settings={}, created=Instant(0))
    text = "2026-01-02T03:04:05Z"
    revision = await moments.find_revision(log, info, text)
    assert await moments.find_time(log, info, text, revision) == parse(text)
    assert await moments.find_time(log, info, "0", revision) == 0


def patched_line(last: str) -> Cluster:
    """A cluster in which patch z was made before patch a, in the same second; `last` changed."""
    cluster = Cluster()
    cluster.node("n1")
    cluster.slice("n1")
    for name in ("z", "a"):
        spec = {"devices": {"attributes": {f"{DRIVER}/model": {"string": name}}}}
        cluster.create("resource.k8s.io/v1alpha3", "ResourceSlicePatch", name, spec=spec)
    key = ObjectKey(*api_resources.RESOURCE_SLICE_PATCHES, "", last)
    for label in "bc":
        body = {"metadata": {"labels": {"x": label}}}
        command = PatchObject(key=key, version="v1alpha3", type=PatchType.MERGE, body=body)
        cluster.line.submit(command, actor=USER)
    return cluster


@pytest.mark.parametrize("last", ["z", "a"])
async def test_views_of_a_moment_know_which_patch_was_made_first(last: str) -> None:
    events = patched_line(last).line.events
    log = MemoryLog(MemoryStore())
    info = await log.create_history("h", seed=0, settings={}, created=T0, hash=Head().hash)
    await log.append(info.id, expected=Head(), events=events)
    revision = events[-1].revision
    views = LiveViews(Profile())
    await past_views.fold_objects(views, log, info, revision, 1_000)
    assert model_of(views) == "z"
    copied = LiveViews(Profile())
    copied.load_objects(views.objects.dump())
    assert model_of(copied) == "z"
    found = [event async for event in moments.objects_at(log, info, revision, 1_000)]
    course = DeviceCourse(Profile())
    course.move(found, await past_views.creations(log, info, found))
    assert model_of(course.move(found, await past_views.creations(log, info, found))) == "z"


def model_of(views: LiveViews | Devices) -> str:
    """The model that patches give the first device of n1."""
    view = views.inventory.node_view(Node(name="n1", labels={}), Reading(partitionable=True))
    return view.devices[0].attributes[f"{DRIVER}/model"]["string"]


async def test_last_state_is_no_gap_and_no_request_about_the_object() -> None:
    async with world() as here:
        notes = [
            RecordFact(type=type.value, key=key("a"), body={"message": "not a state"})
            for type in (EventType.GAP_OBSERVED, EventType.REQUEST_OBSERVED)
        ]
        info = await here.record(
            (0, notes[1]), (1, create("a", {"at": "1"})), *((2, note) for note in notes * 10)
        )
        head = (await here.log.head(info.id)).revision
        last = await moments.last_state(here.log, info.id, key("a"), head)
        assert last is not None
        assert last.object["data"] == {"at": "1"}
        before = Revision(last.revision - 1)
        assert await moments.last_state(here.log, info.id, key("a"), before) is None
