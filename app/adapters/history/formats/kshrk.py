"""The reader of k8shark captures: polled or watched responses of an API server, one record each.

A record has a path, a time and a response; a watched change also has its type. The first list of a
path is baseline; a later list gives the differences, each of which may combine several changes.
Parity: history-formats.md 14.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

import msgspec

from app.adapters.history import documents, json_text, kinds
from app.adapters.history.reading import Notes, ReadOptions, absent_record, object_record
from app.adapters.history.unpacking import ByteSource
from app.domain.errors import InputError
from app.domain.log import ObjectKey
from app.domain.log.records import Loss, Op, Record, comparable_version
from app.domain.values import timestamps
from app.domain.values.identifiers import Uid
from app.domain.values.json_tree import JsonObject
from app.domain.values.timestamps import Instant, TimestampError

_OPS = {"ADDED": Op.ADDED, "MODIFIED": Op.MODIFIED, "DELETED": Op.DELETED}
_INDEXES = ("index", "metadata", "watch-index")
_NOT_OBJECTS = ("/api", "/apis", "/version", "/openapi")


@dataclass(frozen=True, slots=True)
class _CapturedResponse:
    """One record of a capture: its time, its position, and the response."""

    moment: Instant
    path: str
    change: str
    body: JsonObject
    source: str
    position: str
    number: int


@dataclass(slots=True)
class _Seen:
    """The known state: uid and version of each object, and the last list of each path."""

    known: dict[ObjectKey, tuple[Uid, str]] = field(default_factory=dict)
    listed: dict[str, set[ObjectKey]] = field(default_factory=dict)
    newest: str = ""


def is_index(name: str) -> bool:
    """True for the name of an index or metadata file of a capture, which holds no records."""
    folder, _, file = name.rpartition("/")
    return folder.endswith("k8shark-capture") and file.partition(".")[0] in _INDEXES


def read(
    sources: Sequence[tuple[ByteSource, int]], options: ReadOptions, notes: Notes
) -> Iterator[Record]:
    """The records of all capture files, in the order of their times."""
    answers: list[_CapturedResponse] = []
    for source, number in sources:
        try:
            answers.extend(_answers(source, number, notes))
        except InputError as problem:
            notes.lose(problem)
    seen = _Seen()
    index = 0
    for answer in sorted(answers, key=lambda each: (each.moment, each.number)):
        for record in _records(answer, seen, options):
            index += 1
            epoch, version, turn, number, _ = record.order_key
            order_key = (epoch, version or seen.newest, turn, number, index)
            seen.newest = max(seen.newest, version)
            yield msgspec.structs.replace(record, order_key=order_key)


class _Stored(msgspec.Struct, kw_only=True):
    """A record in the stored format."""

    captured_at: str = ""
    api_path: str = ""
    response_code: int = 200
    response_body: Any = None
    event_type: str = ""


def _answers(source: ByteSource, number: int, notes: Notes) -> Iterator[_CapturedResponse]:
    for position, value in documents.read_documents(source, notes):
        place = f"{source.name}:{position}"
        try:
            stored = msgspec.convert(value, _Stored)
            moment = timestamps.parse(stored.captured_at)
        except (msgspec.ValidationError, TimestampError) as problem:
            raise InputError(
                f"it is not a record of a capture: {problem}", place=place
            ) from problem
        path = stored.api_path
        body = _body(stored.response_body, source, place, notes)
        if path.endswith(_NOT_OBJECTS) or "?as=" in path or path.startswith("/openapi/"):
            notes.pass_over(source.name, "answers about the server or for display")
        elif stored.response_code not in (200, 201) or body is None:
            notes.pass_over(source.name, "answers without objects")
        elif kinds.is_answer(body):
            notes.pass_over(source.name, f"answers of kind {body['kind']}, which are not objects")
        else:
            yield _CapturedResponse(
                moment=moment,
                path=path,
                change=stored.event_type,
                body=body,
                source=source.name,
                position=position,
                number=number,
            )


def _body(body: Any, source: ByteSource, place: str, notes: Notes) -> JsonObject | None:
    if isinstance(body, str):
        try:
            content = body.encode("utf-8", "replace")
            body = json_text.decode(content, source.name, source.limits)
        except InputError:
            return None
        notes.lose_repeated(json_text.repeated_keys(content, body), place)
    return body if isinstance(body, dict) else None


def _records(answer: _CapturedResponse, seen: _Seen, options: ReadOptions) -> Iterator[Record]:
    if answer.change:
        op = _OPS.get(answer.change)
        if op is not None:
            yield from _changed(answer, op, seen, options)
        return
    items = kinds.list_items(answer.body)
    before = seen.listed.get(answer.path)
    keys: set[ObjectKey] = set()
    for index, tree in enumerate([answer.body] if items is None else items):
        place = answer.position if items is None else f"{answer.position}[{index}]"
        record = _record(answer, tree, Op.BASELINE, place, options)
        keys.add(record.key)
        identity = (record.uid, record.resource_version)
        known = seen.known.get(record.key)
        if known == identity:
            continue
        seen.known[record.key] = identity
        if before is None and known is None:
            yield record
        else:
            op = Op.MODIFIED if known is not None and known[0] == record.uid else Op.ADDED
            yield msgspec.structs.replace(record, op=op, losses=_with(record, Loss.COLLAPSED))
    if items is not None:
        seen.listed[answer.path] = keys
        for key in sorted((before or set()) - keys):
            yield from _absent(answer, key, seen)


def _changed(
    answer: _CapturedResponse, op: Op, seen: _Seen, options: ReadOptions
) -> Iterator[Record]:
    tree = answer.body.get("object", answer.body) if "type" in answer.body else answer.body
    record = _record(answer, tree, op, answer.position, options)
    identity = (record.uid, record.resource_version)
    if op is Op.DELETED:
        seen.known.pop(record.key, None)
    elif seen.known.get(record.key) == identity:
        return
    else:
        seen.known[record.key] = identity
    yield record


def _absent(answer: _CapturedResponse, key: ObjectKey, seen: _Seen) -> Iterator[Record]:
    """The deletion of an object that a path listed before and no longer lists."""
    known = seen.known.pop(key, None)
    if known is None:
        return
    yield absent_record(
        key,
        known[0],
        source=answer.source,
        order_key=(0, "", 1, answer.number, 0),
        observed_at=answer.moment,
    )


def _record(
    answer: _CapturedResponse, tree: JsonObject, op: Op, position: str, options: ReadOptions
) -> Record:
    record = object_record(
        tree,
        op,
        source=answer.source,
        position=position,
        order=(answer.number, 0),
        observed_at=answer.moment,
    )
    version = comparable_version(record.resource_version)
    return msgspec.structs.replace(record, order_key=(0, version, 0, answer.number, 0))


def _with(record: Record, loss: Loss) -> tuple[Loss, ...]:
    return tuple(sorted({*record.losses, loss}))
