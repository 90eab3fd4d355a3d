"""What a normal run takes of the tests that repeat, and that `make draws` has them all."""

import re
from types import SimpleNamespace
from unittest import mock

import pytest

from tests import draws, track_record
from tests.shared_data import REPOSITORY

GROUPS = [[f"{name}{number}" for number in range(3)] for name in "abcdefghijkl"]


def chosen(groups, choose, *, whole=False):
    with mock.patch.object(draws, "WHOLE", whole):
        return choose(groups)


def test_normal_run_takes_one_case_of_each_group_and_each_position():
    for choose in (draws.by_turns, draws.first_of_each):
        cases = chosen([*GROUPS, [], ["z0"]], choose)
        assert [case[0] for case in cases] == [*"abcdefghijkl", "z"]
        assert {case[1] for case in cases} == {"0", "1", "2"}
        assert chosen(GROUPS, choose, whole=True) == [case for group in GROUPS for case in group]


def test_most_groups_are_represented_by_their_first_case():
    cases = chosen(GROUPS, draws.first_of_each)
    assert cases == ["a0", "b0", "c0", "d1", "e0", "f0", "g0", "h2", "i0", "j0", "k0", "l1"]


def test_seven_days_have_all_cases_and_the_next_seven_in_other_parts():
    blocks = []
    for block in range(2):
        days = []
        for day in range(7):
            with mock.patch.object(draws, "DAY", 7 * block + day):
                days.append(chosen(list("abcdefghijk"), draws.of_today))
        assert sorted(case for day in days for case in day) == list("abcdefghijk")
        assert days == [sorted(day) for day in days]
        assert {len(day) for day in days} == {1, 2}
        blocks.append(days)
    assert blocks[0] != blocks[1]
    assert chosen(list("abc"), draws.of_today, whole=True) == list("abc")


def rows_of(name, parameters, marks=(draws.BY_DAY.mark,), module="test_rows"):
    """Rows of a test, as pytest collects them."""
    marked = {mark.name: mark for mark in marks}
    return [
        SimpleNamespace(
            nodeid=f"tests/{module}.py::{name}[{value}]",
            name=f"{name}[{value}]",
            originalname=name,
            callspec=SimpleNamespace(params={"value": value}),
            get_closest_marker=marked.get,
        )
        for value in parameters
    ]


@pytest.mark.parametrize("count", [1, 2, 3, 4, 5, 23])
def test_each_day_has_some_rows_of_each_test_and_seven_days_have_all(count):
    rows = rows_of("test_of_nobody", range(count))
    check_days(rows, lambda row: row.name, range(100, 107))


@pytest.mark.parametrize("count", [1, 2, 3, 4, 5, 23])
def test_each_day_has_a_test_of_each_family_and_seven_days_have_all(count):
    """Rows of several tests belong to one family; the family of another module is another one."""
    marks = [draws.in_turn("clients").mark]
    for module in ("test_one", "test_two"):
        rows = rows_of("test_of_rows", range(count - count // 2), marks, module)
        rows += [rows_of(f"test_{number}", [""], marks, module)[0] for number in range(count // 2)]
        check_days(rows, lambda row: row.nodeid, range(100, 107))


@pytest.mark.parametrize("family", sorted(draws.OF_A_FOLDER))
def test_long_tests_of_a_folder_are_one_family(family):
    marks = [draws.in_turn(family).mark]
    modules = [f"web/test_{number}" for number in range(5)]
    rows = [row for module in modules for row in rows_of("test_of_rows", range(2), marks, module)]
    check_days(rows, lambda row: row.nodeid, range(100, 114 if family == "ways" else 107))
    others = rows_of("test_of_rows", range(3), marks, "api/test_one")
    for day in range(100, 107):
        left = draws.of_other_days([*rows, *others], day)
        assert [row for row in left if row in rows] == draws.of_other_days(rows, day)
        assert [row for row in left if row in others] == draws.of_other_days(others, day)


@pytest.mark.parametrize("count", [1, 2, 5, 7, 9, 30])
@pytest.mark.parametrize("family", ["wrongs", "rows of refusals"])
def test_verdicts_of_a_family_that_the_track_record_names_come_in_four_days(family, count):
    marks = [draws.in_turn(family).mark]
    text = "Words\n## Track record\n| `test_that_failed`, `test_of_rows[0]` |"
    with mock.patch.object(track_record, "named", return_value=track_record.names_of(text)):
        named = rows_of("test_that_failed", range(3), marks)
        rows = [*rows_of("test_of_rows", range(count), marks), *named]
        for day in range(100, 107):
            left = [draws.of_other_days(rows, later) for later in range(day, day + 4)]
            for row in (rows[0], *named):
                assert not all(row in each for each in left)
        for row in rows[1:count]:
            turns = [day for day in range(7) if row not in draws.of_other_days(rows, day)]
            assert len(turns) == 1 or len(rows) < 7


@pytest.mark.parametrize("count", [13, 14, 30])
def test_long_tests_that_show_that_something_works_come_once_in_fourteen_days(count):
    """What no longer works in a client or a long recording fails in short tests each day."""
    rows = rows_of("test_of_rows", range(count), [draws.in_turn("ways").mark])
    check_days(rows, lambda row: row.nodeid, range(100, 114))
    shares = [count - len(draws.of_other_days(rows, day)) for day in range(100, 114)]
    assert set(shares) <= {count // 14 or 1, -(-count // 14)}


@pytest.mark.parametrize("family", ["ends", "rows of ways", "clients"])
def test_other_tests_of_a_family_that_the_track_record_names_come_once_in_seven_days(family):
    text = "Words\n## Track record\n| `test_of_rows` |"
    with mock.patch.object(track_record, "named", return_value=track_record.names_of(text)):
        rows = rows_of("test_of_rows", range(9), [draws.in_turn(family).mark])
        assert [turns_of(row, rows) for row in rows] == [1] * 9


@pytest.mark.parametrize("count", [1, 2, 4, 9])
def test_modules_in_turn_come_whole(count):
    marks = [draws.modules_in_turn("clients").mark]
    rows = [
        row
        for number in range(count)
        for row in rows_of("test_of_rows", range(3), marks, f"test_{number}")
    ]
    check_days(rows[::3], lambda row: row.nodeid, range(100, 107))
    for day in range(100, 107):
        left = draws.of_other_days(rows, day)
        assert left == [row for row in rows if rows[rows.index(row) // 3 * 3] in left]


def check_days(rows, name_of, days):
    """Each day has its part of the rows, and never none; the days together have all."""
    names = []
    for day in days:
        left = draws.of_other_days(rows, day)
        names.append({name_of(row) for row in rows if row not in left})
        turns = min(len(days), len(rows))
        assert len(rows) // turns <= len(names[-1]) <= -(-len(rows) // turns)
    assert set().union(*names) == {name_of(row) for row in rows}
    assert sum(map(len, names)) >= len(rows)


def test_tests_that_share_work_have_the_same_rows_on_each_day():
    marks = [draws.BY_DAY("work").mark]
    for day in range(4):
        first, second = (
            [row.name.partition("[")[2] for row in draws.of_other_days(rows, day)]
            for rows in (rows_of("test_one", range(9), marks), rows_of("test_two", range(9), marks))
        )
        assert first == second


def test_rows_of_other_marks_come_each_day():
    assert draws.of_other_days(rows_of("test_of_nobody", range(9), marks=())) == []


def alteration():
    """Another function of one name for each recording, as the rows of an alteration are others."""

    def altered_lines(lines):
        """Stands for an alteration."""

    return altered_lines


def test_row_that_the_track_record_names_comes_twice_in_seven_days():
    text = "Words\n## Track record\n| `rows_of_each`, `eviction_…_early`, `after_N_days`, `_lost` |"
    defects = ["rows_of_each", "eviction_alone_early", "after_12_days", "a_report_lost"]
    with mock.patch.object(track_record, "named", return_value=track_record.names_of(text)):
        rows = rows_of("test_of_nobody", [*defects, *range(8)])
        assert [turns_of(row, rows) for row in rows] == [2] * 4 + [1] * 8
        (row,) = rows_of("test_of_nobody", ["eviction_late"])
        assert track_record.defect_of(row) == ""


def turns_of(row, rows):
    """The number of days of seven on which a row comes."""
    return sum(row not in draws.of_other_days(rows, day) for day in range(100, 107))


def test_ends_and_parts_of_names_mean_no_test():
    text = "Words\n## Track record\n| `…_without_…`, `_nobody`, `test_lines_without_…` |"
    with mock.patch.object(track_record, "named", return_value=track_record.names_of(text)):
        for name in ("test_logs_without_writers", "test_of_nobody"):
            (row,) = rows_of(name, ["plain"])
            assert track_record.defect_of(row) == ""
        (row,) = rows_of("test_logs_without_writers", ["loses_pods_without_end"])
        assert track_record.defect_of(row)
        (row,) = rows_of("test_lines_without_end", ["plain"])
        assert track_record.defect_of(row)


def test_first_row_of_an_alteration_that_the_track_record_names_comes_twice_in_seven_days():
    text = "Words\n## Track record\n| `altered_lines` |"
    with mock.patch.object(track_record, "named", return_value=track_record.names_of(text)):
        rows = rows_of("test_of_nobody", [alteration() for _ in range(7)])
        assert [turns_of(row, rows) for row in rows] == [2] + [1] * 6


def test_track_record_names_rows_of_the_tests_that_come_by_day():
    """Where it names such a test as a whole, nobody knows which row is to come more often."""
    tests = [
        name
        for module in sorted((REPOSITORY / "tests").rglob("test_*.py"))
        for name in re.findall(
            r"^@draws\.BY_DAY\n(?:[@\s\])].*\n)*(?:async )?def (test_\w+)",
            module.read_text(),
            re.MULTILINE,
        )
    ]
    assert "test_an_altered_recording_gets_its_verdict" in tests
    record = track_record.text()
    assert [name for name in tests if re.search(rf"\b{name}\b(?!\[)", record)] == []
    assert track_record.named().fullmatch("test_every_difference_of_a_small_soak_is_proved")


def test_each_module_with_more_to_draw_belongs_to_make_draws():
    lines = (REPOSITORY / "Makefile").read_text().replace("\\\n", " ")
    (paths,) = re.findall(r"^DRAWN := (.*)$", lines, re.MULTILINE)
    drawn = [REPOSITORY / "tests" / path for path in paths.split()]
    assert all(path.exists() for path in drawn)
    missing = [
        str(module.relative_to(REPOSITORY))
        for module in sorted((REPOSITORY / "tests").rglob("test_*.py"))
        if re.search(
            r"\bdraws\.(WHOLE|ONLY|BY_DAY|by_day|in_turn|modules_in_turn|of_today|DAY|seeds|part|by_turns|first_of_each|repeated)\b",
            module.read_text(),
        )
        and not any(module.is_relative_to(path) for path in drawn)
        and module.name != "test_draws.py"
    ]
    assert missing == []


HELD = re.compile(r'each_day="([\w/]+\.py)::(?:"\s*")?(test_\w+)"')
"""What the mark of a long test says of the short one that each run has."""


def test_short_test_that_a_long_one_names_comes_each_day():
    tests = REPOSITORY / "tests"
    named = {
        pair
        for module in sorted(tests.rglob("test_*.py"))
        for pair in HELD.findall(module.read_text())
    }
    assert named
    for file, name in sorted(named):
        text = (tests / file).read_text()
        marks = re.search(rf"^((?:[@ \])].*\n)*)(?:async )?def {name}\(", text, re.MULTILINE)
        assert marks, f"{file} has no {name}"
        whole = re.search(r"^pytestmark = .*", text, re.MULTILINE)
        assert "draws." not in marks[1] + (whole[0] if whole else ""), f"{name} is not in each run"
