"""Which writes of outsiders differ between two histories, and what is said of each."""

from collections.abc import Sequence
from typing import Any

import pytest
from msgspec import structs

from app.analysis.diff.inputs import InputDifference, changes
from app.analysis.diff.sides import Side
from app.domain.controllers.registry import ControllerOptions
from app.domain.log import Actor, Event, EventType, ObjectKey, Revision, Stamp
from app.domain.log.chain import canonical_json
from app.domain.objects.profile import Profile
from app.domain.values.identifiers import Uid
from app.domain.values.timestamps import SECOND, Instant

Tree = dict[str, Any]
NODE = ObjectKey("", "nodes", "", "n")
POD = ObjectKey("", "pods", "ns", "p")
CLASS = ObjectKey("resource.k8s.io", "deviceclasses", "", "gpu")
UNNAMED = "redra:import"


def write(
    at: int,
    tree: Tree | None,
    key: ObjectKey = CLASS,
    *,
    user: str = "alice",
    is_new: bool = True,
    **metadata: Any,
) -> Event:
    """A write at a second; without a tree it deletes the object."""
    kind = EventType.OBJECT_CREATED if is_new else EventType.OBJECT_UPDATED
    whole = {**(tree or {}), "metadata": {"name": key.name, "uid": "u", **metadata}}
    return Event(
        revision=Revision(at),
        type=EventType.OBJECT_DELETED if tree is None else kind,
        key=key,
        uid=Uid("u"),
        body=canonical_json(whole),
        stamp=Stamp(
            time=Instant(at * SECOND),
            actor=Actor(user=user),
            verb="delete" if tree is None else "create" if is_new else "update",
        ),
    )


def side(events: Sequence[Event]) -> Side:
    return Side(name="h", profile=Profile(), options=ControllerOptions(), events=events)


def differing(a: Sequence[Event], b: Sequence[Event]) -> list[InputDifference]:
    return changes(side(a), side(b), within=SECOND)


SMALL, LARGE = {"spec": {"size": "small"}}, {"spec": {"size": "large"}}


@pytest.mark.parametrize(
    ("a", "b", "verb", "since"),
    [
        pytest.param([write(5, SMALL)], [write(6, SMALL)], None, None, id="at one time"),
        pytest.param([write(5, SMALL)], [write(9, SMALL)], "later in B", 5, id="later"),
        pytest.param([write(9, SMALL)], [write(5, SMALL)], "earlier in B", 5, id="earlier"),
        pytest.param([write(5, SMALL)], [], "only in A", 5, id="only in A"),
        pytest.param([], [write(5, SMALL)], "only in B", 5, id="only in B"),
        pytest.param([write(5, SMALL)], [write(5, LARGE)], "otherwise in B", 5, id="otherwise"),
        pytest.param(
            [write(5, SMALL), write(7, LARGE, is_new=False)],
            [write(5, SMALL)],
            "only in A",
            7,
            id="a further write",
        ),
        pytest.param(
            [write(5, SMALL)],
            [write(5, SMALL), write(7, None)],
            "only in B",
            7,
            id="a deletion",
        ),
        pytest.param(
            [write(5, SMALL, user="system:kube-scheduler")], [], None, None, id="of a controller"
        ),
        pytest.param(
            [write(5, SMALL, user=UNNAMED)], [], "only in A", 5, id="of nobody who is named"
        ),
        pytest.param(
            [write(5, SMALL), write(7, None, user=UNNAMED)],
            [write(5, SMALL)],
            "only in A",
            7,
            id="a deletion by nobody who is named",
        ),
        pytest.param(
            [write(5, SMALL, user="system:node:n")], [], None, None, id="of a kubelet"
        ),
        pytest.param(
            [write(5, SMALL, ObjectKey("", "configmaps", "ns", "c"))],
            [],
            None,
            None,
            id="of a kind that no decision reads",
        ),
    ],
)  # fmt: skip
def test_writes_of_outsiders_differ_by_side_and_time(
    a: list[Event], b: list[Event], verb: str | None, since: int | None
) -> None:
    listed = differing(a, b)
    if verb is None:
        assert listed == []
        return
    (change,) = listed
    assert (change.verb.value, change.since) == (verb, since and since * SECOND)
    assert change.text.startswith(
        "created otherwise in B: " if verb == "otherwise in B" else f"{verb}: "
    )


def test_write_without_a_user_that_only_controllers_make_is_no_input() -> None:
    """What outsiders write after it is one still."""
    owner = {"kind": "Pod", "name": "p", "uid": "p", "controller": True}
    own = write(5, SMALL, POD, user=UNNAMED, ownerReferences=[owner])
    noted = [
        write(6, SMALL),
        write(7, SMALL, user=UNNAMED, is_new=False, annotations={"seen": "yes"}),
    ]
    later = write(8, LARGE, is_new=False)
    (change,) = differing([own, *noted, later], [write(6, SMALL)])
    assert (change.key, change.since) == (CLASS, 8 * SECOND)


def listing(*entries: Any) -> Tree:
    return {"spec": {"entries": list(entries)}}


def entry(name: str, **fields: Any) -> Tree:
    return {"name": name, **fields}


@pytest.mark.parametrize(
    ("a", "b", "said"),
    [
        ((entry("x"),), (entry("x"), entry("y", n=1)), 'with {"n": 1, name: "y"}'),
        ((entry("x"), entry("y")), (entry("x"),), "without y"),
        ((entry("x", n=1), entry("y")), (entry("x", n=2), entry("y")), "x n: 1 → 2"),
        ((entry("x"), entry("y")), (entry("y"), entry("x")), "in another order"),
        (
            (entry("x", n=1), entry("y")),
            (entry("x", n=2), entry("z")),
            "without y, with {name: z}, x n: 1 → 2",
        ),
        ((1, 2), (1, 3), "[1, 2] → [1, 3]"),
        ((entry("x"),), (1,), "[{name: x}] → [1]"),
        ((1,), (entry("x"),), "[1] → [{name: x}]"),
    ],
)
def test_lists_of_named_entries_differ_by_their_entries(a: Any, b: Any, said: str) -> None:
    (created,) = differing([write(5, listing(*a))], [write(5, listing(*b))])
    # Of objects that were made with entries of the same names, one entry is an example.
    said_of_made = "1 of 2 differ, such as x: n: 1 → 2" if said == "x n: 1 → 2" else said
    assert created.text == f"created otherwise in B: spec.entries: {said_of_made}"
    before, after = write(5, listing(*a)), write(7, listing(*b), is_new=False)
    (changed,) = differing([before], [before, after])
    assert changed.text == f"only in B: spec.entries: {said}"


def test_object_that_is_made_anew_without_the_end_of_the_former_one_is_made() -> None:
    """The line with its end is lost; the uid shows that it is another one."""
    former = write(5, SMALL)
    again = structs.replace(write(7, SMALL, is_new=False, uid="v"), uid=Uid("v"))
    (change,) = differing([former, again], [former])
    assert (change.verb.value, change.since) == ("only in A", 7 * SECOND)
    assert change.a is not None
    assert change.a.created is not None
    label = write(7, SMALL, is_new=False, labels={"a": "b"})
    (change,) = differing([former, label], [former])
    assert change.a is not None
    assert change.a.created is None
