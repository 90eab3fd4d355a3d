"""Which allocation is assumed in force where another device was chosen than is chosen again.

The rule: one that holds a device which is chosen now and was not then, or else one of the same
pool. Of these a later write comes before an earlier release, and the nearest comes first.
"""

import random
from collections.abc import Sequence
from types import SimpleNamespace
from typing import Any, cast

import pytest
from msgspec import structs

from app.analysis.verify.allocation_index import Written
from app.analysis.verify.in_flight import WAIT_MAX, WINDOW, AllocationsInFlight
from app.domain.log import Actor, Event, EventType, ObjectKey, Origin, Revision, Stamp
from app.domain.log.chain import canonical_json
from app.domain.values.identifiers import Uid
from app.domain.values.timestamps import SECOND, Instant
from tests import draws

Tree = dict[str, Any]
NOW, AT = Instant(1_000 * SECOND), Revision(50)


def key_of(name: str) -> ObjectKey:
    return ObjectKey("resource.k8s.io", "resourceclaims", "ns", name)


def devices(*names: str) -> Tree:
    """An allocation of devices, which are named by their pools and themselves."""
    results = [
        {"request": "r", "driver": "d", "pool": name[0], "device": name[1:]} for name in names
    ]
    return {"devices": {"results": results}}


def claim(uid: str, *names: str) -> Tree:
    return {
        "metadata": {"name": uid, "uid": uid},
        "status": {"allocation": devices(*names)} if names else {},
    }


def event(name: str, at: Instant = NOW, revision: int = AT) -> Event:
    stamp = Stamp(time=at, actor=Actor(user="s"), verb="update")
    return Event(
        revision=Revision(revision),
        type=EventType.OBJECT_UPDATED,
        key=key_of(name),
        uid=Uid(name),
        body=canonical_json(claim(name)),
        stamp=stamp,
    )


def written(
    name: str, revision: int, seconds: float, *given: str, since: float = 0, entered: int = 0
) -> Written:
    """An allocation that is written so many seconds after the event; it may be chosen earlier."""
    at = Instant(NOW + int(seconds * SECOND))
    return Written(
        revision=Revision(revision),
        time=at,
        key=key_of(name),
        uid=name,
        allocation=devices(*given),
        decided_from=Instant(at - int(since * SECOND)),
        entered=Revision(entered),
    )


def assumed(
    later: Sequence[Written],
    freed: Sequence[tuple[str, float, tuple[str, ...]]],
    *,
    without: Sequence[Written] = (),
    present: Sequence[str] = (),
    made: int = 0,
    nominated: int = 0,
    chosen: tuple[str, ...] = ("pa",),
) -> str:
    """The claim whose allocation is assumed; `freed` ones gave their devices back before."""
    index = SimpleNamespace(
        written=[written("x", AT, 0, "pz"), *later],
        made_at=lambda _: Revision(made),
        chosen_from=lambda _: None,
        chosen_by=lambda _: Revision(nominated),
    )
    objects = {key_of(name): claim(name, "pq") for name in present}
    views = cast(Any, SimpleNamespace(objects=objects))
    in_flight = AllocationsInFlight(cast(Any, index), views)
    for number, (name, seconds, given) in enumerate(freed):
        gone = event(name, Instant(NOW + int(seconds * SECOND)), 10 + number)
        in_flight.note(gone, devices(*given), None)
    in_flight.note(event("x"), None, devices("pz"))
    other = in_flight.another(event("x"), devices("pz"), devices(*chosen), list(without))
    return "" if other is None else other.key.name


LATER = (WINDOW + WAIT_MAX) / SECOND


@pytest.mark.parametrize(
    ("later", "freed", "options", "expected"),
    [
        pytest.param([written("y", 60, 5, "pa", since=9)], [], {}, "y", id="written later"),
        pytest.param([written("y", 60, 5, "pa", since=4)], [], {}, "", id="chosen later"),
        pytest.param(
            [written("y", 60, 5, "pa", since=9, entered=41)],
            [],
            {"nominated": 40},
            "",
            id="made after the nomination",
        ),
        pytest.param(
            [written("y", 60, 5, "pa", since=9, entered=39)],
            [],
            {"nominated": 40},
            "y",
            id="made before the nomination",
        ),
        pytest.param([written("y", 60, LATER, "pa", since=LATER)], [], {}, "y", id="at last"),
        pytest.param([written("y", 60, LATER + 1, "pa", since=99)], [], {}, "", id="too late"),
        pytest.param([], [("y", -3, ("pa",))], {}, "y", id="freed before"),
        pytest.param([], [("y", -WINDOW / SECOND - 1, ("pa",))], {}, "", id="freed long before"),
        pytest.param([], [("y", -3, ("pa",))], {"made": 10}, "", id="known when it was made"),
        pytest.param([], [("y", -3, ("pa",))], {"made": 9}, "y", id="perhaps not known"),
        pytest.param(
            [written("y", 60, 5, "qa", since=9)], [], {}, "", id="of another pool"
        ),
        pytest.param(
            [written("y", 60, 5, "pb", since=9)], [], {}, "y", id="another device of its pool"
        ),
        pytest.param(
            [written("y", 60, 5, "pb", since=9), written("w", 61, 6, "pa", since=9)],
            [],
            {},
            "w",
            id="the device itself comes before its pool",
        ),
        pytest.param(
            [written("y", 60, 5, "pa", since=9)],
            [("w", -3, ("pa",))],
            {},
            "y",
            id="later comes before freed",
        ),
        pytest.param(
            [written("y", 60, 5, "pb", since=9)],
            [("w", -3, ("pa",))],
            {},
            "w",
            id="the device itself comes first of all",
        ),
        pytest.param(
            [],
            [("y", -3, ("pa",)), ("w", -2, ("pa",))],
            {},
            "w",
            id="the latest release comes first",
        ),
        pytest.param(
            [written("y", 60, 5, "pa", since=9), written("w", 61, 6, "pa", since=9)],
            [],
            {},
            "y",
            id="the nearest write comes first",
        ),
        pytest.param(
            [written("y", 60, 5, "pa", since=9), written("w", 61, 6, "pa", since=9)],
            [],
            {"without": [written("y", 60, 5, "pa")]},
            "w",
            id="one that is assumed already",
        ),
        pytest.param(
            [written("y", 60, 5, "pa", since=9)],
            [],
            {"present": ["y"]},
            "",
            id="it holds other devices now",
        ),
        pytest.param(
            [written("x", 60, 5, "pa", since=9)], [], {}, "", id="the claim itself"
        ),
        pytest.param(
            [written("y", 60, 5, "pz", since=9)],
            [],
            {"chosen": ("pz",)},
            "",
            id="nothing was chosen otherwise",
        ),
    ],
)  # fmt: skip
def test_nearest_allocation_of_a_device_that_is_chosen_otherwise_is_assumed(
    later: Sequence[Written], freed: Any, options: Any, expected: str
) -> None:
    assert assumed(later, freed, **options) == expected


@pytest.mark.parametrize("seed", draws.seeds(3))
def test_claim_is_new_for_as_long_as_a_choice_may_not_know_it(seed: int) -> None:
    draw = random.Random(seed)
    index = SimpleNamespace(written=[], made_at=lambda _: Revision(0), chosen_from=lambda _: None)
    in_flight = AllocationsInFlight(cast(Any, index), cast(Any, None))
    times: dict[str, Instant] = {}
    now = NOW
    for _ in range(60):
        now = Instant(now + draw.randrange(1, 9) * SECOND)
        name = draw.choice("abcdef")
        held, given = draw.choice(((None, devices("pa")), (devices("pa"), devices("pb"))))
        in_flight.note(event(name, now), held, given)
        if held is None:
            times[name] = now
        for each in "abcdefg":
            is_new = each in times and now - times[each] <= WINDOW
            assert in_flight.is_new(event("x", now), key_of(each)) is is_new


@pytest.mark.parametrize(
    ("freed_at", "nominated", "anew", "losses", "present", "expected"),
    [
        pytest.param(10, 9, False, (), [], ["y"], id="freed after the nomination"),
        pytest.param(10, 10, False, (), [], [], id="freed with it"),
        pytest.param(10, 11, False, (), [], [], id="freed before it"),
        pytest.param(10, 0, False, (), [], [], id="no nomination"),
        pytest.param(10, 9, True, (), [], [], id="another process may have chosen anew"),
        pytest.param(10, 9, False, ("no_rv",), [], [], id="nobody knows when it was freed"),
        pytest.param(10, 9, False, (), ["y"], [], id="it holds devices again"),
        pytest.param(2, 1, False, (), [], ["y"], id="at the beginning of a log"),
    ],
)
def test_what_was_freed_after_the_nomination_was_not_free_for_the_choice(
    freed_at: int,
    nominated: int,
    anew: bool,
    losses: tuple[str, ...],
    present: list[str],
    expected: list[str],
) -> None:
    index = SimpleNamespace(written=[], chosen_by=lambda _: Revision(nominated))
    views = SimpleNamespace(objects={key_of(name): claim(name, "pq") for name in present})
    in_flight = AllocationsInFlight(cast(Any, index), cast(Any, views))
    in_flight.is_chosen_anew = anew
    gone = event("y", NOW, freed_at)
    stamp = structs.replace(gone.stamp, origin=Origin(source="made", losses=losses))
    in_flight.note(structs.replace(gone, stamp=stamp), devices("pa"), None)
    in_flight.note(event("x", NOW, freed_at), devices("pb"), None)
    found = in_flight.not_yet_freed(event("x"))
    assert [(each.key.name, each.allocation) for each in found] == [
        (name, devices("pa")) for name in expected
    ]


@pytest.mark.parametrize(
    ("nominated", "entered", "anew", "expected"),
    [
        (5, 6, False, True),
        (5, 5, False, False),
        (1, 2, False, True),
        (0, 6, False, False),
        (5, 6, True, False),
    ],
)
def test_pod_is_entered_later_than_a_choice_that_a_nomination_dates(
    nominated: int, entered: int, anew: bool, expected: bool
) -> None:
    index = SimpleNamespace(
        written=[],
        chosen_by=lambda _: Revision(nominated),
        entered=lambda *about: Revision(entered if about == ("pod", ["claim"]) else 0),
    )
    in_flight = AllocationsInFlight(cast(Any, index), cast(Any, None))
    assert in_flight.is_chosen_anew is False
    in_flight.is_chosen_anew = anew
    assert in_flight.is_entered_later(event("x"), "pod", ["claim"]) is expected
