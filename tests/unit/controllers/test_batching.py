"""Plans that go together, when one key cannot be planned."""

import pytest

from app.domain.controllers.batching import Batcher
from app.domain.controllers.plan import Plan
from app.domain.log import ObjectKey
from app.domain.objects.commands import DeleteObject


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
