"""The view of objects: what it keeps, and what it lets go."""

import random

from app.domain.log.chain import canonical_json
from projections.objects import ObjectsProjection
from projections.tables import OBJECTS
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


def test_dependents_and_unusual_events_are_those_of_the_objects_that_exist() -> None:
    for seed in range(30):
        pick = random.Random(seed)
        view = ObjectsProjection()
        log = LogOf(view)
        owners: dict[str, set[str]] = {}
        types: dict[str, str] = {}
        for _ in range(60):
            name = f"ns/{pick.randrange(8)}"
            if pick.random() < 0.2:
                for kind, known in (("pod", owners), ("event", types)):
                    if known.pop(name, None) is not None:
                        log.delete(kind, name)
            else:
                owners[name] = set(pick.choices(("u1", "u2", "u3"), k=pick.randrange(4)))
                named = [{"uid": uid} for uid in owners[name]]
                log.put("pod", name, metadata={"ownerReferences": named} if named else {})
                types[name] = pick.choice(("Normal", "Warning", ""))
                log.put("event", name, **({"type": types[name]} if types[name] else {}))
            if pick.random() < 0.3:
                for uid in ("u1", "u2", "u3"):
                    of_owner = [f"{key.namespace}/{key.name}" for key in view.dependents(uid)]
                    assert of_owner == sorted(n for n, uids in owners.items() if uid in uids)
            unusual = [event.key.name for event in view.unusual_events("ns")]
            assert unusual == sorted(n[3:] for n, kind in types.items() if kind != "Normal")
            assert view.unusual_events("other") == []


def test_row_of_a_secret_names_its_values_and_does_not_hold_them() -> None:
    view = ObjectsProjection()
    log = LogOf(view)
    log.put(
        "secret",
        "ns/s",
        metadata={
            "annotations": {
                "note": "kept",
                "kubectl.kubernetes.io/last-applied-configuration": '{"data":{"a":"hunter2"}}',
            }
        },
        data={"a": "hunter2"},
        stringData={"b": "hunter2"},
        type="Opaque",
    )
    log.put("secret", "ns/odd", data="hunter2")
    row = view.row(OBJECTS.name, ("", "secrets", "ns", "s"))
    assert row is not None
    shown = row["object"]
    assert (shown["data"], shown["stringData"], shown["type"]) == (
        {"a": None},
        {"b": None},
        "Opaque",
    )
    assert shown["metadata"]["annotations"] == {"note": "kept"}
    assert b"hunter2" not in canonical_json(view.row(OBJECTS.name, ("", "secrets", "ns", "odd")))
    kept = view.get(log.events[0].key)
    assert kept is not None
    assert kept["data"] == {"a": "hunter2"}, "the view itself is what clients read from"
