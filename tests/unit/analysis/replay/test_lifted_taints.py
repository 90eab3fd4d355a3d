"""The taints that devices had at a version and have lost since, from stories of one slice."""

import pytest

from app.analysis.replay.unsure.lifted_taints import LiftedTaints
from app.domain.log import Actor, Event, EventType, ObjectKey, Revision, Stamp
from app.domain.log.event import Origin
from app.domain.values.fields import dra
from app.domain.values.timestamps import Instant

SLICE = ObjectKey("resource.k8s.io", "resourceslices", "", "s")
NOTHING: dict = {}


def taint(value="a", key="k", effect="NoSchedule"):
    return {"key": key, "value": value, "effect": effect}


def slice_of(*taints, name="gpu-0"):
    pool = {"name": "n1", "generation": 1, "resourceSliceCount": 1}
    devices = [{"name": name, "taints": list(taints)}, {"name": "other"}]
    return {"spec": {"driver": "d", "pool": pool, "devices": devices}}


def result(*tolerations):
    results = [
        {
            "request": "r",
            "driver": "d",
            "pool": "n1",
            "device": "gpu-0",
            "tolerations": list(tolerations),
        }
    ]
    (found,) = dra.results({"status": {"allocation": {"devices": {"results": results}}}})
    return found


def followed(*trees):
    """Writes of a slice with the versions 10, 20, …; None is its end."""
    lifted, before = LiftedTaints(), NOTHING
    for number, tree in enumerate(trees, 1):
        version = str(10 * number)
        kind = EventType.OBJECT_DELETED if tree is None else EventType.OBJECT_UPDATED
        origin = Origin(source="audit", resource_version=version)
        lifted.after(
            Event(
                revision=Revision(10 * number),
                type=kind,
                key=SLICE,
                uid="s",
                body=b"",
                stamp=Stamp(
                    time=Instant(number), actor=Actor(user="d"), verb="update", origin=origin
                ),
                tree=before if tree is None else tree,
            ),
            before,
        )
        before = NOTHING if tree is None else tree
    return lifted


PLAIN, TAINTED, OTHERWISE = slice_of(), slice_of(taint()), slice_of(taint("b"))


@pytest.mark.parametrize(
    ("trees", "versions"),
    [
        pytest.param([PLAIN, TAINTED, TAINTED, PLAIN], [range(21, 40)], id="lifted"),
        pytest.param([PLAIN, TAINTED, TAINTED], [], id="still there"),
        pytest.param([TAINTED, PLAIN], [range(11, 20)], id="from the first write on"),
        pytest.param([PLAIN, TAINTED, OTHERWISE], [range(21, 30)], id="another value"),
        pytest.param(
            [PLAIN, TAINTED, slice_of(taint(effect="None"))], [range(21, 30)], id="another effect"
        ),
        pytest.param([PLAIN, TAINTED, slice_of(taint(key="x"))], [range(21, 30)], id="another key"),
        pytest.param([PLAIN, TAINTED, slice_of(name="gpu-1")], [], id="device gone"),
        pytest.param([PLAIN, TAINTED, None, PLAIN], [], id="slice gone"),
        pytest.param([PLAIN, TAINTED, PLAIN, TAINTED], [range(21, 30)], id="back again"),
        pytest.param(
            [TAINTED, PLAIN, PLAIN, TAINTED, PLAIN],
            [range(11, 20), range(41, 50)],
            id="lifted twice",
        ),
    ],
)
def test_taint_that_was_lifted_counts_between_its_writes(trees, versions):
    lifted = followed(*trees)
    shown = [version for version in range(60) if lifted.at(version, result()) is not None]
    assert shown == [version for each in versions for version in each]
    for version in shown:
        found, key = lifted.at(version, result())
        assert (found.key, found.value, found.effect, key) == ("k", "a", "NoSchedule", SLICE)


@pytest.mark.parametrize(
    ("tolerations", "value"),
    [
        ([], "a"),
        ([{"key": "k", "operator": "Exists"}], None),
        ([{"key": "k", "operator": "Equal", "value": "a"}], "b"),
        ([{"key": "other", "operator": "Exists"}], "a"),
    ],
)
def test_taint_that_the_request_tolerates_does_not_count(tolerations, value):
    lifted = followed(PLAIN, slice_of(taint("a"), taint("b")), PLAIN)
    found = lifted.at(25, result(*tolerations))
    assert (None if found is None else found[0].value) == value
