"""Views that begin with kept objects, at any cut of any log, are those of the whole log."""

import dataclasses
from collections.abc import Mapping

import msgspec
from hypothesis import example, given, settings
from hypothesis import strategies as st

from app.analysis.views import LiveViews, compiler_of
from app.domain.devices.inventory import Inventory
from app.domain.log import Event
from app.domain.objects.profile import Profile
from app.domain.values.identifiers import PoolId
from projections.inventory import InventoryProjection
from projections.last_events import PackedEvent
from tests import draws
from tests.properties.event_worlds import world

PLAIN_MAX = 5
"""Objects from which on those of this test are compressed."""


def views_of(events: list[Event]) -> LiveViews:
    """Views that fold events; of many objects all but the last are compressed."""
    views = LiveViews(Profile(), plain_max=PLAIN_MAX)
    views.objects._decoded_max = 1
    for event in events:
        views.fold(msgspec.structs.replace(event))
    return views


def begun(kept: LiveViews, rest: list[Event]) -> LiveViews:
    """Views that begin with the objects that others keep, and fold what came after them."""
    views = views_of([])
    views.load_objects(b"".join(kept.objects.dump_parts()))
    for event in rest:
        views.fold(msgspec.structs.replace(event))
    return views


def text_of(value: object) -> str:
    """All that a value holds. Devices are equal only to themselves, and maps have any order."""
    if dataclasses.is_dataclass(value):
        fields = dataclasses.fields(value)
        held = [field.name for field in fields if not field.name.startswith("_")]  # no memos
        return text_of({name: getattr(value, name) for name in held})
    if isinstance(value, Mapping):
        return str(sorted((str(key), text_of(item)) for key, item in value.items()))
    if isinstance(value, list | tuple):
        return str([text_of(item) for item in value])
    return repr(value)


def inventory_text(inventory: Inventory) -> dict[PoolId, list[str]]:
    """The merged slices of each pool."""
    return {pool: sorted(map(text_of, inventory.slices_of(pool))) for pool in inventory.pool_ids()}


def seen(views: LiveViews) -> dict[str, object]:
    """All that controllers may read of views."""
    objects, inventory, allocated = views.objects, views.inventory, views.allocated
    keys = [key for place in objects.resources() for key in objects.keys(*place)]
    uids = sorted({event.uid for key in keys if (event := objects.event(key)) is not None})
    return {
        "objects": objects.dump(),
        "trees": [objects.get(key) for key in keys],
        "owned": [sorted(objects.dependents(uid)) for uid in uids],
        "named": [objects.by_uid(uid) for uid in uids],
        "warnings": [event.undecoded() for event in objects.unusual_events()],
        "devices": inventory_text(inventory),
        "held": sorted(allocated._holdings.items(), key=lambda held: held[0]),
        "unreadable": views.unreadable,
    }


@settings(max_examples=draws.examples(200), deadline=None)
@given(seed=st.integers(0, 10**6), length=st.integers(2, 150), share=st.floats(0, 1))
def test_views_begun_at_any_cut_are_those_of_the_whole_log(
    seed: int, length: int, share: float
) -> None:
    events = world(seed, length)
    cut = int(share * len(events))
    whole = views_of(events)
    assert seen(begun(views_of(events[:cut]), events[cut:])) == seen(whole)
    again = begun(begun(views_of(events[: cut // 2]), events[cut // 2 : cut]), events[cut:])
    assert seen(again) == seen(whole), "a state that was kept from a state"


def test_drawn_states_have_compressed_objects() -> None:
    """The law above would hold as well if nothing were ever compressed."""
    objects = views_of(world(1, 150)).objects
    held = [each for place in objects.resources() for _, each in objects.kept(*place)]
    assert sum(isinstance(each, PackedEvent) for each in held) > len(held) / 2


@settings(max_examples=draws.examples(100), deadline=None)
@given(seed=st.integers(0, 10**6), length=st.integers(2, 150))
@example(seed=823, length=96)
def test_live_views_and_tables_have_the_same_devices(seed: int, length: int) -> None:
    live = views_of(world(seed, length))
    table = InventoryProjection(compiler=compiler_of(Profile()))
    for event in world(seed, length):
        table.fold(event)
    shown = table.inventory
    assert inventory_text(live.inventory) == inventory_text(shown)
    unreadable = {(key.resource, key.name): text for key, text in live.unreadable.items()}
    assert unreadable == table.unreadable
