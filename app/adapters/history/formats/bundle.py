"""The native bundle: one deterministic zip with the events of a history and their hashes.

Equal content gives equal bytes: entries in a fixed order with fixed times, canonical JSON, a fixed
level of compression. `BundleReader.check` verifies the chain, the digests and the state hash.
Parity: history-formats.md 16.
"""

import hashlib
import posixpath
import tempfile
import zipfile
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any

import msgspec

from app.adapters import head_keys, whole_files
from app.adapters.history import compression, json_text, unpacking
from app.adapters.history.limits import ImportLimits
from app.domain.errors import ChainBroken, InputError
from app.domain.log import ChainStart, Event, EventType, ObjectKey, Revision, Stamp, chain
from app.domain.log.event import FORMAT_VERSION, GENESIS
from app.domain.log.heads import SignedHead
from app.domain.objects.schema.structural import Schemas
from app.domain.objects.write import intake
from app.domain.values import json_tree, timestamps
from app.domain.values.identifiers import Uid
from app.domain.values.json_tree import JsonObject
from app.domain.values.timestamps import Instant, TimestampError

BUNDLE = "dra-history"
VERSION = 1
MANIFEST = "manifest.json"
EVENTS = "events.jsonl"
HEADS = "heads.json"
README = "README.md"
SECRET_KEYS = "secrets.keys"  # noqa: S105 - the name of an entry
ENTRY_TIME = (1980, 1, 1, 0, 0, 0)
PAGE = 5_000
"""Events per batch that is read from a bundle."""

HASH_PREFIX = "sha256:"


class _EventPayload(msgspec.Struct, kw_only=True, forbid_unknown_fields=True):
    format: int
    group: str
    resource: str
    namespace: str
    name: str
    uid: Uid
    object: msgspec.Raw


class _EventLine(msgspec.Struct, kw_only=True, forbid_unknown_fields=True):
    payload: _EventPayload
    revision: int
    stamp: dict[str, Any]
    type: str
    prev: str
    hash: str


_line_decoder = msgspec.json.Decoder(_EventLine)


def event_line(event: Event, previous: bytes) -> bytes:
    """One event as a line without its line end: the hashed bytes, with both hashes added."""
    stamp = chain.stamp_json(event.stamp)
    body = chain.canonical_bytes(event, stamp)
    # Keys are sorted: hash, payload, prev, revision, stamp, type. The revision is found from the
    # end, because an object may hold the same text.
    tail = b',"revision":%d,"stamp":' % event.revision + stamp
    cut = body.rindex(tail)
    return b"".join(
        (
            b'{"hash":"sha256:%s",' % event.hash.hex().encode(),
            body[1:cut],
            b',"prev":"sha256:%s"' % previous.hex().encode(),
            body[cut:],
        )
    )


def parse_line(line: bytes, place: str) -> tuple[Event, bytes]:
    """The event of a line, and the hash that it names as its predecessor's. Raises InputError."""
    try:
        decoded = _line_decoder.decode(line)
        time = timestamps.parse(str(decoded.stamp.get("time", "")))
        stamp = msgspec.convert({**decoded.stamp, "time": time}, Stamp)
        payload = decoded.payload
        if payload.format < 1:
            raise InputError(f"the event has format {payload.format}", place=place)
        if payload.format > FORMAT_VERSION:
            raise InputError(
                f"the event has format {payload.format}, this program knows {FORMAT_VERSION}",
                place=place,
                cure="use a newer redra",
            )
        event = Event(
            revision=Revision(decoded.revision),
            type=EventType(decoded.type),
            key=ObjectKey(payload.group, payload.resource, payload.namespace, payload.name),
            uid=payload.uid,
            body=bytes(payload.object),
            stamp=stamp,
            hash=parse_hash(decoded.hash, place),
            format=payload.format,
        )
        previous = parse_hash(decoded.prev, place)
        if event_line(event, previous) != line:
            # No hash covers what redra passes over here, and other programs would read it.
            raise InputError("the line is not the canonical JSON of its event", place=place)
        return event, previous
    except (msgspec.DecodeError, TimestampError, ValueError, RecursionError) as problem:
        raise InputError(f"it is not an event: {problem}", place=place) from problem


def parse_hash(text: str, place: str) -> bytes:
    """The 32 bytes of `sha256:…`. Raises InputError."""
    digits = text.removeprefix(HASH_PREFIX)
    try:
        raw = bytes.fromhex(digits)
    except ValueError:
        raw = b""
    if len(raw) != 32 or digits == text:
        raise InputError(f"{text!r} is not a sha256", place=place)
    return raw


def hash_text(value: bytes) -> str:
    """`sha256:` and 64 hex digits."""
    return HASH_PREFIX + value.hex()


class StateHash:
    """SHA-256 over the sorted (key, canonical object) pairs of the objects that exist."""

    def __init__(self) -> None:
        self._objects: dict[ObjectKey, bytes] = {}

    def fold(self, event: Event) -> None:
        """Fold one event into the state."""
        if event.type is EventType.OBJECT_DELETED:
            self._objects.pop(event.key, None)
        elif event.is_about_object:
            self._objects[event.key] = hashlib.sha256(event.body).digest()

    def text(self) -> str:
        """The hash of the current state. Each object contributes its own digest."""
        digest = hashlib.sha256()
        for key in sorted(self._objects):
            digest.update(chain.canonical_json(list(key)))
            digest.update(self._objects[key])
        return HASH_PREFIX + digest.hexdigest()


class _ForkBeginning(msgspec.Struct, frozen=True):
    """The beginning of a fork's chain, in the manifest."""

    seed: int
    settings: JsonObject
    created: str


class _Manifest(msgspec.Struct, frozen=True):
    """The types of the fields of a manifest; `seed` has its own check."""

    bundle: str
    version: int
    checks: dict[str, dict[str, str]]
    chain_head: str
    state_hash: str
    events: int
    first_revision: int = 0
    last_revision: int = 0
    name: str = ""
    created: str | None = None
    created_by: str = ""
    settings: JsonObject = msgspec.field(default_factory=dict)
    beginning: _ForkBeginning | None = None
    sources: list[JsonObject] = msgspec.field(default_factory=list)


class BundleWriter:
    """Collects events in order and writes one file; a failure leaves no file."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._lines: IO[bytes] = tempfile.TemporaryFile()  # noqa: SIM115  closed by `finish`
        self._digest = hashlib.sha256()
        self._state = StateHash()
        self._previous = GENESIS
        self._first = Revision(0)
        self._last = Revision(0)
        self._count = 0

    def begin(self, hash: bytes) -> None:
        """Set the hash that the first event follows."""
        self._previous = hash

    def write(self, events: Iterable[Event]) -> None:
        """Add events that follow the ones before."""
        for event in events:
            line = event_line(event, self._previous) + b"\n"
            self._lines.write(line)
            self._digest.update(line)
            self._state.fold(event)
            self._previous = event.hash
            self._first = self._first or event.revision
            self._last = event.revision
            self._count += 1

    def discard(self) -> None:
        """Discard the collected events; no file is written."""
        self._lines.close()

    def finish(self, details: JsonObject) -> JsonObject:
        """Write the bundle with the service's details; returns its manifest. Raises InputError."""
        reports = details.pop("reports", [])
        readme = details.pop("readme", "")
        heads = details.pop("heads", [])
        keys = details.pop("secret_keys", {})
        files = {EVENTS: HASH_PREFIX + self._digest.hexdigest()}
        manifest: JsonObject = {
            "bundle": BUNDLE,
            "version": VERSION,
            "events": self._count,
            "first_revision": self._first,
            "last_revision": self._last,
            "chain_head": hash_text(self._previous),
            "state_hash": self._state.text(),
            "redaction": None,
            "checks": {"files": files},
            **details,
        }
        try:
            head_keys.check_kept(heads, place=str(details.get("name")))
            with (
                whole_files.replacing(self._path) as partial,
                zipfile.ZipFile(partial, "w", allowZip64=True) as archive,
            ):
                _put(archive, MANIFEST, chain.canonical_json(manifest) + b"\n", packed=False)
                self._lines.seek(0)
                with archive.open(_entry(EVENTS, packed=True), "w", force_zip64=True) as entry:
                    while chunk := self._lines.read(compression.CHUNK):
                        entry.write(chunk)
                if heads:
                    _put(archive, HEADS, chain.canonical_json(heads) + b"\n", packed=False)
                for index, report in enumerate(reports):
                    text = chain.canonical_json(report) + b"\n"
                    _put(archive, f"reports/{index}.json", text, packed=True)
                _put(archive, README, readme.encode(), packed=True)
                if keys:
                    _put(archive, SECRET_KEYS, chain.canonical_json(keys) + b"\n", packed=True)
        except OSError as problem:
            raise InputError(
                f"the bundle cannot be written: {problem.strerror}",
                place=str(self._path),
                cure="choose another place",
            ) from problem
        finally:
            self._lines.close()
        return manifest


class BundleReader:
    """A bundle on disk.

    Call `check` first: it raises InputError or ChainBroken for a damaged bundle.
    """

    def __init__(self, path: Path, limits: ImportLimits) -> None:
        self.name = path.name
        self._limits = limits
        self._schemas: Schemas | None = None
        self._checked: bytes | None = None
        self._entries: dict[str, unpacking.ByteSource] = {}
        places: set[str] = set()
        for entry in unpacking.zip_sources(path, path.name, limits):
            name = entry.name.removeprefix(f"{path.name}/")
            if (place := posixpath.normpath(name).casefold()) in places:
                # Which of them counts differs between the programs that read archives.
                raise InputError(f"the entry {name!r} is there twice", place=self.name)
            places.add(place)
            self._entries[name] = entry
        if MANIFEST not in self._entries or EVENTS not in self._entries:
            raise InputError("it is not a bundle: an entry is missing", place=self.name)
        self.manifest = self._read_manifest()

    def check(self, schemas: Schemas | None = None) -> None:
        """Verify the digests, the whole chain, and the state hash.

        With the `schemas` of the release, also verify that all views can fold every event.
        """
        self._schemas = schemas
        digest = hashlib.sha256()
        for chunk in self._entries[EVENTS].chunks():
            digest.update(chunk)
        named = json_tree.text(self.manifest, "checks", "files", EVENTS)
        if named != HASH_PREFIX + digest.hexdigest():
            # The chain identifies the wrong event; the digest does not.
            self._check_events()
            raise InputError(f"{EVENTS} does not have the digest of the manifest", place=self.name)
        self._check_events()

    def heads(self) -> list[SignedHead]:
        """The signed heads of the bundle, with their signatures checked. Raises InputError."""
        if HEADS not in self._entries:
            return []
        return head_keys.parse_heads(self._entries[HEADS].whole(), place=f"{self.name}/{HEADS}")

    @property
    def created(self) -> Instant | None:
        """The creation time of the history; None in bundles without it."""
        text = self.manifest.get("created")
        if not isinstance(text, str):
            return None
        place = f"{self.name}/{MANIFEST}"
        try:
            created = timestamps.parse(text)
        except TimestampError as problem:
            raise InputError(f"created: {problem}", place=place) from problem
        intake.check_time(created, "created", place)
        return created

    @property
    def beginning(self) -> bytes:
        """The hash that the first event follows: that of the manifest's settings, or `GENESIS`.

        Raises ChainBroken for any other hash.
        """
        for number, line in self._entries[EVENTS].lines():
            event, previous = parse_line(line, f"{self.name}/{EVENTS}:{number}")
            if event.revision == 1 and previous not in (GENESIS, self._anchored()):
                raise ChainBroken(1, chain.BEGINNING_PROBLEM)
            return previous
        is_bare = self.manifest.get("chain_head") == hash_text(GENESIS)
        return GENESIS if is_bare else self._anchored()

    @property
    def begun(self) -> ChainStart | None:
        """The beginning of a fork's chain; None for other histories. Raises InputError."""
        if "beginning" not in self.manifest:
            return None
        place = f"{self.name}/{MANIFEST}"
        try:
            kept_beginning = msgspec.convert(self.manifest["beginning"], _ForkBeginning)
            created = timestamps.parse(kept_beginning.created)
        except (msgspec.ValidationError, TimestampError) as problem:
            raise InputError(f"beginning: {problem}", place=place) from problem
        seed, settings = intake.check_seed(kept_beginning.seed, place), kept_beginning.settings
        return ChainStart(seed=seed, settings=settings, created=created)

    def _anchored(self) -> bytes:
        """The hash that the first event follows when the settings are in the chain."""
        begun = self.begun
        if begun is not None:
            return chain.genesis(seed=begun.seed, settings=begun.settings, created=begun.created)
        seed, settings = self.manifest.get("seed"), self.manifest.get("settings")
        if self.created is None or not isinstance(seed, int) or not isinstance(settings, dict):
            return GENESIS
        return chain.genesis(seed=seed, settings=settings, created=self.created)

    def batches(self) -> Iterator[list[Event]]:
        """The events in order, in batches; each event is verified.

        After `check`, the chain alone proves that they are the events that were checked.
        """
        batch: list[Event] = []
        previous = self.beginning
        for revision, (number, line) in enumerate(self._entries[EVENTS].lines(), start=1):
            place = f"{self.name}/{EVENTS}:{number}"
            json_text.check_text_depth(line, place, self._limits)
            event, named_before = parse_line(line, place)
            if revision == 1 and event.revision != 1:
                raise InputError(
                    f"the bundle begins at revision {event.revision}",
                    place=self.name,
                    cure="export the whole history",
                )
            if named_before != previous:
                raise ChainBroken(event.revision, "it does not follow the event before it")
            chain.check_event(event, previous, Revision(revision))
            previous = event.hash
            if self._schemas is not None and self._checked is None:
                intake.check_event(event, self._schemas, place)
                # The tree would live as long as the event, but may not be needed again.
                event.forget_tree()
            batch.append(event)
            if len(batch) >= PAGE:
                yield batch
                batch = []
        if self._checked not in (None, previous):
            raise InputError(
                "the bundle was replaced by another one while it was read",
                place=self.name,
                cure="import it again",
            )
        if batch:
            yield batch

    def secret_keys(self) -> dict[str, bytes]:
        """The keys of the Secrets in the bundle, by id. Raises InputError."""
        if SECRET_KEYS not in self._entries:
            return {}
        try:
            return msgspec.json.decode(self._entries[SECRET_KEYS].whole(), type=dict[str, bytes])
        except msgspec.DecodeError as problem:
            raise InputError(
                f"{SECRET_KEYS} does not hold keys: {problem}", place=self.name
            ) from problem

    def sha256(self) -> str:
        """The digest of the events file, as the manifest names it."""
        return json_tree.text(self.manifest, "checks", "files", EVENTS)

    def _check_events(self) -> None:
        state, count = StateHash(), 0
        head, signed = self.beginning, self.heads()
        for batch in self.batches():
            for event in batch:
                state.fold(event)
                self._check_heads(signed, event)
            count += len(batch)
            head = batch[-1].hash
        for missing in signed:
            if missing.revision > count:
                raise InputError(
                    f"a signed head is at revision {missing.revision}, the events end at {count}",
                    place=self.name,
                    cure="use the bundle as it was exported",
                )
        claims = (
            ("events", count),
            ("first_revision", min(count, 1)),
            ("last_revision", count),
            ("chain_head", hash_text(head)),
            ("state_hash", state.text()),
        )
        for name, claimed in claims:
            if (given := self.manifest.get(name)) != claimed:
                raise InputError(
                    f"the manifest says {name} {given!r}, the events give {claimed!r}",
                    place=self.name,
                    cure="export it again",
                )
        self._checked = head

    def _check_heads(self, signed: list[SignedHead], event: Event) -> None:
        for head in signed:
            if head.revision == event.revision and not head.names(event.hash):
                raise ChainBroken(event.revision, "a signed head names another hash")

    def _read_manifest(self) -> JsonObject:
        content, place = self._entries[MANIFEST].whole(), f"{self.name}/{MANIFEST}"
        manifest: object = json_text.decode(content, place, self._limits)
        if not isinstance(manifest, dict):
            raise InputError("the manifest is not an object", place=self.name)
        if manifest.get("bundle") != BUNDLE:
            raise InputError("the manifest is not that of a history bundle", place=self.name)
        if manifest.get("version") != VERSION:
            raise InputError(
                f"the bundle has version {manifest.get('version')}, this program reads {VERSION}",
                place=self.name,
                cure="use a newer redra",
            )
        try:
            msgspec.convert(manifest, _Manifest)
        except msgspec.ValidationError as problem:
            raise InputError(f"the manifest cannot be read: {problem}", place=place) from problem
        return manifest


def _entry(name: str, *, packed: bool) -> zipfile.ZipInfo:
    entry = zipfile.ZipInfo(name, date_time=ENTRY_TIME)
    entry.create_system = 3
    entry.external_attr = 0o100644 << 16
    # Deflate without a level is level 6, by definition of zlib's default.
    entry.compress_type = zipfile.ZIP_DEFLATED if packed else zipfile.ZIP_STORED
    return entry


def _put(archive: zipfile.ZipFile, name: str, content: bytes, *, packed: bool) -> None:
    with archive.open(_entry(name, packed=packed), "w") as entry:
        entry.write(content)


@contextmanager
def names_the_bundle(reader: BundleReader) -> Iterator[None]:
    """Turn a broken chain, which is that of the bundle here, into an InputError with its name."""
    try:
        yield
    except ChainBroken as problem:
        raise InputError(
            str(problem), place=reader.name, cure="use the bundle as it was exported"
        ) from problem
