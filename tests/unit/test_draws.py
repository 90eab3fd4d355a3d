"""What a normal run takes of the tests that repeat, and that `make draws` has them all."""

import re
from unittest import mock

from tests import draws
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


def test_each_module_with_more_to_draw_belongs_to_make_draws():
    lines = (REPOSITORY / "Makefile").read_text().replace("\\\n", " ")
    (paths,) = re.findall(r"^DRAWN := (.*)$", lines, re.MULTILINE)
    drawn = [REPOSITORY / "tests" / path for path in paths.split()]
    assert all(path.exists() for path in drawn)
    missing = [
        str(module.relative_to(REPOSITORY))
        for module in sorted((REPOSITORY / "tests").rglob("test_*.py"))
        if re.search(
            r"\bdraws\.(WHOLE|ONLY|seeds|part|by_turns|first_of_each|repeated)\b",
            module.read_text(),
        )
        and not any(module.is_relative_to(path) for path in drawn)
        and module.name != "test_draws.py"
    ]
    assert missing == []
