"""Copied clusters are whole: claims hold devices that are published."""

from app.domain.log import Revision
from app.domain.log.event import EventType
from app.domain.values import api_resources
from app.domain.values.fields import dra
from bench import copies


async def test_copied_claims_hold_published_devices() -> None:
    told = await copies.stories(3)
    size = copies.Size(nodes=2, devices=3, pods=4, gone=2)
    published: set[tuple[str, str]] = set()
    held: list[tuple[str, str]] = []
    for event in copies.copies(Revision(0), told, size):
        if event.type is not EventType.OBJECT_DELETED and event.key[:2] in KINDS:
            tree = event.object
            if event.key.resource == "resourceslices":
                published |= {(dra.pool_name(tree), each["name"]) for each in dra.devices(tree)}
            else:
                held += [(each.pool, each.device) for each in dra.results(tree)]
    assert published == {(f"node-{n:04}", f"gpu-{d}") for n in range(2) for d in range(3)}
    assert set(held) == {(f"node-{n:04}", f"gpu-{d}") for n in range(2) for d in range(2)}


KINDS = {api_resources.RESOURCE_SLICES, api_resources.RESOURCE_CLAIMS}
