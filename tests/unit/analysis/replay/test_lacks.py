"""What a recording lacks, and for which differences it speaks."""

import json

import pytest

from app.analysis.replay.unsure.dependence import Read
from app.analysis.replay.unsure.lacks import Lacks
from app.domain.log import CLOCKS, Actor, Event, EventType, ObjectKey, Revision, Stamp
from app.domain.log.doubts import NEVER_SEEN, Affects, Doubt
from app.domain.log.event import Origin
from app.domain.log.records import BASELINE_VERB, IMPORTER_USER, Loss
from app.domain.values import timestamps
from app.domain.values.timestamps import SECOND, Instant

SLICE = ObjectKey("resource.k8s.io", "resourceslices", "", "s")
CLAIM = ObjectKey("resource.k8s.io", "resourceclaims", "default", "c")
POD = ObjectKey("", "pods", "default", "p")
REPORT = ObjectKey("", "events", "default", "e")


def event(key, type_=EventType.OBJECT_UPDATED, *, losses=(), verb="update", made=None, **origin):
    """An event at time 0, of an object that is as many seconds old as `made` is negative."""
    origin = Origin(source="audit", losses=tuple(each.value for each in losses), **origin)
    user = IMPORTER_USER if verb == "observe" else "alice"
    stamp = Stamp(time=Instant(0), actor=Actor(user=user), verb=verb, origin=origin)
    uid = f"uid of {key.name}"
    metadata = {} if made is None else {"creationTimestamp": timestamps.seconds_text(at(made))}
    body = json.dumps({"metadata": metadata}).encode()
    return Event(revision=Revision(1), type=type_, key=key, uid=uid, body=body, stamp=stamp)


def at(seconds):
    return Instant(seconds * SECOND)


def between(lacks, first, last, *, uids=("other",), keys=()):
    return lacks.about(uids, keys, at(first), at(last))


def lacks_after(*events):
    lacks = Lacks(())
    for seconds, each in events:
        lacks.note(each, at(seconds))
    return lacks


def test_kind_that_decisions_need_is_lacking_for_every_difference():
    doubt = Doubt(code=NEVER_SEEN, affects=Affects.CONTENT, kind="deviceclasses", count=0, text="")
    assert between(Lacks((doubt,)), 1, 2) == "the recording has no deviceclasses"
    other = Doubt(code=NEVER_SEEN, affects=Affects.CONTENT, kind="nodes", count=0, text="")
    assert between(Lacks((doubt, other)), 1, 2) == "the recording has no deviceclasses, nodes"
    assert between(Lacks(()), 1, 2) == ""


def look(key, type_=EventType.OBJECT_UPDATED, losses=(Loss.COLLAPSED,)):
    return event(key, type_, losses=losses, verb="observe", time_quality="derived")


def test_recording_of_snapshots_alone_speaks_for_no_time_between_them():
    existing = event(SLICE, EventType.OBJECT_CREATED, verb=BASELINE_VERB)
    gone = look(CLAIM, EventType.OBJECT_DELETED, (Loss.COLLAPSED, Loss.SYNTHETIC_DELETE))
    lacks = lacks_after((0, existing), (10, look(POD)), (20, gone))
    lacks.conclude()
    assert between(lacks, 1, 2)
    assert between(lacks, 12, 14, keys=[CLAIM])


@pytest.mark.parametrize(
    "beside",
    [
        pytest.param(look(CLAIM, losses=()), id="a watched change"),
        pytest.param(event(CLAIM, EventType.OBJECT_CREATED, verb="create"), id="a request"),
        pytest.param(event(CLAIM, losses=[Loss.COLLAPSED]), id="a removal with its mark"),
        pytest.param(
            event(CLAIM, losses=[Loss.COLLAPSED], time_quality="derived"),
            id="a removal with its mark, in whole seconds",
        ),
    ],
)
def test_one_snapshot_beside_other_sources_is_no_lack_of_all(beside):
    lacks = lacks_after((5, beside), (10, look(POD)))
    lacks.conclude()
    assert between(lacks, 1, 2) == ""


def test_object_is_unknown_from_a_write_without_its_body_to_the_next_with_it():
    lacks = lacks_after(
        (10, event(SLICE, EventType.GAP_OBSERVED, losses=[Loss.METADATA_ONLY])),
        (20, event(SLICE)),
    )
    assert [bool(between(lacks, *span)) for span in ((1, 9), (9, 11), (19, 30), (21, 30))] == [
        False,
        True,
        True,
        False,
    ]
    told = [between(lacks, *span, keys=(SLICE,)) for span in ((1, 9), (9, 11), (19, 30), (21, 30))]
    assert ["without their body" in text for text in told] == [False, True, True, False]


@pytest.mark.parametrize(
    "line",
    [
        event(POD, EventType.GAP_OBSERVED, losses=[Loss.METADATA_ONLY], asked=at(8)),
        event(POD, EventType.OBJECT_CREATED, losses=[Loss.TRUNCATED_BODY], asked=at(8)),
    ],
    ids=["without its body", "cut"],
)
def test_object_is_unknown_from_the_request_on_not_from_its_answer(line):
    """The claim of a pod was made, and answered, before the answer to the pod's creation."""
    lacks = lacks_after((10, line))
    assert [bool(between(lacks, *span)) for span in ((1, 7), (1, 9))] == [False, True]


def test_object_that_is_never_seen_whole_again_stays_unknown():
    lacks = lacks_after((10, event(SLICE, losses=[Loss.TRUNCATED_BODY])))
    assert between(lacks, 1000, 1001)
    spans = ((1, 2), (1, 10), (1000, 1001))
    told = [between(lacks, *span, uids=("uid of s",)) for span in spans]
    assert ["cut" in text for text in told] == [False, True, True]


def test_object_that_was_first_seen_late_was_unknown_until_then():
    first = event(POD, EventType.OBJECT_CREATED, losses=[Loss.SYNTHETIC_CREATE], verb="baseline")
    lacks = lacks_after((10, first), (11, event(POD)))
    assert [bool(between(lacks, *span)) for span in ((1, 2), (11, 12))] == [True, False]
    told = [between(lacks, *span, uids=("uid of p",)) for span in ((1, 10), (11, 12))]
    assert ["first seen" in text for text in told] == [True, False]


def test_what_no_decision_rests_on_lacks_nobody():
    lacks = lacks_after((10, event(REPORT, EventType.GAP_OBSERVED)), (11, event(POD)))
    assert between(lacks, 1, 20) == ""


def test_kind_that_a_recorder_lists_again_is_known_from_its_report_on():
    gap = event(SLICE._replace(name=""), EventType.GAP_OBSERVED, losses=[Loss.GAP])
    report = event(ObjectKey("redra", "imports", "", "prod"), EventType.HISTORY_IMPORTED)
    report.body = b'{"positions":{"resourceslices.resource.k8s.io":"7"}}'
    lacks = lacks_after((10, gap), (20, report))
    spans = ((1, 9), (11, 12), (19, 30), (21, 30))
    assert [bool(between(lacks, *span)) for span in spans] == [False, True, True, False]


def test_change_of_which_only_a_later_write_tells_came_any_time_since_the_last_one():
    gap = event(SLICE, EventType.GAP_OBSERVED, losses=[Loss.GAP])
    lacks = lacks_after((10, event(SLICE)), (20, event(POD)), (30, gap), (31, event(SLICE)))
    spans = ((1, 9), (11, 12), (29, 30), (32, 40))
    assert [bool(between(lacks, *span)) for span in spans] == [False, True, True, False]


def test_times_that_contradict_the_order_are_a_doubt_about_every_instant():
    doubt = Doubt(code=Loss.TIMES_CONTRADICT, affects=Affects.TIME, kind="pods", count=2, text="")
    assert "times contradict" in Lacks((doubt,)).times
    assert Lacks((doubt,)).is_any
    assert (Lacks(()).times, Lacks(()).is_any) == ("", False)


def test_clock_that_was_off_hides_no_change():
    lacks = lacks_after((10, event(CLOCKS, EventType.GAP_OBSERVED, losses=[Loss.GAP])))
    assert not between(lacks, 1, 30)


def reported(*kinds):
    report = event(ObjectKey("redra", "imports", "", "prod"), EventType.HISTORY_IMPORTED)
    positions = ",".join(f'"{kind}":"7"' for kind in kinds)
    report.body = f'{{"positions":{{{positions}}}}}'.encode()
    return report


NEEDED = ("pods", "nodes", *(f"{name}.resource.k8s.io" for name in (
    "deviceclasses", "devicetaintrules", "resourceclaims", "resourceclaimtemplates",
    "resourceslices",
)))  # fmt: skip


def test_gap_of_everything_lasts_until_each_kind_is_known_again():
    gap = event(ObjectKey("", "", "", ""), EventType.GAP_OBSERVED, losses=[Loss.GAP])
    lacks = lacks_after((10, gap), (20, reported(*NEEDED[:-1])))
    assert [bool(between(lacks, *span)) for span in ((1, 9), (11, 12), (30, 31))] == [
        False, True, True,
    ]  # fmt: skip
    lacks.note(reported(NEEDED[-1]), at(40))
    assert [bool(between(lacks, *span)) for span in ((30, 31), (41, 42))] == [True, False]


def test_gap_of_a_kind_in_one_namespace_ends_with_the_report_of_the_kind():
    claims = ObjectKey("resource.k8s.io", "resourceclaims", "default", "")
    lacks = lacks_after((10, event(claims, EventType.GAP_OBSERVED, losses=[Loss.GAP])))
    lacks.note(reported("resourceclaims.resource.k8s.io"), at(20))
    assert [bool(between(lacks, *span)) for span in ((11, 12), (21, 22))] == [True, False]


def unseen_at(lacks, *seconds, key=SLICE):
    return [lacks.was_unseen(key, at(each)) for each in seconds]


def test_object_may_have_been_otherwise_while_it_was_not_recorded():
    gap = event(SLICE, EventType.GAP_OBSERVED, losses=[Loss.GAP])
    lacks = lacks_after((10, event(SLICE)), (30, gap), (31, event(SLICE)))
    assert unseen_at(lacks, 9, 11, 30, 32) == [False, True, True, False]
    assert unseen_at(lacks, 11, key=POD) == [False]


def test_object_may_be_otherwise_after_a_gap_of_everything_until_it_is_written():
    everything = event(ObjectKey("", "", "", ""), EventType.GAP_OBSERVED, losses=[Loss.GAP])
    lacks = lacks_after((5, event(SLICE)), (10, everything))
    assert unseen_at(lacks, 9, 11) == [False, True]
    lacks.note(event(SLICE), at(20))
    assert unseen_at(lacks, 21) == [False]
    assert unseen_at(lacks, 21, key=POD) == [True]


def test_object_may_have_ended_after_its_last_write_where_deletions_are_left_out():
    gap = event(
        ObjectKey("", "", "", ""), EventType.GAP_OBSERVED, losses=[Loss.GAP, Loss.NO_DELETES]
    )
    lacks = lacks_after((10, event(SLICE)), (20, event(SLICE)), (30, event(POD)), (40, gap))
    assert [between(lacks, second, second) != "" for second in (19, 20, 50)] == [False, True, True]
    told = [between(lacks, second, second, keys=(POD,)) for second in (29, 30)]
    assert ["deletions are left out" in text for text in told] == [False, True]


def test_claim_may_have_changed_in_a_lost_line_until_a_write_shows_it():
    holder, others = CLAIM, [CLAIM._replace(name=name) for name in ("a", "b")]
    gaps = [(15, event(each, EventType.GAP_OBSERVED, losses=[Loss.GAP])) for each in others]
    before, later = (10, event(holder)), (30, event(holder))
    for events, expected in (
        ((before, *gaps), [False, True, True]),
        ((before, *gaps, later), [False, False, True]),
        ((before, gaps[0]), [False, False, False]),
        ((before, later), [False, False, False]),
    ):
        lacks = lacks_after(*events)
        told = [lacks.may_have_changed_unseen(holder, at(seconds)) for seconds in (9, 20, 31)]
        assert told == expected


TEMPLATE = ObjectKey("resource.k8s.io", "resourceclaimtemplates", "default", "t")
EVERYTHING = ObjectKey("", "", "", "")
BY_CLAIM_CONTROLLER = Read(frozenset({TEMPLATE[:2]}))
OF_CONTENT = Read(frozenset({TEMPLATE[:2]}), has_states=False)


def read_between(lacks, first, last, read, *, keys=(CLAIM,)):
    return bool(lacks.about((), keys, at(first), at(last), read))


def test_unseen_object_speaks_only_for_what_depends_on_it():
    gap = (10, event(SLICE, EventType.GAP_OBSERVED))
    lacks = lacks_after((1, event(POD)), gap)
    assert between(lacks, 11, 12)
    assert not read_between(lacks, 11, 12, BY_CLAIM_CONTROLLER)
    assert read_between(lacks, 11, 12, Read(frozenset({SLICE[:2]})))


def test_stretch_without_any_line_speaks_until_its_own_objects_are_written_again():
    gap = (10, event(EVERYTHING, EventType.GAP_OBSERVED))
    lacks = lacks_after((1, event(CLAIM)), (1, event(POD)), gap, (20, event(CLAIM)))
    only_claim, both = Read(frozenset()), (CLAIM, POD)
    assert read_between(lacks, 15, 16, only_claim, keys=both)
    assert read_between(lacks, 21, 22, only_claim, keys=both)
    lacks.note(event(POD), at(23))
    assert not read_between(lacks, 24, 25, only_claim, keys=both)
    assert read_between(lacks, 24, 25, only_claim), "of the claim's pods nothing is known"


@pytest.mark.parametrize(
    ("later", "is_unsure"), [((), True), ((event(TEMPLATE),), False), ((event(POD),), True)]
)
def test_template_is_known_where_it_is_the_same_one_later(later, is_unsure):
    gap = (10, event(EVERYTHING, EventType.GAP_OBSERVED))
    lacks = lacks_after((1, event(TEMPLATE)), gap, *((30, each) for each in later))
    assert read_between(lacks, 12, 13, OF_CONTENT) is is_unsure


def test_what_a_lost_line_led_to_may_come_after_the_line_that_shows_it():
    gap = event(POD, EventType.GAP_OBSERVED, losses=[Loss.GAP])
    lost = lacks_after((10, event(POD)), (30, gap), (31, event(POD)))
    cut = lacks_after(
        (10, event(POD, EventType.GAP_OBSERVED, losses=[Loss.METADATA_ONLY])), (31, event(POD))
    )
    spans = ((1, 9), (32, 33), (45, 50), (47, 50))
    assert [bool(between(lost, *span, keys=(POD,))) for span in spans] == [False, True, True, False]
    assert [bool(between(cut, *span, keys=(POD,))) for span in spans] == [False] * 4
    assert [key for key, _, _ in lost.lines()] == [POD]
    assert list(cut.lines()) == []


def test_others_depend_on_a_lost_line_as_long_as_its_object_differs():
    gap = event(POD, EventType.GAP_OBSERVED, losses=[Loss.GAP])
    lacks = lacks_after((10, event(POD)), (30, gap), (31, event(POD)))
    told = [
        bool(lacks.about((), (), at(33), at(34), None, unlike))
        for unlike in ({}, {POD: at(32)}, {POD: at(33)}, {CLAIM: at(40)})
    ]
    assert told == [False, False, True, False]


def test_lost_line_explains_nothing_that_was_done_with_the_last_recorded_one():
    gap = event(POD, EventType.GAP_OBSERVED, losses=[Loss.GAP])
    lost = lacks_after((10, event(POD)), (30, gap), (31, event(POD)))
    spans = ((5, 10), (10, 10), (10, 11))
    for keys in ((POD,), (CLAIM,)):
        assert [bool(between(lost, *span, keys=keys)) for span in spans] == [False, False, True]
    never = lacks_after((10, gap))
    assert between(never, 10, 10, keys=(POD,))


def test_lost_line_changes_no_field_that_never_changes():
    gap = event(POD, EventType.GAP_OBSERVED, losses=[Loss.GAP])
    lost = lacks_after((10, event(POD)), (30, gap), (31, event(POD)))
    read = [Read(frozenset(), has_states=False), Read(frozenset()), None]
    told = [bool(read_between(lost, 20, 21, each, keys=(POD,))) for each in read]
    assert told == [False, True, True]
    cut = event(POD, EventType.GAP_OBSERVED, losses=[Loss.METADATA_ONLY])
    assert read_between(lacks_after((10, cut)), 20, 21, read[0], keys=(POD,))


def test_what_a_lost_creation_led_to_may_come_after_the_line_that_shows_the_object():
    """An object that is older than the log was there for all who acted."""
    told = []
    for made in (5, -100):
        first = event(
            CLAIM,
            EventType.OBJECT_CREATED,
            losses=[Loss.SYNTHETIC_CREATE],
            verb="baseline",
            made=made,
        )
        lacks = lacks_after((0, event(POD)), (30, first), (31, event(CLAIM)))
        spans = ((1, 9), (32, 33), (44, 50), (46, 50))
        told.append([bool(between(lacks, *span, keys=(CLAIM,))) for span in spans])
        told.append([key for key, _, _ in lacks.lines()])
    assert told == [[True, True, True, False], [CLAIM], [True, False, False, False], []]


OTHER = ObjectKey("resource.k8s.io", "resourceclaims", "other", "c")
IN_NAMESPACE = "an object in its namespace is not recorded whole"
NO_NAMESPACE = "its namespace is not recorded"
NO_END = "when its namespace was to end is not recorded"


@pytest.mark.parametrize(
    ("key", "last", "said"),
    [(CLAIM, 9, ""), (CLAIM, 10, IN_NAMESPACE), (CLAIM, 40, IN_NAMESPACE), (OTHER, 40, "")],
)
def test_end_of_a_namespace_depends_on_all_objects_in_it(key, last, said):
    lacks = lacks_after(
        (10, event(key, losses=[Loss.TRUNCATED_BODY])), (20, event(key)), (30, event(SLICE))
    )
    assert lacks.within("default", at(last)) == said


@pytest.mark.parametrize(
    ("end", "first", "said"), [(20, 19, ""), (20, 20, NO_END), (20, 30, NO_END), (None, 10**9, "")]
)
def test_namespace_that_no_line_shows_is_lacking_and_its_end_is_not_known(end, first, said):
    lacks = Lacks(())
    namespace = ObjectKey("", "namespaces", "", "default")
    assert not lacks.is_any
    lacks.note_implied(TEMPLATE)
    assert not lacks.is_any, "a template says what its claims have"
    lacks.note_implied(namespace)
    if end is not None:
        lacks.note_implied(namespace, at(end))
    assert lacks.is_any
    assert lacks.within("default", at(1)) == NO_NAMESPACE
    assert lacks.in_ending("default", at(first)) == said
    assert lacks.within("other", at(1)) == lacks.in_ending("other", at(first)) == ""


@pytest.mark.parametrize(
    ("gap", "key", "instant", "is_there"),
    [
        (CLAIM, CLAIM, 10, True),
        (CLAIM, CLAIM, 11, False),
        (CLAIM, CLAIM._replace(name="d"), 5, False),
        (CLAIM._replace(name=""), CLAIM, 5, True),
        (CLAIM._replace(name=""), OTHER, 5, False),
        (CLAIM._replace(namespace="", name=""), OTHER, 5, True),
        (CLAIM._replace(namespace="", name=""), POD, 5, False),
        (ObjectKey("", "", "", ""), POD, 10, True),
    ],
)
def test_act_may_be_done_later_where_its_object_is_not_recorded(gap, key, instant, is_there):
    lacks = lacks_after((1, event(POD)), (10, event(gap, EventType.GAP_OBSERVED)))
    said = "it may have been done later, where nothing was recorded"
    assert lacks.after(key, at(instant)) == (said if is_there else "")


def test_last_write_of_an_object_is_its_last_line_but_no_gap():
    lacks = lacks_after(
        (10, event(POD)), (20, event(POD)), (30, event(POD, EventType.GAP_OBSERVED))
    )
    assert lacks.last_written(POD) == at(20)
    assert lacks.last_written(CLAIM) < at(0)
