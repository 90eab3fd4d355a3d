"""Until when the devices of a pod were chosen, read from the writes of the pod before."""

from typing import Any

import pytest

from app.analysis.verify.nominations import PodNominations
from app.domain.log import Actor, Event, EventType, ObjectKey, Revision, Stamp
from app.domain.log.chain import canonical_json
from app.domain.log.pages import Page
from app.domain.log.raw_parts import RawPod
from app.domain.values.identifiers import Uid
from app.domain.values.timestamps import SECOND, Instant

REFUSED = {"type": "PodScheduled", "status": "False", "message": "no node"}
BUSY = {"type": "PodScheduled", "status": "False", "message": "the claim is in use"}


def pod(
    node: str = "", *conditions: dict[str, str], by: str = "s", bound: str = "", placed: bool = True
) -> tuple[dict[str, Any], str, bool]:
    status: dict[str, Any] = {"conditions": list(conditions)} if conditions else {}
    if node:
        status["nominatedNodeName"] = node
    spec = {"nodeName": bound} if bound else {}
    return {"metadata": {"name": "p", "uid": "p"}, "spec": spec, "status": status}, by, placed


@pytest.mark.parametrize(
    ("writes", "since", "expected"),
    [
        pytest.param([pod(), pod("n")], 0, 2, id="nominated"),
        pytest.param([pod(), pod(), pod("n"), pod("n")], 0, 3, id="the first line counts"),
        pytest.param([pod("", REFUSED), pod("n", REFUSED)], 0, 2, id="refused before"),
        pytest.param([pod(), pod("n", REFUSED)], 0, 0, id="refused with it"),
        pytest.param([pod(), pod("n"), pod("n", BUSY)], 0, 0, id="refused after it"),
        pytest.param([pod(), pod("n"), pod("m")], 0, 0, id="nominated anew"),
        pytest.param([pod(), pod("n"), pod(), pod("n")], 0, 0, id="nominated again"),
        pytest.param([pod(), pod("n", by="a")], 0, 0, id="nominated by another"),
        pytest.param([pod(), pod("n", placed=False)], 0, 0, id="nominated nobody knows when"),
        pytest.param([pod("n")], 0, 0, id="nominated when first seen"),
        pytest.param([pod(), pod("n"), pod("n", bound="n")], 0, 0, id="bound"),
        pytest.param([pod(), pod("n"), pod("n")], 2, 2, id="within the time of the choice"),
        pytest.param([pod(), pod("n"), pod("n")], 3, 0, id="before the time of the choice"),
        pytest.param([pod()], 0, 0, id="not nominated"),
    ],
)
def test_choice_is_older_than_the_first_nomination(
    writes: list[tuple[dict[str, Any], str, bool]], since: int, expected: int
) -> None:
    start = Instant(since * SECOND)
    assert _noted(writes).of("p", "s", start) == expected


def test_nothing_is_known_after_a_gap() -> None:
    nominations = _noted([pod(), pod("n")])
    nominations.forget()
    assert nominations.of("p", "s", Instant(0)) == 0


def _noted(writes: list[tuple[dict[str, Any], str, bool]]) -> PodNominations:
    nominations = PodNominations()
    for number, (tree, user, placed) in enumerate(writes, 1):
        event = Event(
            revision=Revision(number),
            type=EventType.OBJECT_UPDATED if number > 1 else EventType.OBJECT_CREATED,
            key=ObjectKey("", "pods", "ns", "p"),
            uid=Uid("p"),
            body=canonical_json(tree),
            stamp=Stamp(time=Instant(number * SECOND), actor=Actor(user=user), verb="patch"),
        )
        ((_, parts),) = Page((event,)).splits
        assert isinstance(parts, RawPod)
        nominations.note(event, parts, is_placed=placed)
    return nominations
