"""Questions about one object, and the structure of their answers."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field

import msgspec

from app.analysis import scope
from app.analysis.explain.reasons import Reason
from app.domain.errors import InputError
from app.domain.log import Event, ObjectKey, Revision, doubts
from app.domain.log.doubts import Doubt
from app.domain.objects import registry as kinds
from app.domain.objects.custom import definitions
from app.domain.objects.reader import ObjectsReader
from app.domain.values import identifiers, timestamps
from app.domain.values.fields import meta
from app.domain.values.identifiers import DeviceId
from app.domain.values.json_tree import JsonObject
from projections.objects import ObjectsProjection

DEVICES = ("redra", "devices")
POOLS = ("redra", "pools")
"""The group and resource of devices and pools, which are not API objects."""

_OWN_NAMES = {
    "device": DEVICES, "devices": DEVICES, "dev": DEVICES,
    "pool": POOLS, "pools": POOLS,
}  # fmt: skip

ANYWHERE = "*"
"""The namespace of a question about an object that is in no known one."""

KeptKind = tuple[ObjectKey, str]
"""A kind of a recording: the key of one of its objects, and the kind that the object names."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Question:
    """A question: the kind and name of an object, and optionally one node of interest.

    With `help`, the smallest changes that would let a waiting pod run are searched for, too.
    """

    kind: str
    namespace: str
    name: str
    node: str = ""
    help: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class ObjectExplanation:
    """The subject, the last decision about it with its revision, and the reasons.

    `decision` is the recorded body, None when no controller has decided about the subject. `doubts`
    state what the recording lacks, so that the answer may be different.
    """

    subject: str
    outcome: str
    revision: Revision
    text: str
    reason: Reason
    decision: JsonObject | None = None
    details: JsonObject = field(default_factory=dict)
    doubts: tuple[Doubt, ...] = ()

    def to_json(self) -> JsonObject:
        """The complete answer as JSON."""
        return {
            "subject": self.subject,
            "outcome": self.outcome,
            "revision": self.revision,
            "text": self.text,
            "reasons": self.reason.to_json(),
            "decision": self.decision,
            "certainty": doubts.certainty(self.doubts),
            "doubts": msgspec.to_builtins(self.doubts),
            **self.details,
        }


def placed(kind: str, name: str, namespace: str) -> tuple[str, str]:
    """Splits a name into namespace and name: `NAMESPACE/NAME`, as answers write it, includes both.

    Names of devices and pools contain slashes of their own and are not split.
    """
    front, slash, rest = name.partition("/")
    if not slash or kind.lower() in _OWN_NAMES or "/" in rest or not front or not rest:
        return namespace, name
    return front, rest


def key_of(
    question: Question, objects: ObjectsProjection, recorded: Iterable[KeptKind] = ()
) -> ObjectKey:
    """The object key of a question. Raises InputError for an unknown kind.

    Kinds that the history defines, or only keeps, are those of `objects`, and the `recorded` ones.

    A device is named `DRIVER/POOL/NAME`, a pool `DRIVER/POOL`.
    """
    own = _OWN_NAMES.get(question.kind.lower())
    if own == DEVICES:
        return ObjectKey(*DEVICES, "", "/".join(device_of(question.name)))
    if own == POOLS:
        if "/" not in question.name.strip("/"):
            raise InputError(
                f"{question.name!r} names no pool", cure="write it as pool/DRIVER/POOL"
            )
        return ObjectKey(*POOLS, "", question.name)
    kind = _find_kind(question.kind, objects)
    if kind is None:
        return _kept_key(question, (*_kept_kinds(objects), *recorded))
    is_placed = kind.namespaced and question.namespace != ANYWHERE
    namespace = question.namespace if is_placed else ""
    return ObjectKey(kind.group, kind.plural, namespace, question.name)


def device_of(name: str) -> DeviceId:
    """The device named `DRIVER/POOL/NAME`; names of pools may contain slashes."""
    device = identifiers.parse_device(name)
    if not all(device):
        raise InputError(f"{name!r} names no device", cure="write it as device/DRIVER/POOL/NAME")
    return device


def named(key: ObjectKey) -> str:
    """The object as people name it: `pod default/web`, `ResourceSlice n0-gpus`."""
    return kinds.titled(subject_of(key))


def subject_of(key: ObjectKey) -> str:
    """The object as answers name it to programs: `resourceslice n0-gpus`."""
    kind = kinds.find(key.group, key.resource)
    noun = kind.singular if kind is not None and kind.singular else key.resource
    return f"{noun} {key.namespace}/{key.name}" if key.namespace else f"{noun} {key.name}"


def created_later(events: Iterable[Event]) -> str:
    """The hint to an object that comes after the moment; empty if none of the events is about it.

    The events are those of its key, newest first.
    """
    for event in events:
        if event.is_about_object:
            created = meta.creation_timestamp(event.object)
            return f"; one was created later, at {created}" if created else "; one came later"
    return ""


def elsewhen(events: Sequence[Event], moment: Revision) -> str:
    """The hint when an object that is not there comes or was; empty without events about it.

    The events are those of its key up to the end of the history, newest first.
    """
    before = [event for event in events if event.revision <= moment and event.is_about_object]
    later = created_later([event for event in events if event.revision > moment])
    if later or not before:
        return later
    time = timestamps.seconds_text(before[0].stamp.time)
    return f"; it was deleted at revision {before[0].revision}, at {time}"


def _find_kind(text: str, objects: ObjectsReader) -> kinds.Kind | None:
    for kind in kinds.named(text) or kinds.named(text, definitions.all_kinds(objects)):
        return kind
    return None


def _kept_kinds(objects: ObjectsProjection) -> Iterator[KeptKind]:
    for place in objects.resources():
        key = next(iter(objects.keys(*place)))
        yield key, meta.kind(objects.get(key) or {})


def _kept_key(question: Question, kept: Iterable[KeptKind]) -> ObjectKey:
    """The key of an object that a recording shows of a kind that nothing defines.

    The kind is named by its resource, with the group or without, or as the objects name it.
    """
    word, _, group = question.kind.lower().partition(".")
    for key, kind in kept:
        if group in ("", key.group) and word in (key.resource, kind.lower()):
            is_placed = key.namespace and question.namespace != ANYWHERE
            namespace = question.namespace if is_placed else ""
            return ObjectKey(key.group, key.resource, namespace, question.name)
    raise scope.no_kind(question.kind)
