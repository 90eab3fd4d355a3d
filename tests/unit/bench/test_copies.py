"""Copied clusters are whole: claims hold devices that are published, and events follow in time."""

from app.domain.log import Revision
from app.domain.log.event import EventType
from app.domain.values import api_resources, timestamps
from app.domain.values.fields import dra, meta
from app.domain.values.timestamps import SECOND, Instant
from bench import copies


async def test_copied_claims_hold_published_devices() -> None:
    told = await copies.stories(3)
    size = copies.Size(nodes=2, devices=3, pods=4, gone=2)
    published: set[tuple[str, str]] = set()
    held: list[tuple[str, str]] = []
    began = time = Instant(1_700_000_000 * SECOND)
    keys_of: dict[str, set[str]] = {}
    for event in copies.copies(Revision(0), began, told, size):
        assert event.stamp.time >= time
        time = event.stamp.time
        if event.type is EventType.OBJECT_CREATED:
            keys_of.setdefault(event.uid, set()).add(event.key.name)
            second = timestamps.seconds_text(event.stamp.time)
            assert meta.creation_timestamp(event.object) in ("", second)
        if event.type is not EventType.OBJECT_DELETED and event.key[:2] in KINDS:
            tree = event.object
            if event.key.resource == "resourceslices":
                published |= {(dra.pool_name(tree), each["name"]) for each in dra.devices(tree)}
            else:
                held += [(each.pool, each.device) for each in dra.results(tree)]
    assert published == {(f"node-{n:04}", f"gpu-{d}") for n in range(2) for d in range(3)}
    assert set(held) == {(f"node-{n:04}", f"gpu-{d}") for n in range(2) for d in range(2)}
    assert {len(names) for names in keys_of.values()} == {1}
    assert time - began < 60 * SECOND


KINDS = {api_resources.RESOURCE_SLICES, api_resources.RESOURCE_CLAIMS}
