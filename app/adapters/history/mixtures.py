"""The documents in a text that also holds other content.

Examples are logs with JSON in them, several JSON documents with text between them, Markdown with
fenced YAML, the stream of `kubectl cluster-info dump`, and terminal output. A document is found by
its beginning: JSON by a bracket, YAML by a line with a field of an object, tables and descriptions
of kubectl by their headings. Everything else is text, and its lines are counted. A document that
begins and cannot be read is damaged and reported.

    $ kubectl get pod a -o json          text
    {"apiVersion": "v1", …}              a document at line 2
    error: connection lost               text
    ```yaml                              a fence: its content is a separate text
    apiVersion: v1                       a document at line 5
"""

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from app.adapters.history import html_pages, json_text, line_marks, python_values, yaml_documents
from app.adapters.history.audit import envelopes, tables
from app.adapters.history.enclosed import (
    broken_lines,
    client_logs,
    line_documents,
    texts,
    yaml_blocks,
)
from app.adapters.history.limits import BoundReached, ImportLimits
from app.adapters.history.printouts import commands as commands_above
from app.adapters.history.printouts import descriptions, foreign, pages, pipe_tables, printed
from app.adapters.history.printouts.commands import Commands
from app.adapters.history.storage import behind_texts
from app.domain.errors import InputError
from app.domain.objects.schema.structural import Schemas
from app.domain.values import api_groups
from app.domain.values.json_tree import JsonObject

WASTED_MAX = 64 * 1024 * 1024
"""Characters read in vain per block, for brackets that do not begin a document.

Beyond this bound the block is not searched for JSON: unclosed nested documents would be read again
at each bracket.
"""

ITEMS_TAKEN_APART_MIN = 2
"""The least number of items for which a damaged list is read item by item."""

_decoder = json.JSONDecoder()
_LOGS_BEGIN = re.compile(r"^==== START logs for container ")
_LOGS_END = re.compile(r"^==== END logs for container ")
_YAML_BEGIN = re.compile(
    r"^(?:- )?(?:(?:api(?:V|_v)ersion|kind|items|metadata|type|object|event|time|insertId"
    r"|protoPayload):(?:\s|$)|events:\s*$)"
)
_IN_A_FIELD = re.compile(r"^ {4,}(?:```|~~~|\{)")
_YAML_BORDER = re.compile(r"^(?:---(?:\s|$)|\.\.\.\s*(?:#|$)|(?:MANIFEST|HOOKS|NOTES):\s*$)")
"""Lines that end a YAML document, including the titles in the output of helm."""
_JSON_BEGIN = re.compile(r'\{\s*["}]|\[\s*(?:[{\[\]]|"[^"\n]{0,400}\\n)')
_JSON_LINE = re.compile(r"\{|\[(?![\w./:-]+(?: [\w./:-]+){0,3}\])")
"""The beginning of a document, rather than a name in brackets, as of `kubectl logs --prefix`."""
_MARKS = ("apiVersion", api_groups.AUDIT, "auditID", "creationTimestamp", '"kvs"')
"""A line of text is searched for embedded JSON only if it contains one of these words."""


@dataclass(frozen=True, slots=True)
class Part:
    """A document and the number of its first line.

    `is_printed` is true for a document from a table or description of kubectl. `repeated` are the
    paths of keys that occur again in one object.
    """

    line: int
    value: JsonObject
    content: bytes
    is_printed: bool = False
    repeated: tuple[str, ...] = ()


@dataclass(slots=True)
class Mixture:
    """The content of a text: documents in order, counts of other lines, and damaged documents.

    `joined_lines` counts the line breaks of a terminal that were taken out of documents,
    `sent_bodies` the bodies of requests in the log of a client.
    """

    parts: list[Part] = field(default_factory=list)
    text_lines: int = 0
    log_lines: int = 0
    joined_lines: int = 0
    damaged: list[InputError] = field(default_factory=list)
    sent_bodies: int = 0


def take_apart(
    content: bytes, place: str, limits: ImportLimits, schemas: Schemas | None = None
) -> Mixture:
    """The documents of a text. Raises BoundReached for one that is too deep or expands too far.

    With schemas, descriptions that show every field are read completely.
    """
    mixture = Mixture(damaged=list(behind_texts.losses(content, place)))
    text = html_pages.unescaped(line_marks.decoded(content))
    if html_pages.is_html(text):
        page = html_pages.texts(text)
        stretches, mixture.text_lines = page.pasted, page.others
        mixture.damaged += [
            InputError("the page leaves out a text here", place=f"{place}:{line}")
            for line in page.left_out
        ]
    else:
        stretches = [html_pages.Pasted(1, text.split("\n"))]
    commands_of_page = commands_above.of_file(place)
    for stretch in stretches:
        inner, begin, commands = place, stretch.line, commands_of_page
        if stretch.is_gathered:
            inner, begin, commands = f"{place}:{stretch.line}", 1, Commands()
        bare = line_marks.unstamped(line_marks.unpaged(line_marks.plain_lines(stretch.lines)))
        shown = line_marks.unnumbered(line_marks.unframed(line_marks.unstreamed(bare)))
        unquoted, depths = line_marks.unquoted(shown)
        bodies = client_logs.plain(line_marks.without_additions(unquoted), inner, begin, limits)
        mixture.sent_bodies += bodies.sent
        mixture.damaged += bodies.damage
        lines = pipe_tables.plain(bodies.lines)
        for first, block, is_open in _blocks(lines, depths, mixture):
            number = begin + first - 1
            _Block(block, number, inner, limits, mixture, schemas, commands).read()
            if is_open:
                place_of_end = f"{inner}:{number + len(block) - 1}"
                mixture.damaged.append(InputError(texts.OPEN_FENCE, place=place_of_end))
    return mixture


def _blocks(
    lines: list[str], depths: list[int], mixture: Mixture
) -> Iterator[tuple[int, list[str], bool]]:
    """Blocks of lines that belong together, each with the number of its first line.

    The flag is true for a last one with YAML at its end, or above its last line, in an open fence.

    Fences, the borders of YAML documents and a change of the quoting depth end a block. Logs of
    containers are skipped and counted.
    """
    block: list[str] = []
    first = 1
    fences = line_marks.Fences()
    is_log = is_yaml = was_yaml = False
    for number, line in enumerate(lines, start=1):
        if is_log:
            mixture.log_lines += 1
            is_log = not _LOGS_END.match(line)
            first = number + 1
            continue
        if number > 1 and depths[number - 1] != depths[number - 2] and line.strip():
            yield first, block, False
            block, first = [], number
        if line.startswith("...") and pages.is_gap(lines, number, block):
            block.append(line)
            continue
        if _YAML_BORDER.match(line) or _LOGS_BEGIN.match(line):
            yield first, block, False
            block, first = [], number + 1
            is_log = bool(_LOGS_BEGIN.match(line))
            continue
        bare = line.removeprefix(fences.indent or "")
        # An indented mark within YAML belongs to a text field, such as a README.
        pieces = [bare] if is_yaml and _IN_A_FIELD.match(bare) else fences.cut(line)
        for piece in pieces:
            if piece is None:
                yield first, block, False
                block, first, is_yaml, was_yaml = [], number + 1, False, False
            else:
                first = number if not block else first
                block.append(piece)
                if piece.strip():
                    goes_on = is_yaml and yaml_blocks.GOES_ON.match(piece)
                    was_yaml = is_yaml and bool("".join(block[-2:-1]).strip())
                    is_yaml = bool(goes_on or _YAML_BEGIN.match(piece))
    yield first, block, (is_yaml or was_yaml) and fences.indent is not None


class _Block:
    """A reader that walks through one block of lines from the top."""

    def __init__(
        self,
        lines: list[str],
        first: int,
        place: str,
        limits: ImportLimits,
        mixture: Mixture,
        schemas: Schemas | None,
        commands: Commands,
    ) -> None:
        self._lines = lines
        self._commands = commands
        self._schemas = schemas
        self._first = first
        self._place = place
        self._limits = limits
        self._mixture = mixture
        self._at = 0
        self._text: str | None = None
        self._starts: list[int] = []
        self._wasted = 0

    def read(self) -> None:
        """Add the documents of the block to the mixture."""
        while self._at < len(self._lines):
            line = self._lines[self._at]
            if not line.strip():
                self._at += 1
            elif not (
                self._python()
                or self._table()
                or self._json(line)
                or self._kyaml(line)
                or self._yaml(line)
                or self._indented()
                or self._printed()
            ):
                if texts.WAS_CUT.match(line):
                    self._damage("the text says that a part was cut off here")
                if line_documents.begins_applied(line):
                    self._damage(line_documents.AROUND_APPLIED)
                number = self._first + self._at
                if problem := printed.problem(self._lines, self._at, self._commands, number):
                    self._damage(problem)
                self._commands.note(line, number)
                self._mixture.text_lines += 1
                self._at += 1

    def _json(self, line: str) -> bool:
        bare = line.lstrip(" \t")
        if self._wasted >= WASTED_MAX or line_documents.is_applied(self._lines, self._at):
            return False
        if _JSON_LINE.match(bare) and not line_documents.is_wrapped(bare):
            return self._document(line, len(line) - len(bare))
        if (column := line_documents.result_in(line)) is not None:
            return self._document(line, column)
        if line_documents.opens(self._lines, self._at):
            return self._document(line, len(line) - 1, is_tried=True)
        if not any(mark in line for mark in _MARKS):
            return False
        if line_documents.is_record(line):
            return self._record(line)
        begin = line_documents.json_in(line)
        return (begin is not None and self._document(line, begin)) or self._quoted(line)

    def _record(self, line: str) -> bool:
        """Reads a record of a collector: JSON in one of its texts, or the record itself."""
        at, column = self._at, line_documents.json_in_record(line)
        if column is not None and self._document(line, column, is_tried=True):
            self._at = max(self._at, at + 1)
            return True
        if self._quoted(line):
            return True
        try:
            value = line_documents.record(line)
        except (ValueError, RecursionError) as problem:
            if '"kind"' in line or "auditID" in line:
                self._damage(f"it is no record that can be read: {problem}")
            return False
        number = self._first + self._at
        json_text.check_depth(value, f"{self._place}:{number}", self._limits)
        self._take(number, value)
        self._at += 1
        return True

    def _quoted(self, line: str) -> bool:
        number = self._first + self._at
        values = list(line_documents.quoted(line))
        if not values and (what := line_documents.cut_off(line)):
            self._damage(f"{what} breaks off here")
        for value in values:
            json_text.check_depth(value, f"{self._place}:{number}", self._limits)
            self._take(number, value)
        self._at += bool(values)
        return bool(values)

    def _document(self, line: str, column: int, *, is_tried: bool = False) -> bool:
        text, start = self._whole(self._at, column)
        if not _JSON_BEGIN.match(text, start):
            return False
        try:
            value, end = _decoder.raw_decode(text, start)
        except (ValueError, RecursionError) as problem:
            end = getattr(problem, "pos", start)
            # The library counts all lines before the error to report its position.
            self._wasted += end - start + end // 100
            if isinstance(problem, RecursionError):
                raise BoundReached(
                    f"nested deeper than {self._limits.depth_max}",
                    place=f"{self._place}:{self._first + self._at}",
                    cure="flatten it",
                ) from problem
            is_open = not line[:column].strip() and line.rstrip().endswith(("{", "[", ","))
            if is_tried or not (is_open or '"kind"' in line or '"apiVersion"' in line):
                return False
            if self._broken(text, start):
                return True
            self._damage(f"it is not JSON: {json_text.reason(problem, self._first)}")
            return False
        if not isinstance(value, dict | list) or not value:
            return False
        number = self._first + self._at
        json_text.check_depth(value, f"{self._place}:{number}", self._limits)
        # A tool writes the command that it ran, in a line of JSON above the output.
        self._commands.note(line, number)
        self._take(number, value, text[start:end])
        self._pass(end)
        return True

    def _python(self) -> bool:
        text, end = python_values.text_at(self._lines, self._at)
        number = self._first + self._at
        try:
            if text:
                self._take(number, python_values.value(text, self._place, number, self._limits))
        except ValueError as problem:
            self._damage(str(problem))
        self._at = end
        return bool(text)

    def _table(self) -> bool:
        """Reads the rows of a table of audit events with commas, as consoles export it."""
        rows = tables.rows_in_text(self._lines, self._at, self._limits.document_bytes_max)
        for at, tree in rows:
            self._take(self._first + at, tree)
        self._at = rows[-1][0] + 1 if rows else self._at
        return bool(rows)

    def _broken(self, text: str, start: int) -> bool:
        """Reads a document whose lines a terminal has broken, or one with comments."""
        self._wasted += len(text) - start
        whole = broken_lines.json_document(text, start) or json_text.uncommented(text, start)
        if whole is None:
            return False
        try:
            value = _decoder.decode(whole.text)
        except (ValueError, RecursionError):
            return False
        number = self._first + self._at
        json_text.check_depth(value, f"{self._place}:{number}", self._limits)
        self._mixture.joined_lines += whole.breaks
        for at in whole.left_out:
            self._damage(descriptions.LEFT_OUT, self._at + text.count("\n", start, at))
        self._take(number, value, whole.text)
        self._pass(whole.end)
        return True

    def _whole(self, line: int, column: int) -> tuple[str, int]:
        if self._text is None:
            self._text = "\n".join(self._lines)
            at = 0
            for each in self._lines:
                self._starts.append(at)
                at += len(each) + 1
        return self._text, self._starts[line] + column

    def _pass(self, end: int) -> None:
        """Continue behind the character at `end`; the rest of its line is read again."""
        text, _ = self._whole(self._at, 0)
        while self._at < len(self._lines) and (
            self._starts[self._at] + len(self._lines[self._at]) <= end
        ):
            self._at += 1
        if self._at < len(self._lines) and self._starts[self._at] < end:
            rest = text[end : self._starts[self._at] + len(self._lines[self._at])]
            self._lines[self._at] = " " * (end - self._starts[self._at]) + rest

    def _yaml(self, line: str) -> bool:
        if not _YAML_BEGIN.match(line):
            return False
        end = yaml_blocks.end(self._lines, self._at)
        number = self._first + self._at
        lines = yaml_blocks.level(self._lines[self._at : end])
        # Where another object begins, no line was broken.
        is_last = end == len(self._lines) or not yaml_blocks.goes_on(self._lines[end])
        whole = broken_lines.yaml_document(self._lines, self._at, end, yaml_blocks.goes_on)
        if is_last and whole is not None:
            lines, end = whole.text.split("\n"), whole.end
            if whole.is_certain:
                self._mixture.joined_lines += whole.breaks
            else:
                self._damage("a terminal broke its lines, and it is not certain where")
                lines = []
        elif is_last and broken_lines.may_go_on(self._lines, self._at, end):
            self._damage("a terminal may have broken the last line of this document", end - 1)
        elif is_last and yaml_blocks.is_interrupted(self._lines, end):
            self._damage(yaml_blocks.INTERRUPTED, end)
        for line_number, value in self._values(lines, number) if lines else ():
            self._take(line_number, value)
        self._at = end
        return True

    def _kyaml(self, line: str) -> bool:
        """Reads an object in the style of JSON with bare names, as `kubectl -o kyaml` prints it."""
        end = yaml_blocks.kyaml_end(self._lines, self._at)
        if end < 0:
            self._damage("an object in KYAML breaks off here")
        if end <= 0:
            return False
        number = self._first + self._at
        lines, gaps = yaml_blocks.without_gaps(self._lines[self._at : end])
        for at in gaps:
            self._damage(descriptions.LEFT_OUT, self._at + at)
        for line_number, value in self._values(lines, number):
            self._take(line_number, value)
        self._at = end
        return True

    def _indented(self) -> bool:
        """Reads an indented YAML document that forms its own paragraph."""
        lines, length = yaml_blocks.indented(self._lines, self._at)
        number = self._first + self._at
        for line_number, value in self._values(lines, number) if lines else ():
            self._take(line_number, value)
        self._at += length
        return bool(lines)

    def _values(self, lines: list[str], number: int) -> list[tuple[int, Any]]:
        """The documents of these lines.

        Lines that cannot be read as they are, are read again without the dots that replace omitted
        content, and a list is read item by item. The omitted or unreadable content is reported as
        damaged.
        """
        try:
            return [self._uncut(at, value, lines) for at, value in self._parsed(lines, number)]
        except BoundReached:
            raise
        except InputError as problem:
            bare = ["" if yaml_blocks.ELLIPSIS.match(line) else line for line in lines]
            if bare != lines:
                dots = next(at for at, line in enumerate(lines) if yaml_blocks.ELLIPSIS.match(line))
                self._damage(descriptions.LEFT_OUT, number - self._first + dots)
                return self._values(bare, number)
            items = yaml_blocks.items(lines)
            if len(items) < ITEMS_TAKEN_APART_MIN:
                self._mixture.damaged.append(problem)
                return []
            return [value for first, item in items for value in self._values(item, number + first)]

    def _parsed(self, lines: list[str], number: int) -> list[tuple[int, Any]]:
        content = "\n".join(lines).encode("utf-8", "replace")
        parsed = yaml_documents.parse_documents(
            content, self._place, self._limits, first_line=number
        )
        return [(number, value) for _, value in parsed]

    def _uncut(self, number: int, value: Any, lines: list[str]) -> tuple[int, Any]:
        if texts.is_cut_list(value):
            items = value["items"]
            last = number - self._first + yaml_blocks.items(lines)[-1][0]
            self._damage(texts.CUT_LIST if len(items) > 1 else texts.CUT_ITEM, last)
            value = {**value, "items": items[:-1] or items}
        dots = [at for at, line in enumerate(lines) if yaml_blocks.ELLIPSIS.match(line)]
        if dots and yaml_blocks.has_dots(value):
            self._damage(descriptions.LEFT_OUT, number - self._first + dots[0])
            value = yaml_blocks.without_dots(value)
        return number, value

    def _printed(self) -> bool:
        number = self._first + self._at
        printout = printed.parse(self._lines, self._at, self._schemas, self._commands, number)
        if not printout.lines:
            return False
        for tree in printout.objects:
            self._take(number, tree, is_printed=True)
        for at, problem in printout.damage:
            self._damage(problem, self._at + at)
        self._at += printout.lines
        return True

    def _take(self, line: int, value: Any, text: str = "", *, is_printed: bool = False) -> None:
        """Keep a document, with the JSON text of it; of an array, keep each item as a document."""
        repeated = json_text.repeated_keys(text.encode(), value) if text else ()
        if isinstance(value, list) and value and all(isinstance(item, str) for item in value):
            value = {"texts": value}
        for item in envelopes.answer_rows(value) or json_text.items_of(value):
            if not isinstance(item, dict):
                continue
            try:
                item = python_values.served(item)
                content = json_text.encode(item)
            except InputError as problem:
                self._damage(problem.problem)
                continue
            self._mixture.parts.append(Part(line, item, content, is_printed, repeated))
            repeated = ()

    def _damage(self, problem: str, at: int | None = None) -> None:
        place = f"{self._place}:{self._first + (self._at if at is None else at)}"
        cure = foreign.CURES.get(problem, "")
        self._mixture.damaged.append(InputError(problem, place=place, cure=cure))
