"""Representations: objects as bytes, in the version and form that a client asked for.

The stored bytes are served unchanged for the storage version. Other versions are converted and
encoded once and cached for the next reader. Tables and metadata are made for each request.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import TypeAlias

import msgspec

from app.api.kubernetes.negotiation import Encoding, NegotiatedForm, Shape
from app.api.server.messages import Response
from app.domain.errors import BadRequest
from app.domain.log import Event
from app.domain.log.chain import canonical_json
from app.domain.objects import registry
from app.domain.objects.kinds import secret_values
from app.domain.objects.kinds.secret_values import SecretCipher
from app.domain.objects.printing import columns as printing
from app.domain.objects.printing.tables import Printer
from app.domain.objects.registry import Kind
from app.domain.objects.schema import conversion, definition_schemas, encode_yaml
from app.domain.values.bounded import Bounded
from app.domain.values.fields import meta
from app.domain.values.json_tree import JsonObject
from app.domain.values.timestamps import Instant

encode = msgspec.json.Encoder().encode

_CONVERTED_MAX = 8_192
_INCLUDES = ("", "Metadata", "Object", "None")


class _StoredMetadata(msgspec.Struct):
    """The metadata of a stored object as raw bytes; other fields are not decoded."""

    metadata: msgspec.Raw = msgspec.Raw(b"{}")


_metadata = msgspec.json.Decoder(_StoredMetadata)
_parts = msgspec.json.Decoder(dict[str, msgspec.Raw])

_Place: TypeAlias = tuple[int, int, str, str, int, bool]

Part: TypeAlias = bytes | memoryview
"""A piece of a response; memoryviews avoid copies of long lists."""

_TYPE = frozenset(("apiVersion", "kind"))


@dataclass(frozen=True, slots=True, kw_only=True)
class Target:
    """The representation of objects for a client: a kind in one of its group-versions, and a form.

    `life` is the number of the runtime that shows the events: in the next runtime a revision may be
    another event. `secrets` reveals the values of Secrets, which the log holds protected.
    """

    life: int
    kind: Kind
    group: str
    version: str
    form: NegotiatedForm
    include: str = "Metadata"
    secrets: SecretCipher | None = None

    @property
    def api_version(self) -> str:
        """The `group/version` of the shown objects."""
        return registry.api_version(self.group, self.version)

    @property
    def is_stored_version(self) -> bool:
        """Whether objects are stored in the requested version."""
        return self.version == self.kind.storage_version and self.group == self.kind.group

    @property
    def definition(self) -> int:
        """The revision of a custom kind's definition; 0 for other kinds."""
        return self.kind.custom.revision if self.kind.custom is not None else 0

    def place(self, event: Event) -> _Place:
        """A cache key with everything that determines the bytes of the whole object."""
        is_revealed = self.secrets is not None
        return (
            self.life, event.revision, self.group, self.version, self.definition, is_revealed
        )  # fmt: skip

    def serves(self, event: Event) -> bool:
        """Whether the stored bytes can be served unchanged.

        Custom objects that are older than their definition may have another version or lack
        defaults.
        """
        if self.kind.custom is None:
            return self.is_stored_version and self.secrets is None
        # Bodies are canonical, so they begin with the version.
        begin = b'{"apiVersion":"%s",' % self.api_version.encode()
        return event.revision >= self.definition and event.body.startswith(begin)


def check_include(include: str) -> str:
    """The includeObject parameter with its default. Raises BadRequest."""
    if include not in _INCLUDES:
        raise BadRequest(
            "Unable to convert to Table as requested: includeObject: Invalid value: "
            f"\"{include[:64]}\": must be 'Metadata', 'Object', 'None', or empty"
        )
    return include or "Metadata"


class Representations:
    """Encodes objects, and caches converted ones."""

    def __init__(self, converted_max: int = _CONVERTED_MAX) -> None:
        self._converted: Bounded[_Place, bytes] = Bounded(converted_max)

    def object_bytes(self, event: Event, target: Target) -> bytes:
        """The whole object in the target's version."""
        if target.serves(event):
            return event.body
        key = target.place(event)
        encoded = self._converted.get(key)
        if encoded is None:
            encoded = (
                _revealed(event, target).body
                if target.secrets is not None
                else encode(_converted(event.object, target))
            )
            self._converted[key] = encoded
        return encoded

    def metadata_bytes(self, event: Event, target: Target) -> bytes:
        """The PartialObjectMetadata of an object."""
        return _partial(_revealed(event, target).body, target.form.version)

    def tree_in(self, tree: JsonObject, target: Target) -> JsonObject:
        """A stored tree in the target's version; the argument is not changed."""
        if target.is_stored_version:
            return tree
        return _converted(tree, target)

    def shown_bytes(self, event: Event, target: Target, now: Instant) -> bytes:
        """One object in the target's form."""
        match target.form.shape:
            case Shape.OBJECT:
                return self.object_bytes(event, target)
            case Shape.METADATA:
                return self.metadata_bytes(event, target)
            case Shape.TABLE:
                return self.table([event], target, now, metadata=_table_metadata(event))

    def shown_tree(self, tree: JsonObject, target: Target, now: Instant) -> bytes:
        """An object without an event of its own (a dry run, or another answer) in its form."""
        if target.form.shape is Shape.OBJECT:
            return encode(self.tree_in(tree, target))
        body = encode(tree)
        if target.form.shape is Shape.METADATA:
            return _partial(body, target.form.version)
        row = self._row(body, tree, target, now, printing.printer(target.kind, target.version))
        version = meta.resource_version(tree)
        metadata = encode({"resourceVersion": version} if version else {})
        return join_table([row], target, metadata, with_columns=True)

    def list_bytes(
        self, events: Sequence[Event], target: Target, now: Instant, *, metadata: JsonObject
    ) -> bytes:
        """A list of objects in the target's form."""
        return join_list(self.portion(events, target, now), target, encode(metadata))

    def portion(self, events: Sequence[Event], target: Target, now: Instant) -> Sequence[Part]:
        """The items of a list, or the rows of a table, for `join_list`."""
        match target.form.shape:
            case Shape.TABLE:
                return self.rows(events, target, now)
            case Shape.METADATA:
                return [self.metadata_bytes(event, target) for event in events]
            case Shape.OBJECT:
                bodies = [self.object_bytes(event, target) for event in events]
                return bodies if target.kind.custom is not None else _items(bodies, target)

    def table(
        self,
        events: Sequence[Event],
        target: Target,
        now: Instant,
        *,
        metadata: bytes,
        with_columns: bool = True,
    ) -> bytes:
        """A Table with one row per object."""
        return join_table(
            self.rows(events, target, now), target, metadata, with_columns=with_columns
        )

    def rows(self, events: Iterable[Event], target: Target, now: Instant) -> list[bytes]:
        """The rows of a Table."""
        printer = printing.printer(target.kind, target.version)
        return [self._event_row(_revealed(event, target), target, now, printer) for event in events]

    def _event_row(self, event: Event, target: Target, now: Instant, printer: Printer) -> bytes:
        if target.include == "Object" and target.secrets is None and not target.serves(event):
            shown = self.object_bytes(event, target)
            cells = encode(printer.cells(event.object, now))
            return b'{"cells":%s,"object":%s}' % (cells, shown)
        return self._row(event.body, event.object, target, now, printer)

    def _row(
        self, body: bytes, tree: JsonObject, target: Target, now: Instant, printer: Printer
    ) -> bytes:
        cells = encode(printer.cells(tree, now))
        if target.include == "Object":
            if not target.is_stored_version:
                body = encode(self.tree_in(tree, target))
            return b'{"cells":%s,"object":%s}' % (cells, body)
        if target.include == "None":
            return b'{"cells":%s,"object":null}' % cells
        return b'{"cells":%s,"object":%s}' % (cells, _partial(body, target.form.version))


def _revealed(event: Event, target: Target) -> Event:
    """The event with the values of its Secret, if the target has a cipher for Secrets."""
    if target.secrets is None:
        return event
    tree = secret_values.revealed(event.key, event.object, target.secrets)
    return msgspec.structs.replace(event, body=canonical_json(tree), tree=tree)


def _converted(tree: JsonObject, target: Target) -> JsonObject:
    kind = target.kind
    if kind.custom is not None:
        _, stored = registry.split_api_version(str(tree.get("apiVersion", "")))
        versions = kind.custom.versions
        schema = versions.get(stored, versions[kind.storage_version]).schema
        return definition_schemas.shown(schema, tree, target.api_version)
    return conversion.convert(tree, kind, kind.storage_api_version, target.api_version)


def respond(body: bytes, form: NegotiatedForm, *, status: int = 200) -> Response:
    """A response in the form's encoding; `body` is JSON."""
    if form.encoding is Encoding.YAML:
        return Response(_yaml(body), status=status, content_type=b"application/yaml")
    return Response(body, status=status)


def _partial(body: bytes, version: str) -> bytes:
    """PartialObjectMetadata around the metadata of a stored object."""
    return b'{"kind":"PartialObjectMetadata","apiVersion":"meta.k8s.io/%s","metadata":%s}' % (
        version.encode(),
        bytes(_metadata.decode(body).metadata),
    )


def _items(bodies: list[bytes], target: Target) -> list[Part]:
    """The items of a typed list, each without its first brace, so that no item is copied.

    Items do not repeat the version and kind, which the list states. Parity: api.md 6; lists of
    custom objects are not typed, so their items state both.
    """
    kind = target.kind.kind.encode()
    begin = b'{"apiVersion":"%s","kind":"%s",' % (target.api_version.encode(), kind)
    return [
        # In the canonical form nearly always nothing is between version and kind.
        memoryview(body)[len(begin) :] if body.startswith(begin) else _without_type(body)[1:]
        for body in bodies
    ]


def _without_type(body: bytes) -> bytes:
    parts = _parts.decode(body)
    return encode({name: part for name, part in parts.items() if name not in _TYPE})


def _table_metadata(event: Event) -> bytes:
    return b'{"resourceVersion":"%d"}' % event.revision


def join_list(items: Sequence[Part], target: Target, metadata: bytes) -> bytes:
    """A list in the target's form, from the items that `portion` made."""
    version = target.form.version
    match target.form.shape:
        case Shape.TABLE:
            return join_table(items, target, metadata, with_columns=True)
        case Shape.METADATA:
            kind, api_version = "PartialObjectMetadataList", f"meta.k8s.io/{version}"
        case Shape.OBJECT:
            kind, api_version = target.kind.list_kind, target.api_version
    head = b'{"kind":"%s","apiVersion":"%s","metadata":%s,"items":[' % (
        kind.encode(),
        api_version.encode(),
        metadata,
    )
    brace = b"{" if target.form.shape is Shape.OBJECT and target.kind.custom is None else b""
    if not items:
        return head + b"]}\n"
    return b"".join((head, brace, (b"," + brace).join(items), b"]}\n"))


def join_table(
    rows: Sequence[Part], target: Target, metadata: bytes, *, with_columns: bool
) -> bytes:
    """A Table from its rows; a watch sends the columns only once."""
    columns = b"null"
    if with_columns:
        printer = printing.printer(target.kind, target.version)
        columns = encode([column.as_json() for column in printer.columns])
    return (
        b'{"kind":"Table","apiVersion":"meta.k8s.io/%s","metadata":%s,'
        b'"columnDefinitions":%s,"rows":[%s]}'
        % (target.form.version.encode(), metadata, columns, b",".join(rows))
    )


def _yaml(body: bytes) -> bytes:
    return encode_yaml.encode_yaml(msgspec.json.decode(body), sort_keys=True).encode()
