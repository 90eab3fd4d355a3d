"""What controllers read of a pod is read once for each event, and never of another tree."""

import msgspec
from hypothesis import given, settings
from hypothesis import strategies as st

from app.adapters.packed_events import PackedEvents
from app.domain.controllers import pods
from app.domain.log import Actor, Event, EventType, ObjectKey, Revision, Stamp
from app.domain.log.chain import canonical_json
from app.domain.values.json_tree import JsonObject
from app.domain.values.timestamps import Instant
from projections.objects import ObjectsProjection

TEXTS = st.sampled_from(("", "a", "b", 1, None))
ENTRIES = st.lists(
    st.dictionaries(
        st.sampled_from(("name", "resourceClaimName", "resourceClaimTemplateName")), TEXTS
    ),
    max_size=2,
)
PODS = st.fixed_dictionaries(
    {},
    optional={
        "metadata": st.dictionaries(
            st.sampled_from(("name", "namespace", "uid", "deletionTimestamp")), TEXTS
        ),
        "spec": st.fixed_dictionaries({}, optional={"nodeName": TEXTS, "resourceClaims": ENTRIES}),
        "status": st.fixed_dictionaries(
            {}, optional={"phase": TEXTS, "resourceClaimStatuses": ENTRIES}
        ),
    },
)


def event_of(pod: JsonObject) -> Event:
    return Event(
        revision=Revision(1),
        type=EventType.OBJECT_CREATED,
        key=ObjectKey("", "pods", "ns", "p"),
        uid="u",
        body=canonical_json(pod),
        stamp=Stamp(time=Instant(1), actor=Actor(user="alice"), verb="create"),
    )


@settings(deadline=None)
@given(pod=PODS, other=PODS)
def test_facts_are_those_of_the_tree_that_the_event_has_now(
    pod: JsonObject, other: JsonObject
) -> None:
    event = event_of(pod)
    assert pods.facts_of(event) == pods.facts(pod)
    assert pods.facts_of(event) is pods.facts_of(event)

    changed = msgspec.structs.replace(event, body=canonical_json(other), tree=None)
    assert pods.facts_of(changed) == pods.facts(other)
    shown = msgspec.structs.replace(event, tree=other)
    assert pods.facts_of(shown) == pods.facts(other)
    event.tree = other
    assert pods.facts_of(event) == pods.facts(other)
    event.forget_tree()
    assert pods.facts_of(event) == pods.facts(pod)


def test_what_was_read_is_neither_stored_nor_sent():
    pod = {"metadata": {"name": "p", "namespace": "ns"}, "spec": {"nodeName": "n"}}
    plain, read = ObjectsProjection(), ObjectsProjection()
    event, twin = event_of(pod), event_of(pod)
    pods.facts_of(event)
    plain.fold(twin)
    read.fold(event)
    assert read.dump() == plain.dump()

    packed, with_readings = PackedEvents(), PackedEvents()
    packed.add([event_of(pod)])
    with_readings.add([event])
    assert with_readings.content() == packed.content()


def test_memory_of_trees_that_are_let_go_goes_with_what_was_read_of_them():
    objects = ObjectsProjection(decoded_max=1)
    first, second = event_of({"metadata": {"name": "p"}}), event_of({"metadata": {"name": "q"}})
    objects.fold(first)
    pods.facts_of(first)
    objects.fold(msgspec.structs.replace(second, key=second.key._replace(name="q")))
    assert (first.tree, first.reading) == (None, None)
