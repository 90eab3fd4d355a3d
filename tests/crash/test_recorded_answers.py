"""The answers that clients got are in the log, whichever process died; see `recorded_answers`."""

from pathlib import Path

import pytest

from app.domain.log import Event, Head, ObjectKey
from tests import draws
from tests.contracts.building import draft, sealed
from tests.crash import recorded_answers
from tests.crash.recorded_answers import Asked, Record

KILLS = 10


@draws.ONLY
@pytest.mark.slow
@pytest.mark.database
@pytest.mark.parametrize("seed", draws.seeds(1, first=1))
async def test_answers_are_in_the_log_when_server_and_database_die(
    seed: int, tmp_path: Path
) -> None:
    record = await recorded_answers.live(tmp_path, seed, KILLS)
    assert record.killed == ["up", "postgres"] * (KILLS // 2)
    codes = {write.code for write in record.writes}
    assert {0, 201, 200} <= codes, "some are answered, and some are not"


def told() -> tuple[Record, list[Event]]:
    """Two clients, one after the other, and the log that holds their writes."""
    events = sealed(
        Head(),
        *(
            draft(
                ObjectKey("", "configmaps", "default", name),
                tree={"kind": "ConfigMap", "metadata": {"name": name}, "data": {"mark": mark}},
            )
            for name, mark in (("a", "one"), ("b", "two"))
        ),
    )
    writes = [
        Asked(
            verb="create", name=event.key.name, mark=event.object["data"]["mark"], sent=2 * number,
            answered=2 * number + 1, code=201, revision=event.revision, content=event.object,
        )
        for number, event in enumerate(events)
    ]  # fmt: skip
    return Record(writes=writes), events


def change(record: Record, number: int, **values: object) -> None:
    for name, value in values.items():
        setattr(record.writes[number], name, value)


def test_whole_story_agrees() -> None:
    recorded_answers.check_answers(*told())


@pytest.mark.parametrize(
    ("values", "words"),
    [
        ({"mark": "three"}, "stored 0 times"),
        ({"revision": 1}, "1 at 2"),
        ({"name": "c"}, "create c two"),
        ({"content": {"data": {"mark": "one"}}}, "create b two"),
        ({"code": 409}, "refused, and stored"),
        ({"sent": -2, "answered": -1}, "before what was answered before it"),
    ],
)
def test_judge_notices_an_answer_that_the_log_does_not_hold(
    values: dict[str, object], words: str
) -> None:
    record, events = told()
    change(record, 1, **values)
    with pytest.raises(AssertionError, match=words):
        recorded_answers.check_answers(record, events)


def test_judge_notices_what_nobody_asked_for() -> None:
    record, events = told()
    del record.writes[1]
    with pytest.raises(AssertionError, match="never asked for"):
        recorded_answers.check_answers(record, events)


def test_judge_notices_a_head_of_nothing() -> None:
    record, events = told()
    record.heads.append({"revision": 2, "hash": "sha256:" + "0" * 64})
    with pytest.raises(AssertionError, match="a head of no stored event"):
        recorded_answers.check_answers(record, events)
