"""Questions in SQL: what comes back, and that nothing can be changed by asking."""

import pytest

from app.adapters.postgres import queries
from app.adapters.postgres.database import open_database
from app.domain.errors import InputError

pytestmark = pytest.mark.database


async def ask(url: str, text: str, *, rows_max: int = 100) -> queries.Found:
    async with open_database(url) as database:
        return await queries.ask(database, text, rows_max=rows_max)


async def test_values_come_as_people_and_programs_read_them(database_url: str) -> None:
    found = await ask(
        database_url,
        "SELECT '2026-01-02T03:04:05.000006Z'::timestamptz AS at, '[{\"a\": 1}]'::json AS json, "
        "NULL AS none, 2.0::numeric AS whole, 2.5::numeric AS half, ARRAY['a'] AS list, "
        "'\\x0a'::bytea AS bytes, true AS yes",
    )
    assert dict(zip(found.columns, found.rows[0], strict=True)) == {
        "at": "2026-01-02T03:04:05.000006Z",
        "json": [{"a": 1}],
        "none": None,
        "whole": 2,
        "half": "2.5",
        "list": ["a"],
        "bytes": "0a",
        "yes": True,
    }
    assert not found.cut


async def test_rows_are_bounded_and_what_is_left_out_is_told(database_url: str) -> None:
    found = await ask(database_url, "SELECT * FROM generate_series(1, 5) AS n", rows_max=3)
    assert found.rows == ((1,), (2,), (3,))
    assert found.cut
    found = await ask(database_url, "SELECT * FROM generate_series(1, 3) AS n", rows_max=3)
    assert not found.cut


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("selct 1", 'syntax error at or near "selct"'),
        ("SELECT nope FROM view_claims", 'column "nope" does not exist'),
        ("SELECT 1 FROM nope", 'relation "nope" does not exist'),
        ("SELECT 1/0", "division by zero"),
        ("SELECT 1; SELECT 2", "cannot insert multiple commands"),
        ("DELETE FROM histories", "cannot execute DELETE in a read-only transaction"),
        ("DROP TABLE view_claims", "cannot execute DROP TABLE in a read-only transaction"),
    ],
)
async def test_wrong_question_is_refused_in_words(database_url: str, text: str, words: str) -> None:
    with pytest.raises(InputError, match=words.replace("(", r"\(")):
        await ask(database_url, text)
