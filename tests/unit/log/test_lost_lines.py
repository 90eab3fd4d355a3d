"""What shows that lines of a log are lost here and there, and of which kinds and times."""

import msgspec
import pytest

from app.domain.log import Actor, Event, EventType, ObjectKey, Revision, Stamp
from app.domain.log.event import Origin
from app.domain.log.lost_lines import LostLines
from app.domain.log.records import Loss, TimeQuality
from app.domain.values import api_groups
from app.domain.values.timestamps import Instant

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


def stretch(revision, *, is_late=False):
    """A gap of all kinds, where it begins or, late, where it was noticed."""
    quality = TimeQuality.EXACT if is_late else TimeQuality.NONE
    origin = Origin(source="audit", losses=(Loss.GAP.value,), time_quality=quality.value)
    return Event(
        revision=Revision(revision),
        type=EventType.GAP_OBSERVED,
        key=ObjectKey("", "", "", ""),
        uid="",
        body=b"{}",
        stamp=Stamp(time=Instant(0), actor=Actor(user="import"), verb="import", origin=origin),
    )


@pytest.mark.parametrize(
    ("before", "stretches", "after", "is_lossy"),
    [
        ((), (7,), (5, 6), False),
        ((5,), (7,), (6,), True),  # one was noticed before the stretch
        ((), (7,), (5, 8), True),  # the other one was lost after its beginning
        ((), (7, 9), (5, 6), True),  # several stretches are no single accident
        ((), (), (5, 6), True),
    ],
)
def test_one_stretch_that_holds_all_lost_lines_explains_them(before, stretches, after, is_lossy):
    lines = lost_lines(*((CLAIM, f"early {revision}", revision) for revision in before))
    for revision in stretches:
        lines.follow(stretch(revision))
    for revision in after:
        lines.note(key(CLAIM, f"late {revision}"), Revision(revision))
    assert lines.is_lossy is lines.may_lack_claims is is_lossy


def test_stretch_that_was_noticed_late_does_not_say_where_it_was():
    lines = LostLines()
    lines.follow(stretch(7, is_late=True))
    for name, after in (("a", 5), ("b", 6)):
        lines.note(key(CLAIM, name), Revision(after))
    assert lines.is_lossy


def claim_seen(name, *, template=True, losses=(Loss.SYNTHETIC_CREATE,), made="00:05:00"):
    """A claim as a line shows it for the first time, ten minutes after the log began."""
    annotations = {"resource.kubernetes.io/pod-claim-name": "gpu"} if template else {}
    metadata = {"name": name, "annotations": annotations}
    metadata["creationTimestamp"] = f"1970-01-01T{made}Z"
    origin = Origin(source="audit", losses=tuple(each.value for each in losses))
    return Event(
        revision=Revision(9),
        type=EventType.OBJECT_CREATED,
        key=key(CLAIM, name),
        uid=name,
        body=msgspec.json.encode({"metadata": metadata}),
        stamp=Stamp(
            time=Instant(600_000_000), actor=Actor(user="scheduler"), verb="update", origin=origin
        ),
    )


@pytest.mark.parametrize(
    ("seen", "lacks"),
    [
        ([claim_seen("a"), claim_seen("b")], True),
        ([claim_seen("a")], False),
        ([claim_seen("a"), claim_seen("b"), claim_seen("c", losses=())], False),
        ([claim_seen("a"), claim_seen("b"), claim_seen("c", losses=(), template=False)], True),
        ([claim_seen("a"), claim_seen("b", template=False)], False),
        ([claim_seen("a", made="00:00:00"), claim_seen("b", made="00:00:00")], False),
    ],
)
def test_releases_are_left_out_where_claims_of_templates_are_used_and_none_is_made(seen, lacks):
    lines = LostLines()
    lines.follow(stretch(1, is_late=True))
    for event in seen:
        lines.follow(event)
    assert lines.lacks_releases is lacks


@pytest.mark.parametrize(
    ("users", "lacks"),
    [
        (("scheduler", "controller"), False),
        (("scheduler", "scheduler"), True),
        (("", ""), True),
    ],
)
def test_releases_are_recorded_where_another_than_the_scheduler_takes_a_consumer_away(users, lacks):
    """A scheduler takes back what it reserved itself, which says nothing of others."""
    lines = LostLines()
    lines.follow(stretch(1, is_late=True))
    first = claim_seen("a")
    for event in (claim_seen("a"), claim_seen("b")):
        lines.follow(event)
    for consumers, user in ((["pod"], users[0]), ([], users[1])):
        tree = msgspec.json.decode(first.body)
        tree["status"] = {"reservedFor": [{"resource": "pods", "uid": each} for each in consumers]}
        stamp = msgspec.structs.replace(
            first.stamp, actor=Actor(user=user), origin=Origin(source="audit")
        )
        body = msgspec.json.encode(tree)
        lines.follow(
            msgspec.structs.replace(first, type=EventType.OBJECT_UPDATED, body=body, stamp=stamp)
        )
    assert lines.lacks_releases is lacks
