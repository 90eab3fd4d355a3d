"""Generations of recorded objects: a step that no server makes is reported."""

import pytest

from app.adapters.history.opening import open_history
from app.adapters.history.reading import ReadOptions
from app.domain.log.records import Loss, Op
from tests.unit.history.test_intake import RULES
from tests.unit.history.worlds import audit, tree, write_lines

SLICES = ("resource.k8s.io", "v1", "resourceslices", "ResourceSlice")


def slice_(rv, generation, *, version="v1", amount="1Ki", metadata=None, **device):
    device = {"name": "gpu-0", "capacity": {"memory": {"value": amount}}, **device}
    type_ = ("resource.k8s.io", version, *SLICES[2:])
    metadata = {"generation": generation, **(metadata or {})}
    return tree(type_, rv=rv, metadata=metadata, spec={"driver": "d", "devices": [device]})


def log(path, *states):
    verbs = ["create", *["update"] * (len(states) - 1)]
    return write_lines(
        path / "audit.jsonl",
        [
            audit(verb, state, type_=SLICES, second=second)
            for second, (verb, state) in enumerate(zip(verbs, states, strict=True))
        ],
    )


def read(path):
    """The records of a log, and the contradictions in it."""
    with open_history([path], ReadOptions(rules=RULES)) as recorded:
        return list(recorded.records()), recorded.contradictions


FIRST = slice_(3, 1)
TAINT = {"taints": [{"key": "k", "effect": "NoExecute"}]}
ENDING = {"deletionTimestamp": "2026-01-01T00:00:01Z", "finalizers": ["d/f"]}


@pytest.mark.parametrize(
    "second",
    [
        slice_(5, 1),
        slice_(5, 1, taints=[]),
        slice_(5, 1, amount="1024"),
        slice_(5, 2, **TAINT),
        slice_(5, 1, metadata=ENDING),
        slice_(5, 2, metadata=ENDING),
        slice_(5, 3, metadata=ENDING, **TAINT),
        slice_(5, 1, version="v1beta2", **TAINT),
        slice_(5, None, **TAINT),
    ],
)
def test_step_that_servers_make_is_sound(second, tmp_path):
    records, found = read(log(tmp_path, FIRST, second))
    assert [record.losses for record in records] == [(), ()]
    assert found == ()


@pytest.mark.parametrize("second", [slice_(5, 1, **TAINT), slice_(5, 0), slice_(5, 0, **TAINT)])
def test_generation_that_stands_still_beside_a_change_or_falls_contradicts_itself(second, tmp_path):
    records, found = read(log(tmp_path, FIRST, second, slice_(9, 2, **TAINT)))
    assert Loss.IMMUTABLE in records[1].losses
    (contradiction,) = found
    assert "audit.jsonl:1 and" in str(contradiction)
    assert "metadata.generation" in str(contradiction)


@pytest.mark.parametrize(
    "second", [slice_(5, 2), slice_(5, 3, **TAINT), slice_(5, 3, metadata=ENDING)]
)
def test_generation_that_rises_by_more_than_the_change_shows_that_writes_are_missing(
    second, tmp_path
):
    records, _ = read(log(tmp_path, FIRST, second))
    assert [record.op for record in records] == [Op.ADDED, Op.GAP, Op.MODIFIED]
    assert records[1].key == records[2].key


def claim(rv, allocated):
    status = {"allocation": {"allocationTimestamp": allocated}}
    return tree(rv=rv, metadata={"creationTimestamp": "2026-01-01T00:00:01Z"}, status=status)


@pytest.mark.parametrize(
    ("allocated", "is_odd"),
    [
        ("2026-01-01T00:00:00Z", False),
        ("2025-12-31T23:59:59Z", True),
        ("2026-01-01T00:00:02Z", False),
        ("2026-01-01T00:00:04Z", True),
        ("2026-01-01T01:00:01Z", True),
        (None, False),
    ],
)
def test_allocation_before_the_creation_or_after_the_answer_contradicts_the_order(
    allocated, is_odd, tmp_path
):
    path = write_lines(tmp_path / "audit.jsonl", [audit("create", claim(3, allocated), second=1)])
    records, _ = read(path)
    assert (Loss.TIMES_CONTRADICT in records[0].losses) is is_odd


PODS = ("", "v1", "pods", "Pod")


@pytest.mark.parametrize(
    ("generation", "spec", "metadata", "ops", "is_odd"),
    [
        (1, {"nodeName": "n"}, {}, [Op.ADDED, Op.MODIFIED], False),
        (2, {"image": "b"}, {}, [Op.ADDED, Op.MODIFIED], False),
        (2, {}, ENDING, [Op.ADDED, Op.MODIFIED], False),
        (2, {"nodeName": "n"}, {}, [Op.ADDED, Op.GAP, Op.MODIFIED], False),
        (1, {"image": "b"}, {}, [Op.ADDED, Op.MODIFIED], True),
    ],
)
def test_generation_of_a_pod_rises_with_all_of_its_spec_but_the_node(
    generation, spec, metadata, ops, is_odd, tmp_path
):
    def pod(rv, generation, *, image="a", metadata=None, **spec):
        spec["containers"] = [{"name": "main", "image": image}]
        return tree(PODS, rv=rv, metadata={"generation": generation, **(metadata or {})}, spec=spec)

    states = pod(3, 1), pod(5, generation, metadata=metadata, **spec)
    lines = [
        audit(verb, state, type_=PODS, second=second)
        for second, (verb, state) in enumerate(zip(("create", "update"), states, strict=True))
    ]
    records, found = read(write_lines(tmp_path / "audit.jsonl", lines))
    assert [record.op for record in records] == ops
    assert bool(found) is is_odd
