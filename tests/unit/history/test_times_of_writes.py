"""Times of an object in a watch that are after the last write that the object shows."""

import pytest

from app.domain.log.records import Loss
from tests.unit.history.worlds import CLAIMS, read_records, tree, watch, write_lines

DAY = "2026-01-01T00:00:"


@pytest.mark.parametrize(
    ("created", "allocated", "written", "is_odd"),
    [
        pytest.param(5, None, [5, 9], False, id="created with its first write"),
        pytest.param(7, None, [5], False, id="by the skew and a second"),
        pytest.param(8, None, [5], True, id="created after its last write"),
        pytest.param(8, None, [5, 8], False, id="made from a copy"),
        pytest.param(5, 9, [5, 8], False, id="allocated about its last write"),
        pytest.param(5, 12, [5, 8], True, id="allocated after its last write"),
        pytest.param(8, 30, [], False, id="writes are not shown"),
    ],
)
def test_object_is_made_and_allocated_by_a_write(created, allocated, written, is_odd, tmp_path):
    metadata = {
        "creationTimestamp": f"{DAY}{created:02d}Z",
        "managedFields": [{"manager": "m", "time": f"{DAY}{each:02d}Z"} for each in written],
    }
    state = tree(CLAIMS, name="c", uid="u", rv=3, metadata=metadata)
    if allocated is not None:
        state["status"] = {"allocation": {"allocationTimestamp": f"{DAY}{allocated:02d}Z"}}
    (record,) = read_records(write_lines(tmp_path / "claims.jsonl", [watch("ADDED", state)]))
    assert (Loss.TIMES_CONTRADICT in record.losses) is is_odd
