"""A republished slice gives the same result as a new one; unchanged devices are reused."""

from collections.abc import Iterator
from typing import Any

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from app.domain.devices.cel_selectors import CelCompiler
from app.domain.devices.inventory import Inventory
from app.domain.errors import InputError
from app.domain.log.projection import Projection, Row, RowKey
from app.domain.values import json_tree
from projections.inventory import InventoryProjection
from tests import draws
from tests.unit.projections.log_of import LogOf
from tests.worlds.builders import DRIVER, counter_set, device, resource_slice, taint, uses

COMPILER = CelCompiler(detailed_errors=True)
NAME = "slice"

FULL = device(
    "a",
    attributes={
        "index": {"int": 1}, "large": {"int": 2**60}, "ecc": {"bool": True},
        "uuid": {"string": "u"}, "firmware": {"version": "1.0.0"},
    },
    capacity={
        "memory": {
            "value": "1", "requestPolicy": {
                "default": "1", "validRange": {"min": "1", "max": "4", "step": "1"},
            },
        },
        "cores": {"value": "2", "requestPolicy": {"default": "1", "validValues": ["1", "2"]}},
    },
    consumesCounters=uses("s", memory=1),
    taints=[{**taint(), "timeAdded": "2026-01-02T03:04:05Z"}],
    nodeName="n", nodeSelector={"nodeSelectorTerms": []}, allNodes=True,
    allowMultipleAllocations=True, bindingConditions=["bound"],
    bindingFailureConditions=["failed"], bindsToNode=True,
)  # fmt: skip
"""A device with every field that anything reads."""

ALTERNATIVES = (None, True, False, 0, 1, 1.0, -1, "", "1", "x", [], {}, ["x"], {"x": "y"})


def alterations(tree: Any) -> Iterator[Any]:
    """Trees with one place altered, for each place and alteration, and with reordered maps."""
    if isinstance(tree, dict):
        for name, below in tree.items():
            yield {other: tree[other] for other in tree if other != name}
            for altered in alterations(below):
                yield {**tree, name: altered}
        yield {**tree, "more": 1}
        if len(tree) > 1:
            yield dict(reversed(tree.items()))
    elif isinstance(tree, list):
        for index, below in enumerate(tree):
            yield [*tree[:index], *tree[index + 1 :]]
            for altered in alterations(below):
                yield [*tree[:index], altered, *tree[index + 1 :]]
        yield [*tree, 1]
    for other in ALTERNATIVES:
        if msgspec.json.encode(other) != msgspec.json.encode(tree):
            yield other


ALTERED = [altered for altered in alterations(FULL) if isinstance(altered, dict)]


def compiled(*trees: dict) -> Inventory | str:
    """The inventory after these versions of a slice in order, or the text of the refusal."""
    made = Inventory(compiler=COMPILER)
    try:
        for tree in trees:
            made.put_slice(tree)
    except (InputError, TypeError, ValueError, AttributeError) as problem:
        return str(problem)
    return made


def everything(inventory: Inventory | str) -> str:
    """The text of all compiled slices, with the types of values and the order of maps."""
    return inventory if isinstance(inventory, str) else repr(list(inventory.slices()))


def test_alterations_reach_every_place() -> None:
    assert len(ALTERED) > 500
    assert len({msgspec.json.encode(tree) for tree in ALTERED} | {b""}) > 500
    assert msgspec.json.encode(FULL) not in {msgspec.json.encode(tree) for tree in ALTERED}


def test_an_altered_device_is_compiled_anew() -> None:
    before = resource_slice(NAME, FULL)
    for altered in ALTERED:
        after = resource_slice(NAME, altered)
        again = compiled(before, after)
        assert everything(again) == everything(compiled(after))
        if isinstance(again, Inventory):
            # The device may share values with others, but only such as are written the same.
            tree = again.slice(NAME).devices[0].tree
            assert msgspec.json.encode(tree) == msgspec.json.encode(altered)


@pytest.mark.parametrize(
    "spec",
    [
        {}, {"generation": 2}, {"count": 2}, {"node": "other"}, {"node": None, "allNodes": True},
        {"perDeviceNodeSelection": True}, {"sharedCounters": []},
    ],
)  # fmt: skip
def test_unchanged_devices_stay_the_same_values(spec: dict) -> None:
    changed = {**FULL, "name": "b", "attributes": {"index": {"int": 2}}}
    inventory = Inventory(compiler=COMPILER)
    inventory.put_slice(resource_slice(NAME, FULL, {**FULL, "name": "b"}))
    kept, gone = inventory.slice(NAME).devices
    inventory.put_slice(msgspec.json.decode(msgspec.json.encode(
        resource_slice(NAME, changed, FULL, **spec))))  # fmt: skip
    fresh, same = inventory.slice(NAME).devices
    assert same is kept
    assert fresh is not gone


@pytest.mark.parametrize("other", [{"driver": "other.example.com"}, {"pool": "other"}])
def test_devices_of_another_pool_are_others(other: dict) -> None:
    after = resource_slice(NAME, FULL, **other)
    assert everything(compiled(resource_slice(NAME, FULL), after)) == everything(compiled(after))


RULE = {"deviceSelector": {"driver": DRIVER}, "taint": taint("rule")}
PATCH = {
    "devices": {
        "filter": {
            "driver": DRIVER,
            "selectors": [{"cel": {"expression": "device.attributes['d'].missing == 1"}}],
        },
        "attributes": {"index": {"int": 7}},
    }
}
"""Fails on every device, which its slice says beside them."""

PUBLISHED = resource_slice(
    NAME,
    device("a", index=1, nodeName="n"),
    device("b", index=2, allNodes=True),
    perDeviceNodeSelection=False,
    sharedCounters=[counter_set("s", x=1)],
)["spec"]


def has_readable_attributes(spec: object) -> bool:
    """True when CEL can read the devices: their attributes are maps of maps."""
    if not isinstance(spec, dict):
        return False
    devices = json_tree.objects(spec, "devices")
    held = [each["attributes"] for each in devices if "attributes" in each]
    return all(
        isinstance(attributes, dict)
        and all(isinstance(value, dict) for value in attributes.values())
        for attributes in held
    )


REPUBLISHED = [spec for spec in alterations(PUBLISHED) if has_readable_attributes(spec)]


@draws.in_turn("ways")
@pytest.mark.parametrize("beside", [{}, {"rule": RULE}, {"patch": PATCH}, {"slice": PUBLISHED}])
def test_rows_follow_every_change_of_a_slice(beside: dict) -> None:
    assert len(REPUBLISHED) > 200
    for spec in REPUBLISHED:
        log = LogOf(InventoryProjection(compiler=COMPILER))
        for kind, other in beside.items():
            log.put(kind, "other", spec=other)
        rows: dict[tuple[str, RowKey], Row] = {}
        for published in (PUBLISHED, spec, PUBLISHED):
            log.put("slice", NAME, spec=published)
            materialise(log.view, rows)
            assert rows == fresh_rows(log.view), spec


STEPS = st.lists(
    st.sampled_from(
        [
            *(("slice", name, spec) for name in ("s", "t") for spec in REPUBLISHED),
            *(("rule", name, RULE) for name in ("x", "y")),
            *(("patch", name, PATCH) for name in ("p", "q")),
            *(("remove", name, {}) for name in ("s", "t", "x", "y", "p", "q")),
        ]
    ),
    max_size=12,
)
KINDS = {"s": "slice", "t": "slice", "x": "rule", "y": "rule", "p": "patch", "q": "patch"}


@given(STEPS)
@settings(max_examples=draws.examples(200), deadline=None)
def test_rows_follow_every_course_of_changes(steps: list) -> None:
    log = LogOf(InventoryProjection(compiler=COMPILER))
    rows: dict[tuple[str, RowKey], Row] = {}
    for step, name, spec in steps:
        if step == "remove":
            log.delete(KINDS[name], name)
        else:
            log.put(step, name, spec=spec)
        materialise(log.view, rows)
    assert rows == fresh_rows(log.view)


def fresh_rows(view: Projection) -> dict[tuple[str, RowKey], Row]:
    """All rows of a new view that compiles everything once."""
    whole = InventoryProjection(compiler=COMPILER)
    whole.load(view.dump())
    rows: dict[tuple[str, RowKey], Row] = {}
    materialise(whole, rows)
    return rows


def materialise(view: Projection, rows: dict[tuple[str, RowKey], Row]) -> None:
    """Applies the changed rows of a view."""
    for table, keys in view.take_changed().items():
        for key in keys:
            row = view.row(table, key)
            if row is None:
                rows.pop((table, key), None)
            else:
                rows[(table, key)] = row
