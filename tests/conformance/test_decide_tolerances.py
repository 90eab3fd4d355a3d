"""No verdict on the recording hangs on a constant: half or double of each gives the same.

On all recordings: `python -m tests.conformance.decide_tolerances`; the page tells what it found.

Constants come by day: each row changes one and asks for the same verdict.
"""

import ast
from collections.abc import Iterator
from dataclasses import fields
from pathlib import Path

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


NO_TOLERANCES = {
    # Changed worlds alone, which no recording shows.
    "app/service/replays/deciding/altered.py": {"SOON"},
    # The order of events of one time, the number of looks at a run, a number of a release.
    "app/analysis/replay/instants.py": {"_BETWEEN"},
    "app/service/replays/deciding/runs.py": {"_LOOKS"},
    "app/analysis/replay/recording.py": {"_OBSERVED_SINCE"},
    # What an answer lists.
    "app/analysis/replay/report.py": {"LISTED_MAX", "USERS_MAX"},
}


def constants(path: Path) -> Iterator[str]:
    """The names of the numbers, also of products such as `3 * SECOND`, that a module sets."""
    for node in ast.parse(path.read_text(encoding="utf-8")).body:
        if not isinstance(node, ast.Assign | ast.AnnAssign) or node.value is None:
            continue
        targets = node.targets if isinstance(node, ast.Assign) else [node.target]
        parts = [
            each.value
            for each in ast.walk(node.value)
            if isinstance(each, ast.Constant) and type(each.value) in (int, float)
        ]
        units = [
            each
            for each in ast.walk(node.value)
            if (isinstance(each, ast.Name) and each.id in ("SECOND", "MILLI", "MINUTE"))
            or (isinstance(each, ast.Attribute) and each.attr in ("SECOND", "MILLI", "MINUTE"))
        ]
        is_an_instant = isinstance(node.value, ast.Call)
        if (parts or units) and not is_an_instant:
            yield from (each.id for each in targets if isinstance(each, ast.Name))


def test_constants_of_the_comparison_stand_in_the_table():
    others: dict[str, set[str]] = {}
    for folder in ("app/analysis/replay", "app/service/replays/deciding"):
        for path in sorted((REPOSITORY / folder).rglob("*.py")):
            if path.name != "tolerances.py" and (names := {*constants(path)}):
                others[str(path.relative_to(REPOSITORY))] = names
    assert others == NO_TOLERANCES


def test_constants_are_found_in_each_form(tmp_path):
    path = tmp_path / "module.py"
    path.write_text(
        "A = 3\nB: int = 2 * SECOND\nC = timestamps.SECOND\nD = 'x'\nE = Instant(2**62)\nF = TABLE"
    )
    assert [*constants(path)] == ["A", "B", "C"]
