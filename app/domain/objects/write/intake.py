"""Checks of recorded objects and events of bundles, which enter the log without a decision.

A write is decoded, pruned and validated before it is stored. A recorded state is stored unchanged,
so everything that folds rely on is checked here: keys and strings that a database can store, times
that can be written, metadata that agrees with the key, and values of the types that the kind
declares. Validation rules are not checked, because the recorded cluster may have had other rules.
"""

from collections.abc import Iterable, Iterator

from app.domain.errors import InputError
from app.domain.log import Actor, Event, ObjectKey, Origin, Stamp, chain
from app.domain.objects import registry
from app.domain.objects.registry import Kind
from app.domain.objects.schema import corrections, structural
from app.domain.objects.schema.prune import WrongType, clean
from app.domain.objects.schema.structural import Schemas
from app.domain.values import json_tree, timestamps
from app.domain.values.identifiers import Uid
from app.domain.values.json_tree import JsonObject, JsonView
from app.domain.values.timestamps import Instant

TIME_MIN = Instant(0)
TIME_MAX = timestamps.parse("9999-01-01T00:00:00Z")
"""The limits of event times. The end leaves one year for times that are computed from events, and
avoids the instants that database drivers treat as infinity."""

PART_BYTES_MAX = 253
"""The largest size of a group, resource, namespace, name or uid in bytes, as for names in
Kubernetes. The parts share an index entry of the database, whose size is bounded."""

SEED_MAX = 2**128 - 1
"""The largest seed of a history."""

_PARTS = ("group", "resource", "namespace", "name")


def check_time(instant: int, field: str, place: str) -> None:
    """Raises InputError for an instant outside the limits of event times."""
    if not TIME_MIN <= instant < TIME_MAX:
        raise InputError(
            f"{field} is {timestamps.micro_text(Instant(instant))}, which is not between 1970 "
            "and 9998",
            place=place,
            cure="repair the clock's error in the recording, or leave the line out",
        )


def check_key(key: ObjectKey, uid: Uid, place: str) -> None:
    """Raises InputError for a key or uid that a database cannot store."""
    for field, text in (*zip(_PARTS, key, strict=True), ("uid", uid)):
        _check_text(text, field, place)
        if len(text.encode()) > PART_BYTES_MAX:
            raise InputError(f"{field} has more than {PART_BYTES_MAX} bytes", place=place)


def identified(tree: JsonObject, key: ObjectKey, uid: Uid) -> JsonObject:
    """Returns the object with missing name, namespace and uid set; its metadata is a copy.

    A namespace is removed if the key has none, as for a cluster-scoped object.
    """
    metadata = tree.get("metadata")
    if metadata is not None and not isinstance(metadata, dict):
        return tree
    own = dict(metadata or {})
    own.setdefault("name", key.name)
    if key.namespace:
        own.setdefault("namespace", key.namespace)
    elif isinstance(own.get("namespace"), str):
        del own["namespace"]
    if uid:
        own.setdefault("uid", uid)
    return {**tree, "metadata": own}


def check_named(key: ObjectKey, place: str) -> None:
    """Raises InputError for an object without a resource or a name."""
    for field in ("resource", "name"):
        if not getattr(key, field):
            raise InputError(f"the object has no {field}", place=place)


def check_object(tree: JsonView, key: ObjectKey, uid: Uid, schemas: Schemas, place: str) -> None:
    """Raises InputError, naming the field, for an object that some view could not fold.

    Its name, namespace and uid must agree with its key and `uid`, and its fields must have the
    types that the kind declares; for an unknown kind, this holds for the metadata only.
    """
    for field in ("apiVersion", "kind"):
        if not isinstance(tree.get(field), str):
            raise _wrong_type(field, tree.get(field), "a text", place)
    metadata = tree.get("metadata")
    if not isinstance(metadata, dict):
        raise _wrong_type("metadata", metadata, "an object", place)
    named = (("name", key.name), ("namespace", key.namespace), ("uid", uid))
    for field, expected in named:
        value = metadata.get(field, "" if field != "name" else None)
        if value is None and field != "name":
            value = ""
        if not isinstance(value, str):
            raise _wrong_type(f"metadata.{field}", value, "a text", place)
        if value != expected:
            raise InputError(
                f"metadata.{field} is {value!r}, but the object is recorded as {expected!r}",
                place=place,
            )
    try:
        clean(_node(schemas, registry.find(key.group, key.resource)), dict(tree))
    except WrongType as wrong:
        field = ".".join(wrong.fields)
        expected = f"{wrong.value}, where {wrong.expected} is expected"
        problem = expected if wrong.expected else wrong.value
        raise InputError(f"{field}: {problem}", place=place) from wrong
    except RecursionError as problem:
        raise InputError("the object is nested too deep", place=place) from problem


def check_event(event: Event, schemas: Schemas, place: str) -> None:
    """Raises InputError, naming the field, for an event of a bundle that cannot be folded."""
    check_key(event.key, event.uid, place)
    _check_stamp(event.stamp, event.revision, place)
    try:
        tree: object = event.object
        is_canonical = chain.canonical_json(tree) == event.body
    except (ValueError, OverflowError, RecursionError) as problem:
        raise InputError(f"its object cannot be read: {problem}", place=place) from problem
    if not is_canonical:
        # The body has repeated keys, or a number in another notation.
        raise InputError("its object is not written as canonical JSON", place=place)
    if not isinstance(tree, dict):
        raise _wrong_type("object", tree, "an object", place)
    if not event.is_about_object:
        return
    check_named(event.key, place)
    check_object(tree, event.key, event.uid, schemas, place)
    written = json_tree.get(tree, "metadata", "resourceVersion")
    if written != str(event.revision):
        raise InputError(
            f"metadata.resourceVersion is {written!r}, the event has revision {event.revision}",
            place=place,
        )


def check_texts(named: Iterable[tuple[str, str]], place: str) -> None:
    """Raises InputError, naming the field, for a string that a database cannot store."""
    for field, text in named:
        _check_text(text, field, place)


def check_actor(actor: Actor, place: str) -> None:
    """Raises InputError for an actor whose names a database cannot store."""
    check_texts(((f"user.{field}", text) for field, text in _texts_of(actor)), place)


def check_seed(seed: object, place: str) -> int:
    """Returns the seed of a history. Raises InputError for an invalid seed."""
    if not isinstance(seed, int) or isinstance(seed, bool) or not 0 <= seed <= SEED_MAX:
        raise InputError(f"seed: {seed!r} is not a number from 0 to {SEED_MAX}", place=place)
    return seed


def _node(schemas: Schemas, kind: Kind | None) -> structural.SchemaNode:
    if kind is None:
        return schemas.root(corrections.LOOSE)
    return structural.storage_node(schemas, kind)


def _check_stamp(stamp: Stamp, revision: int, place: str) -> None:
    check_time(stamp.time, "stamp.time", place)
    for field, number in (("cause", stamp.cause), ("observed", stamp.observed)):
        if not 0 <= number < revision:
            raise InputError(
                f"stamp.{field} is {number}, which is no revision before {revision}", place=place
            )
    check_texts(((f"stamp.{field}", text) for field, text in _texts(stamp)), place)
    if stamp.origin is not None:
        for field, instant in (("asked", stamp.origin.asked), ("answered", stamp.origin.answered)):
            check_time(instant, f"stamp.origin.{field}", place)


def _texts(stamp: Stamp) -> Iterator[tuple[str, str]]:
    yield from (("verb", stamp.verb), ("request_id", stamp.request_id), ("uid", stamp.uid))
    yield from ((f"actor.{field}", text) for field, text in _texts_of(stamp.actor))
    if stamp.origin is not None:
        yield from ((f"origin.{field}", text) for field, text in _texts_of(stamp.origin))


def _texts_of(part: Actor | Origin) -> Iterator[tuple[str, str]]:
    for field in part.__struct_fields__:
        value = getattr(part, field)
        if isinstance(value, str):
            yield field, value
        elif isinstance(value, tuple):
            yield from ((field, text) for text in value)


def _check_text(text: str, field: str, place: str) -> None:
    if "\0" in text:
        raise InputError(f"{field} holds the character 0: {text[:80]!r}", place=place)


def _wrong_type(field: str, value: object, expected: str, place: str) -> InputError:
    if value is None:
        return InputError(f"the object has no {field}", place=place)
    return InputError(f"{field} is {_shown(value)}, not {expected}", place=place)


def _shown(value: object) -> str:
    text = repr(value)
    return text if len(text) <= 80 else text[:79] + "…"
