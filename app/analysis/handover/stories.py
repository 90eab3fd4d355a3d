"""Stories: the outside inputs of a history as plain data, the format that a test contains."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import msgspec

from app.analysis.minimise.material import Material
from app.analysis.replay.inputs import Input
from app.domain.errors import InputError
from app.domain.log import Actor, Event, EventType, ObjectKey, Revision, Stamp
from app.domain.log.chain import canonical_json
from app.domain.values import api_resources, timestamps
from app.domain.values.fields import dra
from app.domain.values.identifiers import Uid
from app.domain.values.json_tree import JsonObject
from app.domain.values.timestamps import Instant, TimestampError

FORMAT = "redra/story-1"


class Line(
    msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, forbid_unknown_fields=True
):
    """One write from outside. `before` is the object before it, if it changes one."""

    at: str
    type: EventType
    user: str
    verb: str
    group: str = ""
    resource: str
    namespace: str = ""
    name: str
    uid: Uid
    object: JsonObject
    before: JsonObject | None = None


class Story(
    msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, forbid_unknown_fields=True
):
    """The settings of a history, its outside inputs, and its end.

    `made` are writes of controllers that make objects, or shares of devices, of which inputs write.
    A run takes their generated names, uids and ids of shares, because inputs contain these.
    """

    format: str
    settings: JsonObject
    seed: int = 0
    end: str
    lines: list[Line]
    made: list[Line] = []


@dataclass(frozen=True, slots=True, kw_only=True)
class ReadStory:
    """A story, ready to run."""

    material: Material
    settings: JsonObject
    seed: int
    end: Instant


def story_of(
    inputs: Sequence[Input],
    made: Sequence[Event],
    settings: Mapping[str, object],
    seed: int,
    end: Instant,
) -> Story:
    """The story of inputs. `made` are writes of controllers about objects of the inputs, too."""
    uids = {each.event.uid for each in inputs}
    return Story(
        format=FORMAT,
        settings=dict(settings),
        seed=seed,
        end=timestamps.micro_text(end),
        lines=[_line(each) for each in inputs],
        made=[_line_of(each) for each in made if each.uid in uids and _names_something(each)],
    )


def read(tree: object) -> ReadStory:
    """Reads a story to run. Raises InputError."""
    try:
        story = msgspec.convert(tree, Story)
        inputs = [_input(line, number) for number, line in enumerate(story.lines)]
        made = [_event(line, number) for number, line in enumerate(story.made)]
        end = timestamps.parse(story.end)
    except (msgspec.ValidationError, TimestampError) as problem:
        raise InputError(f"it is not a story of a history: {problem}") from problem
    if story.format != FORMAT:
        raise InputError(f"the story has the format {story.format!r}, not {FORMAT!r}")
    return ReadStory(
        material=Material(steps=inputs, made=made),
        settings=story.settings,
        seed=story.seed,
        end=end,
    )


def _names_something(event: Event) -> bool:
    """Whether the write made an object, or shares of devices: these have drawn names."""
    if event.type is EventType.OBJECT_CREATED:
        return True
    is_claim = event.key[:2] == api_resources.RESOURCE_CLAIMS
    is_there = event.type is not EventType.OBJECT_DELETED
    return is_claim and is_there and any(each.share_id for each in dra.results(event.object))


def _line(step: Input) -> Line:
    line = _line_of(step.event)
    return msgspec.structs.replace(
        line,
        at=timestamps.micro_text(step.time),
        user=step.author or line.user,
        before=None if step.before is None else _plain(step.before),
    )


def _line_of(event: Event) -> Line:
    key = event.key
    return Line(
        at=timestamps.micro_text(event.stamp.time),
        type=event.type,
        user=event.stamp.actor.user,
        verb=event.stamp.verb,
        group=key.group,
        resource=key.resource,
        namespace=key.namespace,
        name=key.name,
        uid=event.uid,
        object=_plain(event.object),
    )


def _plain(tree: JsonObject) -> JsonObject:
    """The object without bookkeeping of the API."""
    metadata = {
        name: value
        for name, value in tree.get("metadata", {}).items()
        if name not in ("managedFields", "resourceVersion")
    }
    return {**tree, "metadata": metadata}


def _input(line: Line, number: int) -> Input:
    event = _event(line, number)
    time = event.stamp.time
    return Input(event=event, before=line.before, time=time, author=line.user, number=number)


def _event(line: Line, number: int) -> Event:
    time = timestamps.parse(line.at)
    return Event(
        revision=Revision(number + 1),
        type=line.type,
        key=ObjectKey(line.group, line.resource, line.namespace, line.name),
        uid=line.uid,
        body=canonical_json(line.object),
        stamp=Stamp(time=time, actor=Actor(user=line.user), verb=line.verb),
    )
