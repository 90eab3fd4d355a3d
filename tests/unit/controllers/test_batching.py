"""Plans that go together, when one key cannot be planned."""

import pytest

from app.domain.controllers.batching import COMMANDS_MAX, Batcher
from app.domain.controllers.plan import Plan
from app.domain.log import ObjectKey
from app.domain.objects.write.commands import DeleteObject


def plan_of(name: str) -> Plan:
    command = DeleteObject(key=ObjectKey("", "pods", "default", name), version="v1")
    return Plan(controller="c", key=name, commands=(command,))


def test_mistake_about_one_key_loses_none_of_those_collected_before():
    waiting = ["a", "b", "odd", "c"]
    put_back: list[str] = []

    def make() -> Plan | None:
        if not waiting:
            return None
        name = waiting.pop(0)
        if name == "odd":
            raise ValueError(name)
        return plan_of(name)

    def keep(plan: Plan) -> None:
        put_back.append(plan.key)
        waiting.append(plan.key)

    batcher = Batcher()
    with pytest.raises(ValueError, match="odd"):
        batcher.collect(make, keep)
    assert put_back == ["a", "b"]
    together = batcher.collect(make, keep)
    assert together is not None
    assert [part.key for part in together.parts] == ["c", "a", "b"]


def test_batch_of_large_plans_is_closed_early():
    wide = Plan(
        controller="c",
        key="wide",
        commands=tuple(
            DeleteObject(key=ObjectKey("", "pods", "default", f"p{number}"), version="v1")
            for number in range(COMMANDS_MAX)
        ),
    )
    waiting = [wide, plan_of("a"), plan_of("b")]

    def make() -> Plan | None:
        return waiting.pop(0) if waiting else None

    batcher = Batcher()
    first = batcher.collect(make, lambda plan: None)
    assert first is wide
    second = batcher.collect(make, lambda plan: None)
    assert second is not None
    assert [part.key for part in second.parts] == ["a", "b"]


def put_back(batcher: Batcher, refused: Plan) -> list[Plan]:
    """The plans of a refused batch, none of which is settled by itself."""
    waiting: list[Plan] = []
    assert batcher.settle(refused, "refused", waiting.append) == ()
    return waiting


@pytest.mark.parametrize("failing", ["p00", "p17", "p47"])
def test_failing_plan_is_found_while_others_share_appends(failing: str) -> None:
    """The queue gives a refused plan back first, as those of controllers do."""
    waiting = [plan_of(f"p{number:02}") for number in range(48)]
    batcher = Batcher(48)
    appends: list[int] = []
    refusals = 0
    while waiting:
        batch = batcher.collect(lambda: waiting.pop(0) if waiting else None, waiting.append)
        assert batch is not None
        parts = batch.parts or (batch,)
        if all(part.key != failing for part in parts):
            batcher.settle(batch, None, waiting.append)
            appends.append(len(parts))
            continue
        refusals += 1
        if batch.parts:
            waiting[:0] = put_back(batcher, batch)
    assert sum(appends) == 47
    assert len(appends) + refusals <= 20


def test_batch_that_another_client_refuses_once_is_made_in_two_halves() -> None:
    waiting = [plan_of(f"p{number:02}") for number in range(96)]
    batcher = Batcher(48)

    def collect() -> Plan:
        batch = batcher.collect(lambda: waiting.pop(0) if waiting else None, waiting.append)
        assert batch is not None
        return batch

    waiting[:0] = put_back(batcher, collect())
    sizes = []
    while waiting:
        batch = collect()
        sizes.append(len(batch.parts))
        batcher.settle(batch, None, waiting.append)
    assert sizes == [24, 48, 24]


@pytest.mark.parametrize(("foreseen", "together"), [(False, 1), (True, 2)])
def test_object_is_touched_twice_only_when_that_was_foreseen(foreseen, together):
    shared = ObjectKey("", "pods", "default", "a")
    waiting = [plan_of("a"), plan_of("a")]
    put_back: list[Plan] = []
    found = Batcher().collect(
        lambda: waiting.pop(0) if waiting else None,
        put_back.append,
        foreseen={shared} if foreseen else (),
    )
    assert found is not None
    assert len(found.parts or (found,)) == together
    assert len(put_back) == 2 - together
