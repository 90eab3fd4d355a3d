"""The audit event as an API server logs it. Parity: history-formats.md 4.2."""

import re
from collections.abc import Iterator
from typing import Any

import msgspec

from app.adapters.history import documents, json_text
from app.adapters.history.audit import envelopes, tables
from app.adapters.history.formats import component_logs
from app.adapters.history.reading import Notes
from app.adapters.history.unpacking import ByteSource
from app.domain.errors import InputError
from app.domain.log import Actor
from app.domain.values import json_tree
from app.domain.values.identifiers import NO_UID, Uid
from app.domain.values.json_tree import JsonObject


class User(msgspec.Struct, kw_only=True):
    """The user of a request."""

    username: str = ""
    uid: str = ""
    groups: tuple[str, ...] | None = None


class ObjectRef(msgspec.Struct, kw_only=True, rename="camel"):
    """The object of a request, from its URL and partly from its body.

    `resource_version` is the version that the request names, or that it would replace.
    """

    resource: str = ""
    namespace: str = ""
    name: str = ""
    uid: Uid = NO_UID
    api_group: str = ""
    api_version: str = ""
    subresource: str = ""
    resource_version: str = ""


class ResponseStatus(msgspec.Struct, kw_only=True):
    """The status of the response."""

    code: int = 0
    reason: str = ""
    message: str = ""


class AuditEvent(msgspec.Struct, kw_only=True, rename="camel"):
    """One audit event; bodies stay undecoded until they are needed.

    `items` is set for an EventList.
    """

    kind: str = ""
    items: list[msgspec.Raw] | None = None
    level: str = ""
    audit_id: str = msgspec.field(default="", name="auditID")
    stage: str = ""
    request_uri: str = msgspec.field(default="", name="requestURI")
    verb: str = ""
    user: User | None = None
    impersonated_user: User | None = None
    user_agent: str = ""
    object_ref: ObjectRef | None = None
    response_status: ResponseStatus | None = None
    request_object: msgspec.Raw = msgspec.Raw()
    response_object: msgspec.Raw = msgspec.Raw()
    request_received_timestamp: str = ""
    stage_timestamp: str = ""
    annotations: dict[str, str] | None = None

    @property
    def is_answered(self) -> bool:
        """True for the stage with the response; stores that keep only that one leave it out."""
        return self.stage in ("ResponseComplete", "")

    @property
    def code(self) -> int:
        """The HTTP code of the response; 0 when it is unknown."""
        return self.response_status.code if self.response_status else 0

    def actor(self) -> Actor:
        """The effective user: the impersonated user if there is one."""
        user = self.user or User()
        effective = self.impersonated_user or user
        return Actor(
            user=effective.username,
            groups=effective.groups or (),
            agent=self.user_agent,
            impersonated_by=user.username if self.impersonated_user else "",
        )

    def account(self) -> str:
        """The uid of the effective user, if it is that of a service account; else empty.

        A file of static tokens may name a user so, with a uid of its own, which is no UUID.
        """
        user = self.impersonated_user or self.user or User()
        is_account = user.username.startswith(_SERVICE_ACCOUNT) and _UUID.fullmatch(user.uid)
        return user.uid if is_account else ""

    def request(self) -> Any:
        """The decoded body of the request; None when it was not recorded."""
        return _body(self.request_object)

    def response(self) -> Any:
        """The decoded body of the response; None when it was not recorded."""
        return _body(self.response_object)


_SERVICE_ACCOUNT = "system:serviceaccount:"
_UUID = re.compile("[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}")
_GROUP = re.compile(r"/apis/(?P<group>[^/?]+)/(?P<version>[^/?]+)/")
_TEXT_PART = re.compile(rb'":\s*+"\s*+[{\[]')
"""The begin of a part that a store keeps as a text with JSON in it, or of another such text."""

_OF_PAGES = (b'"hits"', b'"next', b"nextLink")
_event_decoder = msgspec.json.Decoder(AuditEvent)
_body_decoder = msgspec.json.Decoder()


def read_events(source: ByteSource, unwrap: str, notes: Notes) -> Iterator[tuple[str, AuditEvent]]:
    """The position and event of each entry of lines, an EventList, or wrapped exports."""
    pages = envelopes.SearchPages()
    for position, content in _texts(source, notes):
        if any(mark in content for mark in _OF_PAGES):
            pages.note(_decoded(content))
        try:
            for at, event in _events(content, position, source, unwrap, notes):
                if event.audit_id and not event.verb:
                    problem = "an audit event without its verb, of which a part may be cut off"
                    notes.lose(InputError(problem, place=f"{source.name}:{at}"))
                    continue
                yield at, event
        except InputError as problem:
            notes.refuse(problem)
    if problem_of_pages := pages.problem():
        notes.lose(InputError(problem_of_pages, place=source.name))


def _texts(source: ByteSource, notes: Notes) -> Iterator[tuple[str, bytes]]:
    """The position and text of each JSON document."""
    if documents.is_json_lines(source):
        for number, line in documents.log_lines(source, notes):
            content, _ = documents.split_stamp(line)
            yield str(number), content
        return
    if tables.is_table(source):
        yield from tables.rows(source, notes)
        return
    content = source.whole()
    is_open = content.lstrip()[:1] not in (b"{", b"[") and not content.endswith(b"\n")
    for position, value in documents.parse(content, source.name, source.limits, notes):
        # A pair of a time and a record is one entry.
        is_list = isinstance(value, list) and all(isinstance(item, dict | str) for item in value)
        if is_open and is_list and value and _ends_in_body(value[-1]):
            problem = "it ends within a line, so its last event may be cut"
            notes.lose(InputError(problem, place=f"{source.name}:{position}[{len(value) - 1}]"))
            value = value[:-1]
        for index, item in enumerate(value if is_list else [value]):
            place = f"{position}[{index}]" if is_list else position
            yield place, msgspec.json.encode(item)


def _ends_in_body(item: Any) -> bool:
    """True for an entry of YAML whose last field has fields of its own, which may be cut."""
    return isinstance(item, dict) and bool(item) and isinstance(list(item.values())[-1], dict)


def _events(
    content: bytes, position: str, source: ByteSource, unwrap: str, notes: Notes
) -> Iterator[tuple[str, AuditEvent]]:
    place = f"{source.name}:{position}"
    json_text.check_text_depth(content, place, source.limits)
    _name_repeated_keys(content, place, notes)
    if unwrap:
        content = _unwrapped(content, unwrap, place, source)
    try:
        event = _decode(content, place)
    except InputError:
        wrapped = _enveloped(content)
        if not wrapped:
            raise
        yield from _wrapped(wrapped, position, place)
        return
    if event.kind != "EventList" or event.items is None:
        wrapped = [] if _is_whole(event, content) else _enveloped(content)
        if wrapped:
            yield from _wrapped(wrapped, position, place)
            return
        if not event.audit_id and not event.stage and not component_logs.tells_in(content):
            notes.pass_over(source.name, "entries without an audit event")
        yield position, event
        return
    for index, item in enumerate(event.items):
        yield f"{position}[{index}]", _decode(bytes(item), place)


def _is_whole(event: AuditEvent, content: bytes) -> bool:
    """False for no event, and for one that may be a part of what stands beside it as text."""
    if not event.audit_id and not event.stage:
        return False
    return event.object_ref is not None and content.count(b"auditID") == 1


def _name_repeated_keys(content: bytes, place: str, notes: Notes) -> None:
    """Note the keys that occur again in one object of a line, or of a JSON text in it."""
    try:
        value = _body_decoder.decode(content)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return
    keys = json_text.repeated_keys(content, value)
    if b'{\\"' in content:
        is_event = isinstance(value, dict) and envelopes.is_event(value)
        for text, inner in envelopes.part_texts(value) if is_event else envelopes.texts(value):
            keys += json_text.repeated_keys(text.encode("utf-8", "replace"), inner)
    notes.lose_repeated(keys, place)


def _enveloped(content: bytes) -> list[JsonObject]:
    """The audit events anywhere in a JSON text; empty for a text that is not JSON."""
    return envelopes.events(_decoded(content))


def _decoded(content: bytes) -> Any:
    """The value of a JSON text; None for a text that is not JSON."""
    try:
        return _body_decoder.decode(content)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return None


def _wrapped(
    wrapped: list[JsonObject], position: str, place: str
) -> Iterator[tuple[str, AuditEvent]]:
    """The events of an envelope; positions are numbered when there are several."""
    for index, tree in enumerate(wrapped):
        inner = f"{position}[{index}]" if len(wrapped) > 1 else position
        yield inner, _decode(json_text.encode(tree), place)


def _unwrapped(content: bytes, path: str, place: str, source: ByteSource) -> bytes:
    outer = json_text.decode(content, place, source.limits)
    inner = json_tree.get(outer, *path.split(".")) if isinstance(outer, dict) else None
    if isinstance(inner, str):
        return inner.encode()
    if isinstance(inner, dict):
        return msgspec.json.encode(inner)
    raise InputError(
        f"there is no audit event under {path!r}", place=place, cure="name another --unwrap path"
    )


def _decode(content: bytes, place: str) -> AuditEvent:
    try:
        return _with_group(_event_decoder.decode(_with_parts(content)))
    except (msgspec.DecodeError, UnicodeDecodeError) as problem:
        if json_text.is_doubled(content):
            # Lines without quotes in their texts would be read, and their backslashes be wrong.
            raise InputError(
                json_text.DOUBLED,
                place=place,
                cure="export it raw or as JSON (TSVRaw or JSONEachRow of ClickHouse, mysql --raw)",
            ) from problem
        raise InputError(
            f"it is not an audit event: {problem}",
            place=place,
            cure="leave the line out, or use --keep-going",
        ) from problem
    except RecursionError as problem:
        raise InputError("nested too deep", place=place) from problem


def _with_parts(content: bytes) -> bytes:
    """The event, with the parts decoded that it has as texts."""
    tree = _decoded(content) if _TEXT_PART.search(content) is not None else None
    if not isinstance(tree, dict) or (whole := envelopes.with_parts(tree)) is tree:
        return content
    return msgspec.json.encode(whole)


def _with_group(event: AuditEvent) -> AuditEvent:
    """The event; an API group that its reference lacks is taken from its path."""
    reference = event.object_ref
    if reference is None or reference.api_group:
        return event
    match = _GROUP.match(event.request_uri)
    if match is not None:
        reference.api_group, reference.api_version = match["group"], match["version"]
    return event


def _body(raw: msgspec.Raw) -> Any:
    content = bytes(raw)
    return _body_decoder.decode(content) if content else None


def as_object(value: Any) -> JsonObject | None:
    """The value if it is an object, else None."""
    return value if isinstance(value, dict) else None
