"""Selections of many objects hold them as the view does, and decode one when it is read."""

import pytest

from app.api.kubernetes.selection import compile_selection
from app.domain.objects import registry
from projections.last_events import PackedEvent
from projections.objects import ObjectsProjection
from tests.unit.projections.log_of import LogOf

NAMES = [f"p{number}" for number in range(9)]


def view_of(plain_max: int | None) -> ObjectsProjection:
    view = ObjectsProjection(1, tells_changes=False, plain_max=plain_max)
    log = LogOf(view)
    for number, name in enumerate(NAMES):
        labels = {"odd": str(number % 2)}
        log.put("pod", f"ns/{name}", metadata={"labels": labels}, spec={"nodeName": name})
    return view


def compressed(view: ObjectsProjection) -> int:
    return sum(isinstance(kept, PackedEvent) for _, kept in view.kept("", "pods"))


@pytest.mark.parametrize("labels", ["", "odd=1", "odd!=1", "odd"])
@pytest.mark.parametrize("fields", ["", "metadata.name!=p3", "spec.nodeName=p5"])
def test_selection_of_compressed_objects_is_that_of_plain_ones(labels: str, fields: str) -> None:
    kind = registry.find("", "pods")
    assert kind is not None
    chosen = compile_selection(
        kind, namespace="ns", name="", label_selector=labels, field_selector=fields
    )
    packed, plain = view_of(3), view_of(None)
    wanted = [event.undecoded() for event in chosen.select(plain, kind)]
    selected = chosen.select(packed, kind)
    assert [event.undecoded() for event in selected] == wanted
    assert [selected[number] for number in range(-len(selected), 0)] == wanted
    for start in range(len(wanted) + 1):
        assert list(selected[start : start + 2]) == wanted[start : start + 2]
    assert compressed(packed) == compressed(view_of(3)) > 3
