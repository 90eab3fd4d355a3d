"""The view of objects: what it keeps, and what it lets go."""

from projections.objects import ObjectsProjection
from tests.unit.projections.log_of import LogOf


def churn(view: ObjectsProjection) -> LogOf:
    """One object stays, nine come and go."""
    log = LogOf(view)
    log.put("pod", "ns/stays", metadata={"ownerReferences": [{"uid": "owner"}]})
    for number in range(9):
        log.put("pod", f"ns/gone-{number}", metadata={"ownerReferences": [{"uid": "owner"}]})
        log.delete("pod", f"ns/gone-{number}")
    log.put("pod", "ns/stays", spec={"nodeName": "n"})
    return log


def test_view_from_which_nobody_takes_rows_forgets_what_is_gone() -> None:
    view = ObjectsProjection(1, tells_changes=False)
    churn(view)
    held = repr(vars(view))
    assert "stays" in held
    assert "gone" not in held
    assert view.take_changed() == {}


def test_hash_is_that_of_the_objects_whether_changes_are_told_or_not() -> None:
    told, quiet = ObjectsProjection(), ObjectsProjection(tells_changes=False)
    log = churn(told)
    for event in log.events:
        quiet.fold(event)
    assert quiet.state_hash() == told.state_hash()
    log.put("pod", "ns/late")
    quiet.fold(log.events[-1])
    assert quiet.state_hash() == told.state_hash()
