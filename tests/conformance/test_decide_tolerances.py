"""No verdict on the recording hangs on a constant: half or double of each gives the same.

On all recordings: `python -m tests.conformance.decide_tolerances`; the page tells what it found.

Constants come by day: each row changes one and asks for the same verdict.
"""

from dataclasses import fields

import pytest

from app.analysis.replay.tolerances import TABLE
from tests import draws
from tests.conformance.decide_tolerances import LITERAL, Recorded, changed_tables
from tests.shared_data import REPOSITORY

pytestmark = pytest.mark.timeout(0)
"""How long a replay takes is a matter of the machine."""

TABLES = dict(changed_tables())
ROWS = draws.by_turns(
    [row for row in TABLES if row.partition("=")[0] == each.name] for each in fields(TABLE)
)


@pytest.fixture(scope="module")
def recorded():
    """The recording with the most that depends on instants in the least time."""
    return Recorded("e-taints")


@draws.BY_DAY
@pytest.mark.parametrize("row", ROWS)
async def test_half_or_double_of_a_constant_changes_no_verdict(row, recorded):
    assert await recorded.verdict(TABLES[row]) == (True, [{}] * len(LITERAL))


def test_each_row_says_what_it_means_and_where_it_comes_from():
    page = (REPOSITORY / "docs/explanation/decide.md").read_text()
    for row in fields(TABLE):
        assert all(row.metadata[part] for part in ("unit", "meaning", "source"))
        assert f"| `{row.name}` |" in page
