"""Kubernetes Events on the timeline: what one that warns says, and the object it is about.

This module is not a view; `timeline` uses it.
"""

from app.domain.log import Event, EventType, ObjectKey
from app.domain.log.records import BASELINE_VERB
from app.domain.objects import registry
from app.domain.values import timestamps
from app.domain.values.fields import core
from app.domain.values.timestamps import SECOND, Instant, TimestampError
from projections import outlines
from projections.timeline_kinds import WARNING, Description, cut


def describe_event_object(event: Event) -> Description | None:
    """The text of a Kubernetes Event that warns, when it is created; repetitions are not shown.

    An Event that a recorder listed has the time of the list; the text says when it was last seen.
    """
    if event.type is not EventType.OBJECT_CREATED or b'"Warning"' not in event.body:
        return None
    event_object = outlines.event_object(event.body)
    if event_object.type != "Warning":
        return None
    text, end = f"{event_object.reason}: {event_object.message or event_object.note}", ""
    last = _last_seen(event_object) if event.stamp.verb == BASELINE_VERB else None
    if last is not None and last // SECOND < event.stamp.time // SECOND:
        end = f" (last seen at {timestamps.seconds_text(last)})"
    return WARNING, cut(text, end)


def _last_seen(event_object: core.EventObject) -> Instant | None:
    series = "" if event_object.series is None else event_object.series.last_observed_time
    for text in (series, event_object.last_timestamp, event_object.event_time):
        try:
            if text:
                return timestamps.parse(text)
        except TimestampError:
            continue
    return None


def subject_of_event_object(event: Event) -> ObjectKey:
    """The object that a Kubernetes Event is about.

    The Events of cluster-scoped objects are in a namespace, which some components write into the
    reference, too.
    """
    event_object = outlines.event_object(event.body)
    about = (
        event_object.involved_object
        if event_object.involved_object.name
        else event_object.regarding
    )
    group, _, _ = about.api_version.rpartition("/")
    for kind in registry.find_name(about.kind):
        if kind.group == group:
            namespace = about.namespace if kind.namespaced else ""
            return ObjectKey(group, kind.plural, namespace, about.name)
    noun = about.kind.lower()
    plural = noun + ("es" if noun.endswith("s") else "s")
    return ObjectKey(group, plural, about.namespace, about.name)
