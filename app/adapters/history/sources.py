"""Discovery of source files and their formats: walks folders, opens archives, splits mixed texts.

A path that the user names is refused when its format is unknown. A file in a folder or an archive
is left out instead, with a reason.
"""

import dataclasses
import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import chain
from pathlib import Path

from app.adapters.history import (
    archives,
    detection,
    html_pages,
    json_text,
    kinds,
    line_marks,
    mixtures,
    named_releases,
    runtime_lines,
    unpacking,
)
from app.adapters.history.archives import Unpacked
from app.adapters.history.audit import otlp, tables
from app.adapters.history.detection import Format
from app.adapters.history.enclosed import (
    admissions,
    checkpoints,
    emails,
    encoded_texts,
    helm_releases,
    journals,
    managed_states,
    texts,
)
from app.adapters.history.formats import component_logs, kshrk
from app.adapters.history.limits import BoundReached
from app.adapters.history.mixtures import Mixture, Part
from app.adapters.history.printouts import event_objects, foreign
from app.adapters.history.reading import Notes, ReadOptions
from app.adapters.history.storage import write_logs
from app.adapters.history.storage.write_logs import WriteLogs
from app.adapters.history.unpacking import ByteSource
from app.analysis.recordings.releases import ReleaseEvidence
from app.domain.errors import InputError
from app.domain.objects.schema.structural import Schemas
from app.domain.values.json_tree import JsonObject

EVENTS_PAGE = "event-filter.html"
"""A page that must-gather makes of the Events, which lie beside it."""

_UNKNOWN = "redra does not know the format of the file"
_EMPTY_TEXT = "a text in which it finds no object, no Event and no attempt"
_QUOTES = "documents in texts, which are read only if the file itself is named"


@dataclass(frozen=True, slots=True, kw_only=True)
class SourceFile:
    """One file of an import: its bytes and its format.

    For a part of a mixture, `whole` is the file that contains it. `is_beside` is true for the lines
    of other components in a log of audit events, which is a file of its own. `logs` are the
    write-ahead logs of a database, which lie beside it.
    """

    source: ByteSource
    format: Format
    is_named: bool
    whole: ByteSource | None = None
    is_beside: bool = False
    logs: tuple[ByteSource, ...] = ()


class Finder:
    """Finds the files that the paths name, with their formats, in a fixed order.

    Releases that files name are noted in `releases`.
    """

    def __init__(
        self,
        options: ReadOptions,
        notes: Notes,
        unpacked: Unpacked,
        releases: ReleaseEvidence | None = None,
    ) -> None:
        self._releases = releases or ReleaseEvidence()
        self._options = options
        self._notes = notes
        self._unpacked = unpacked
        self._seen = 0
        self._quoting: dict[str, ByteSource] = {}
        self._logs = WriteLogs()
        self._reads_texts = False

    def find(self, paths: Sequence[Path]) -> list[SourceFile]:
        """The files at the paths.

        Raises InputError for a named file of unknown format, and at a bound.
        """
        files: list[SourceFile] = []
        for path in paths:
            entries = self._in_folder(path) if path.is_dir() else self._in_path(path)
            for file in entries:
                files.append(file)
                if len(files) > self._options.limits.sources_max:
                    raise BoundReached(
                        f"more than {self._options.limits.sources_max} files",
                        place=str(path),
                        cure="split the import or raise import_entries_max",
                    )
        if all(file.format is Format.EMPTY for file in files):
            files += self._quoted()
        files = [dataclasses.replace(file, logs=self._logs.of(file.source.name)) for file in files]
        self._logs.lose_others(self._notes)
        return files

    def _quoted(self) -> list[SourceFile]:
        """The documents in texts of unnamed files, as in exports of a chat; nothing else is there.

        With recordings beside them they are passed over: `_buckets` says why.
        """
        self._reads_texts = True
        files: list[SourceFile] = []
        for source in self._quoting.values():
            self._notes.take_back(source.name, _QUOTES)
            try:
                files += self._in_mixture(source, None, is_named=False)
            except InputError as problem:
                self._notes.lose(problem)
        return files

    def _in_path(self, path: Path) -> Iterator[SourceFile]:
        for name, each in ((path.name, path), *write_logs.beside(path)):
            source = unpacking.file_source(each, name, self._options.limits)
            yield from self._in_source(source, is_named=each is path)

    def _in_folder(self, folder: Path) -> Iterator[SourceFile]:
        limits = self._options.limits
        seen = 0
        for path in self._paths_in(folder):
            name = path.relative_to(folder)
            if any(part.startswith(".") for part in name.parts):
                if path.is_file():
                    self._notes.count("files with names that begin with a dot, left out")
                continue
            if path.is_symlink() or not path.is_file():
                if path.is_symlink() or not path.is_dir():
                    shown = unpacking.shown_name(name.as_posix())
                    self._notes.pass_over(shown, "it is a link, or not a plain file")
                continue
            seen += 1
            if len(name.parts) > limits.path_depth_max or seen > limits.sources_max:
                raise InputError(
                    f"{name} lies deeper than {limits.path_depth_max} folders, or the folder "
                    f"holds more than {limits.sources_max} files",
                    place=str(folder),
                    cure="name the files that matter",
                )
            source = unpacking.file_source(path, name.as_posix(), limits)
            yield from self._in_source(source, is_named=False)

    def _paths_in(self, folder: Path) -> list[Path]:
        """All paths in a folder. A folder in it that may not be read, or has gone, is a loss."""

        def lose(problem: OSError) -> None:
            name = Path(problem.filename).relative_to(folder.parent)
            self._notes.lose(
                InputError(
                    f"the folder cannot be read: {problem.strerror}",
                    place=unpacking.shown_name(name.as_posix()),
                )
            )

        walk = os.walk(folder, onerror=lose)
        return sorted(Path(root, name) for root, *parts in walk for name in chain(*parts))

    def _in_source(
        self, source: ByteSource, *, is_named: bool, depth: int = 0
    ) -> Iterator[SourceFile]:
        try:
            chosen = self._options.format
            if is_named and chosen not in ("auto", "bundle") and not detection.is_zip(source):
                yield SourceFile(source=source, format=Format(chosen), is_named=True)
                return
            head = source.head(detection.HEAD_BYTES)
            if head.startswith(unpacking.ZIP_MAGIC):
                yield from self._in_zip(source, depth)
            elif archives.is_tar(head):
                self._check_depth(source, depth)
                for entry in self._unpacked.tar_entries(source):
                    yield from self._in_source(entry, is_named=False, depth=depth + 1)
            elif emails.is_email(head):
                self._check_depth(source, depth)
                for part in emails.parts(source):
                    yield from self._in_source(part, is_named=False, depth=depth + 1)
            elif (carried := encoded_texts.reader_of(head)) is not None:
                self._check_depth(source, depth)
                inner = carried(source)
                yield from self._in_source(inner, is_named=is_named, depth=depth + 1)
            elif journals.is_export(head):
                yield from self._in_journal(source, is_named=is_named)
            else:
                yield from self._in_file(source, head, is_named=is_named)
        except InputError as problem:
            if is_named:
                self._notes.refuse(problem)
            else:
                self._notes.lose(problem)

    def _in_journal(self, source: ByteSource, *, is_named: bool) -> Iterator[SourceFile]:
        lines = journals.as_lines(source.whole())
        for number in lines.broken:
            self._notes.lose(
                InputError(
                    "an entry of the journal is cut or damaged",
                    place=f"{source.name}:{number}",
                    cure="export the journal again",
                )
            )
        entries = unpacking.bytes_source(lines.content, source.name, source.limits)
        head = entries.head(detection.HEAD_BYTES)
        for file in self._in_file(entries, head, is_named=is_named):
            yield dataclasses.replace(file, whole=source)

    def _in_zip(self, source: ByteSource, depth: int) -> Iterator[SourceFile]:
        self._check_depth(source, depth)
        entries = list(self._unpacked.zip_entries(source))
        names = {entry.name.removeprefix(f"{source.name}/") for entry in entries}
        if detection.is_bundle(names):
            raise InputError(
                "the format bundle cannot be joined with others here",
                place=source.name,
                cure="import the bundle on its own",
            )
        for entry in entries:
            yield from self._in_source(entry, is_named=False, depth=depth + 1)

    def _check_depth(self, source: ByteSource, depth: int) -> None:
        if depth >= self._options.limits.archive_depth_max:
            raise BoundReached(
                f"an archive within {depth} archives",
                place=source.name,
                cure="unpack it, or raise import_archive_depth_max if it is sound",
            )

    def _in_file(self, source: ByteSource, head: bytes, *, is_named: bool) -> Iterator[SourceFile]:
        detected = detection.detect(source, head)
        beginning = source.head(named_releases.SEARCHED_BYTES)
        for said in named_releases.said_in(source.name, beginning, detected.format):
            place = f"{source.name}:{said.line}"
            self._releases.note(said.component, said.release, said.kind, place)
        if detected.format is Format.MIXTURE:
            yield from self._in_mixture(source, detected.problem, is_named=is_named)
            return
        if detected.format is Format.UNKNOWN:
            self._unknown(source, head, is_named=is_named)
            return
        yield SourceFile(source=source, format=detected.format, is_named=is_named)
        is_wrapped = detected.format is Format.AUDIT and detection.is_wrapped_audit(source)
        if is_wrapped and component_logs.is_beside(source):
            log = Format.SCHEDULER_LOG
            yield SourceFile(source=source, format=log, is_named=is_named, is_beside=True)

    def _unknown(self, source: ByteSource, head: bytes, *, is_named: bool) -> None:
        """Raise InputError for a closed file type and for a named source; pass over other files."""
        if self._logs.note(source, head):
            return
        if not is_named and (reason := detection.beside_others(source.name, head)):
            self._notes.pass_over(source.name, reason)
            return
        problem, cure = detection.closed(source.name, head)
        if problem:
            raise InputError(problem, place=source.name, cure=cure)
        if is_named:
            known = foreign.of_bytes(head), detection.binary(source, head), foreign.of_file(head)
            problem, cure = next((each for each in known if each[0]), ("", ""))
            if not problem and b"\0" not in head:
                problem, cure = f"{_UNKNOWN}: {_EMPTY_TEXT}", foreign.OBJECTS
            raise InputError(
                problem or _UNKNOWN,
                place=source.name,
                cure=cure or "name its format with --format; docs/reference/formats.md lists them",
            )
        if kshrk.is_index(source.name):
            self._notes.count("indexes of captures")
            return
        self._notes.pass_over(source.name, "it holds no objects, events or attempts")

    def _in_mixture(
        self, source: ByteSource, problem: InputError | None, *, is_named: bool
    ) -> Iterator[SourceFile]:
        """The parts of a text, by format; the other content is noted."""
        rules = self._options.rules
        schemas = None if rules is None else rules.schemas
        content, damage = source.undamaged()
        if damage is not None:
            # YAML that ends anywhere is still YAML, and its last object would be a wrong one.
            if content.lstrip()[:1] not in (b"{", b"["):
                raise damage
            self._notes.refuse(damage) if is_named else self._notes.lose(damage)
        if line_marks.utf16(content):
            content = line_marks.decoded(content).encode()
        content = runtime_lines.joined_content(content, source.limits.line_bytes_max)
        if tables.has_row(source, _is_row):
            content = tables.as_lines(source)
        mixture = mixtures.take_apart(content, source.name, source.limits, schemas)
        mixture = _released(mixture, content)
        buckets = self._buckets(mixture, source, schemas, is_named=is_named)
        log = _unescaped(content)
        # Beside documents, klog lines of other programs count as text.
        tells = not buckets or component_logs.tells_in(log)
        has_attempts = tells and component_logs.begins_in(log)
        if not buckets and not has_attempts:
            if html_pages.is_html(line_marks.decoded(content[: detection.HEAD_BYTES])):
                if not is_named and source.name.rpartition("/")[2] == EVENTS_PAGE:
                    self._notes.pass_over(source.name, "the page that must-gather makes of Events")
                    return
                problem = html_pages.without_objects(source.name)
            elif mixture.damaged:
                problem = mixture.damaged[0]
            if problem is not None:
                if any(detection.binary(source, content)):
                    self._unknown(source, content, is_named=True)
                raise problem
            if source.name not in self._quoting:
                self._unknown(source, content, is_named=is_named)
            return
        self._note(mixture, content, source.name)
        if mixture.text_lines and not has_attempts:
            self._notes.pass_over(source.name, "text between documents", mixture.text_lines)
        for chosen, parts in buckets.items():
            lines = _as_lines(parts)
            yield SourceFile(
                source=unpacking.bytes_source(lines, source.name, source.limits),
                format=chosen,
                is_named=is_named,
                whole=source,
            )
        if has_attempts:
            yield SourceFile(
                source=unpacking.bytes_source(log, source.name, source.limits),
                format=Format.SCHEDULER_LOG,
                is_named=is_named,
                whole=source,
            )

    def _note(self, mixture: Mixture, content: bytes, name: str) -> None:
        """Note what a text has lost and what was joined, passed over or read as another code."""
        for damage in mixture.damaged:
            self._notes.lose(damage)
        if not line_marks.is_utf8(content):
            self._notes.add(f"{name}: bytes that are not UTF-8 are read as Windows-1252")
        if mixture.joined_lines:
            reason = f"{name}: lines that a terminal broke at its edge, joined"
            self._notes.count(reason, mixture.joined_lines)
        if mixture.log_lines:
            self._notes.pass_over(name, "logs of containers", mixture.log_lines)
        if mixture.sent_bodies:
            reason = "bodies of requests, which need not have been stored"
            self._notes.pass_over(name, reason, mixture.sent_bodies)

    def _buckets(
        self, mixture: Mixture, source: ByteSource, schemas: Schemas | None, *, is_named: bool
    ) -> dict[Format, list[Part]]:
        """The documents by format; objects next to kwok patches belong to the kwok recording.

        A document of no format may hold objects that were logged, and texts with documents. The
        texts are read where the file is named, or where nothing else is: in a folder with
        recordings a journal also quotes what was only tried (`--dry-run`), or is older than what is
        recorded beside it.
        """
        buckets: dict[Format, list[Part]] = {}
        for part in mixture.parts:
            chosen = _format_of(part, source.name)
            place = f"{source.name}:{part.line}"
            if chosen is not Format.UNKNOWN:
                self._notes.lose_repeated(part.repeated, place)
                buckets.setdefault(chosen, []).append(part)
                continue
            event = event_objects.of_row(part.value) or event_objects.of_beat(part.value)
            shown = [event] if event is not None else checkpoints.claims(part.value)
            if shown:
                rows = [Part(part.line, each, json_text.encode(each), True) for each in shown]
                buckets.setdefault(Format.PRINTED, []).extend(rows)
                continue
            states = managed_states.count(part.value) if b"liveState" in part.content else 0
            if states:
                self._notes.pass_over(source.name, managed_states.REASON, states)
            logged = _logged(part)
            unread = chain(managed_states.unread(part.value), kinds.unnamed(part.value))
            for problem in (*admissions.requests(part.value).problems, *unread):
                mixture.damaged.append(InputError(problem, place=place))
            for each in logged:
                buckets.setdefault(_format_of(each, source.name), []).append(each)
            enclosed: list[Part] = []
            if is_named or self._reads_texts:
                enclosed = self._enclosed(part, mixture, source, schemas)
            elif any(texts.within(part.value)):
                self._notes.pass_over(source.name, _QUOTES)
                self._quoting[source.name] = source
            if logged or enclosed:
                self._notes.lose_repeated(part.repeated, place)
            for inner in enclosed:
                self._notes.lose_repeated(inner.repeated, place)
                buckets.setdefault(_format_of(inner, source.name), []).append(inner)
            mixture.text_lines += not logged and not enclosed
        if Format.KWOK in buckets and Format.DUMP in buckets:
            joined = buckets[Format.KWOK] + buckets.pop(Format.DUMP)
            buckets[Format.KWOK] = sorted(joined, key=lambda part: part.line)
        return buckets

    def _enclosed(
        self, part: Part, mixture: Mixture, source: ByteSource, schemas: Schemas | None
    ) -> list[Part]:
        """The documents in the text fields of a document, at the line of that document."""
        enclosed: list[Part] = []
        for text in texts.within(part.value):
            inner = mixtures.take_apart(text.encode(), source.name, source.limits, schemas)
            mixture.damaged += [
                InputError(f"in a text: {damage.problem}", place=f"{source.name}:{part.line}")
                for damage in inner.damaged
            ]
            parts = inner.parts
            if parts and texts.may_be_cut(text):
                whole = texts.without_cut(parts[-1].value)
                if whole is not parts[-1].value:
                    problem = "in a text: it ends within a line, so its last object may be cut"
                    place = f"{source.name}:{part.line}"
                    mixture.damaged.append(InputError(problem, place=place))
                    content = json_text.encode(whole)
                    last = dataclasses.replace(parts[-1], value=whole, content=content)
                    parts = parts[:-1] if whole is None else [*parts[:-1], last]
            namespace = helm_releases.namespace_of(part.value)
            for each in parts:
                inner_part = dataclasses.replace(_placed(each, namespace), line=part.line)
                is_known = _format_of(each, source.name) is not Format.UNKNOWN
                enclosed += [inner_part] if is_known else _logged(inner_part)
        return enclosed


def _released(mixture: Mixture, content: bytes) -> Mixture:
    """The mixture, whose manifests are in the namespaces of the releases above them."""
    if releases := helm_releases.heads(line_marks.decoded(content)):
        mixture.parts = [
            _placed(part, helm_releases.namespace_above(part.line, releases))
            for part in mixture.parts
        ]
    return mixture


def _placed(part: Part, namespace: str) -> Part:
    """The part, whose manifest is in a namespace if it names none and its kind has one."""
    tree = part.value if part.is_printed else helm_releases.placed(part.value, namespace)
    if tree is part.value:
        return part
    return dataclasses.replace(part, value=tree, content=json_text.encode(tree))


def _logged(part: Part) -> list[Part]:
    """The objects below the fields of a document of no format, and what webhooks were asked."""
    document = otlp.plain(part.value)
    if b"liveState" in part.content:
        document = managed_states.plain(document)
    trees = [*kinds.objects_within(document), *admissions.requests(part.value).events]
    return [Part(line=part.line, value=tree, content=json_text.encode(tree)) for tree in trees]


def _is_row(tree: JsonObject) -> bool:
    """True for a row of a table that is read as a document.

    Such rows are Events, lines of components, and those with a text over several lines.
    """
    if event_objects.of_row(tree) is not None or component_logs.is_in_row(tree):
        return True
    return any("\n" in text for text in texts.within(tree))


def _unescaped(content: bytes) -> bytes:
    """A text as a reader of logs takes it: what a page shows, where that tells of a pod."""
    if content.lstrip()[:1] != b"<":
        return content
    page = html_pages.as_lines(line_marks.decoded(content)).encode()
    return page if component_logs.tells_in(page) else content


def _format_of(part: Part, name: str) -> Format:
    return Format.PRINTED if part.is_printed else detection.classify(part.value, name)


def _as_lines(parts: list[Part]) -> bytes:
    """The documents as JSON lines, each at its original line number, to keep places correct."""
    out: list[bytes] = []
    for part in parts:
        out += [b""] * (part.line - 1 - len(out))
        out.append(part.content)
    return b"\n".join(out) + b"\n"
