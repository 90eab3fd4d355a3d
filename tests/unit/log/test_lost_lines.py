"""What shows that lines of a log are lost here and there, and of which kinds and times."""

import pytest

from app.domain.log import ObjectKey, Revision
from app.domain.log.lost_lines import LostLines
from app.domain.values import api_groups

CLAIM, SLICE, RULE = "resourceclaims", "resourceslices", "devicetaintrules"


def key(resource, name):
    return ObjectKey("" if resource == "pods" else api_groups.RESOURCE, resource, "", name)


def lost_lines(*lost, lacks_ends=False):
    lines = LostLines(lacks_ends=lacks_ends)
    for resource, name, after in lost:
        lines.note(key(resource, name), Revision(after))
    return lines


@pytest.mark.parametrize(
    ("lost", "resource", "may_lack"),
    [
        ([], CLAIM, False),
        ([(CLAIM, "a", 5)], CLAIM, False),
        ([(CLAIM, "a", 5), (CLAIM, "a", 9)], CLAIM, False),
        ([(CLAIM, "a", 5), (CLAIM, "b", 9)], CLAIM, True),
        ([(CLAIM, "a", 5), (CLAIM, "b", 9)], SLICE, False),
        ([(CLAIM, "a", 5), (CLAIM, "b", 9), ("pods", "a", 9)], SLICE, False),
        ([(CLAIM, "a", 5), (CLAIM, "b", 9), ("pods", "a", 9), ("pods", "b", 9)], SLICE, True),
    ],
)
def test_several_objects_show_it_of_a_kind_and_several_kinds_of_any(lost, resource, may_lack):
    assert lost_lines(*lost).may_lack(resource) is may_lack


@pytest.mark.parametrize(("before", "may_lack"), [(5, False), (6, False), (10, True)])
def test_lost_line_says_nothing_of_what_came_before_its_object_was_last_written(before, may_lack):
    lines = lost_lines((RULE, "a", 5), (RULE, "b", 9))
    assert lines.may_lack(RULE, Revision(before)) is may_lack


def test_claims_may_be_lost_when_a_claim_is_not_the_only_lost_line():
    assert lost_lines((CLAIM, "a", 5), ("pods", "a", 9)).may_lack_claims
    assert not lost_lines(("pods", "a", 5), ("pods", "b", 9)).may_lack_claims


def test_end_of_a_pod_is_no_sign_where_all_deletions_are_left_out():
    lost = (("pods", "a", 5), ("pods", "b", 9))
    assert lost_lines(*lost).is_lossy
    assert not lost_lines(*lost, lacks_ends=True).is_lossy
