"""Lines of YAML in a text: their fields, the items of their list, and objects in KYAML.

{
  apiVersion: "v1",
  kind: "Pod",
}
"""

import re
from itertools import islice
from typing import Any

from app.domain.objects import registry

COMMENTS_MAX = 16
"""Lines below the bracket of an object that may be comments before its first field."""

GOES_ON = re.compile(r"""^(?:[ \t#]|$|- |-$|[a-z_$"'][\w.$/"'-]*:(?:\s|$))""")
"""Lines of a YAML document. Fields of objects do not begin with a capital; words of prose may."""

_GAP = r"\.\.\.|\u2026"
_GAP_WORD = "snip(?:ped)?|omitted|removed|truncated"
ELLIPSIS = re.compile(
    rf"^(?P<indent>[ \t]*)(?:- )?(?:{_GAP}|[\[<(] ?(?:{_GAP}|(?<=[ \t].)(?:{_GAP_WORD})) ?[\])>])"
    r"[ \t]*$",
    re.IGNORECASE,
)
"""A line of dots or a word in brackets, which stand for fields that somebody left out.

A word that is not set in stands behind a document, and says that the text was cut.
"""

_GAP_VALUE = re.compile(rf"{_GAP}|[<(] ?(?:{_GAP}|{_GAP_WORD}) ?[)>]", re.IGNORECASE)
_GAP_ITEM = re.compile(rf"{_GAP}|{_GAP_WORD}", re.IGNORECASE)
"""The value of a key whose content somebody replaced with such a line, and its text in a list."""

_INDENTED = re.compile(
    r"^(?P<indent> {2,}|\t+ *)(?:- )?(?:apiVersion|kind|metadata|items):(?:\s|$)"
)
_EXPECTED = re.compile(
    r"[ \t]*<(?P<several>\[\])?\*?"
    r"(?P<version>v\d{1,3}(?:(?:alpha|beta)\d{1,3})?)\.(?P<kind>[A-Z]\w{1,62}?)(?P<list>List)?"
    r"(?: \| (?:0x[0-9a-f]{1,16}|len:\d{1,9}(?:, cap:\d{1,9})?))?>:[ \t]*"
)
"""The type that a test in Go shows above an object, or several, which are not as it expects."""

INTERRUPTED = "a document breaks off before this line, and a part of it may stand below"

_SET_IN_FIELD = re.compile(r"""[ \t]+(?:- )*["']?[a-z][\w./-]*["']?:(?:\s|$)""")
_HEADING = re.compile(r".*:\s*$")
"""A line of text whose own content may be set in below it."""

_WORD_FIELD = re.compile(r"(?:apiVersion|kind):[ \t]+[\w./\"'-]+[ \t]*$")
_TITLES = r"(?:(?:NAMESPACE {2,})?NAME {2,}[A-Z]|LAST SEEN {2,}[A-Z]|Type {2,}Reason {2,})"
_SHOWN_IN_COMMENT = re.compile(rf"#[ \t]*(?:\$ (?:kubectl|oc|k) |{_TITLES})")
"""A command of kubectl in a comment, and the titles of what it prints."""

_SHOWN_COMMENTS = re.compile(rf"^#[ \t]*{_TITLES}".encode(), re.MULTILINE)
_HUNK = re.compile(r"^@@ -\d")
_HOLDER = re.compile(r"\s+(?:items|resources|result):\s*$")
"""The key of whole objects in a result that a program shows as YAML, such as one of Ansible."""

_OBJECT = re.compile(r"(?:apiVersion|kind):(?=\s|$)")
_LOGGED = re.compile(r"\s*(?:\S.{0,64}?)?\b\d\d:\d\d:\d\d\.\d{3}")
"""The beginning of a line of a log, with its time."""

_ITEM = re.compile(r"^(?P<indent> *)- (?:apiVersion|kind|metadata|type):")
_KYAML_FIELD = re.compile(r"\s+(?:apiVersion|kind|metadata|items|spec): ")


_DEEPER = r"\[(?:Object|Array)\]"
_SHORTENED = re.compile(
    rf"(?:'[^']*'|(?<![\w.$/-])[\w.$/-]+): (?:\[ {_DEEPER}(?:, {_DEEPER})* \]|{_DEEPER})(?:, ?)?"
    r"|(?:^|,)\s*\.\.\. \d+ more \w+"
)
"""What Node.js shows in place of deeper objects, and of further items."""

_COMMENT = re.compile(r"^[ \t]*//[^\n]*$|(?<=[,{}\[\]])[ \t]*//[^'\"\n]*$")
_UNDEFINED = re.compile(r"(?:'[^']*'|(?<![\w.$/-])[\w.$/-]+): undefined(?:, ?)?")
_NODE_BEGIN = re.compile(rb"\s*\{[ \t\r]*\n\s+apiVersion: '")


def goes_on(line: str) -> bool:
    """True for a line that may continue a YAML document."""
    return bool(GOES_ON.match(line) or ELLIPSIS.match(line))


def has_shown_comments(content: bytes) -> bool:
    """True for YAML with output of kubectl in comments, which a reader of YAML passes over."""
    return _SHOWN_COMMENTS.search(content) is not None


def end(lines: list[str], at: int) -> int:
    """The index behind the YAML document that begins at a line.

    Comments behind its last field in which somebody shows what kubectl printed are not part of it.
    The first field of an object that occurs again on its level begins another object, as where yq
    or a shell put objects one behind the other without a line of `---`.
    """
    first = _OBJECT.match(lines[at])
    begin = at + 1
    while begin < len(lines) and goes_on(lines[begin]):
        if first is not None and lines[begin].startswith(first[0]):
            if fields(lines[at:begin]) >= {"apiVersion", "kind", "metadata"}:
                return begin
            first = None
        begin += 1
    last = begin
    while last > at + 1 and (not lines[last - 1].strip() or lines[last - 1].startswith("#")):
        last -= 1
    shown = (each for each in range(last, begin) if _SHOWN_IN_COMMENT.match(lines[each]))
    return next(shown, begin)


def is_interrupted(lines: list[str], end: int) -> bool:
    """Whether fields that are set in stand below the line of text that ends a document."""
    if end + 1 >= len(lines) or _HEADING.match(lines[end]):
        return False
    return _SET_IN_FIELD.match(lines[end + 1]) is not None


def indented(lines: list[str], at: int) -> tuple[list[str], int]:
    """The lines of an indented document that begins at a line, without its indentation.

    It forms its own paragraph, as code in Markdown does, or follows a line of a log or the key of a
    result. Parts of documents are indented as well, so only whole objects count, and none after a
    hunk header of a diff. Empty where none begins. The number is that of the lines in the text.
    """
    tested, length = _of_a_test(lines, at)
    if tested or not lines[at][:1].isspace():
        return tested, length
    begin = _INDENTED.match(lines[at])
    before = lines[at - 1] if at else ""
    if begin is None or (
        before.strip() and not _LOGGED.match(before) and not _HOLDER.match(before)
    ):
        return [], 0
    if any(_HUNK.match(before) for before in lines[:at]):
        return [], 0
    indent = begin["indent"]
    end = at + 1
    is_list = lines[at].startswith(f"{indent}- ")
    while end < len(lines) and (lines[end].startswith(indent) or not lines[end].strip()):
        if is_list and lines[end][len(indent) : len(indent) + 1] not in ("", " ", "-"):
            break
        end += 1
    document = [line.removeprefix(indent) for line in lines[at:end]]
    named = fields(document)
    is_whole = named >= {"apiVersion", "kind"} and named & {"metadata", "items"}
    return (document, len(document)) if is_whole else ([], 0)


def level(lines: list[str]) -> list[str]:
    """The lines of an object, without the indentation that all but the first have.

    apiVersion: v1      Who copies an object out of a page begins behind the indentation of its
        kind: Pod       first line. Nothing is set in below a field with a word, so such lines can
        metadata:       mean nothing else.
    """
    first = _WORD_FIELD.match(lines[0])
    below = [line for line in lines[1:] if line.strip()]
    begin = _INDENTED.match(below[0]) if first is not None and below else None
    if begin is None or not all(line.startswith(begin["indent"]) for line in below):
        return lines
    return [lines[0], *(line.removeprefix(begin["indent"]) for line in lines[1:])]


def _of_a_test(lines: list[str], at: int) -> tuple[list[str], int]:
    """The lines of an object below its type, which stands for the version and kind it leaves out.

    <*v1.Pod | 0xc003aa2908>:           <[]v1.Pod | len:2, cap:2>:
        metadata:                           - metadata:
          name: a                               name: a

    Several objects are a list, whose version and kind are in a line more than the text has.
    """
    head = _EXPECTED.fullmatch(lines[at])
    below = lines[at + 1] if at + 1 < len(lines) else ""
    indent = below[: len(below) - len(below.lstrip())]
    if head is None or not indent:
        return [], 0
    begin = "- metadata:" if head["several"] else "items:" if head["list"] else "metadata:"
    known = (kind for kind in registry.find_name(head["kind"]) if kind.kind == head["kind"])
    group = next((kind.group for kind in known), None)
    if group is None or not below.startswith(f"{indent}{begin}"):
        return [], 0
    end = at + 1
    while end < len(lines) and (lines[end].startswith(indent) or not lines[end].strip()):
        end += 1
    version = f"{group}/{head['version']}" if group else head["version"]
    is_list = head["several"] or head["list"]
    named = f"<<: {{apiVersion: {version}, kind: {head['kind']}{'List' if is_list else ''}}}"
    shown = [line.removeprefix(indent) for line in lines[at + 1 : end]]
    return (["items:", *shown, named] if head["several"] else [named, *shown]), end - at


def fields(lines: list[str]) -> set[str]:
    """The field names on the outermost level of a document, or of the items of a list."""
    level = "  " if lines[0].startswith("- ") else ""
    outer = [f"{level}{lines[0].removeprefix('- ')}", *lines[1:]]
    bare = [line.removeprefix(level) for line in outer if line.startswith(level)]
    return {line.partition(":")[0] for line in bare if line[:1].strip()}


def items(lines: list[str]) -> list[tuple[int, list[str]]]:
    """The items of the list in these lines, dash removed, each with its first line's index."""
    begin = next((at for at, line in enumerate(lines) if _ITEM.match(line)), None)
    if begin is None:
        return []
    match = _ITEM.match(lines[begin])
    indent = len(match["indent"]) if match is not None else 0
    starts = [
        at
        for at, line in enumerate(lines)
        if (item := _ITEM.match(line)) is not None and len(item["indent"]) == indent
    ]
    ends = [*starts[1:], len(lines)]
    for at in range(starts[-1] + 1, len(lines)):
        line = lines[at]
        if line.strip() and len(line) - len(line.lstrip(" ")) <= indent:
            ends[-1] = at
            break
    step = indent + 2
    return [
        (at, [" " * step + lines[at][step:], *lines[at + 1 : end]])
        for at, end in zip(starts, ends, strict=True)
    ]


def kyaml_end(lines: list[str], at: int) -> int:
    """The index behind an object in KYAML that begins at a line; 0 for none, -1 for a cut one.

    What is in the object has a larger indent, so a cut one ends before the next line that has not.
    """
    begin = lines[at].rstrip()
    below = islice(lines, at + 1, at + 1 + COMMENTS_MAX)
    following = next((line for line in below if not line.lstrip().startswith("//")), "")
    if begin.lstrip() != "{" or _KYAML_FIELD.match(following) is None:
        return 0
    close = begin.replace("{", "}")
    for number in range(at + 1, len(lines)):
        bare = lines[number].rstrip()
        if bare == close:
            return number + 1
        if bare and len(bare) - len(bare.lstrip()) < len(begin):
            # Behind its bracket, code of another language has a comma or more.
            return 0 if bare.startswith(close) else -1
    return -1


def without_gaps(lines: list[str]) -> tuple[list[str], list[int]]:
    """The lines of an object that Node.js shows, without what it shortens, and their indexes.

    A comment behind two slashes is one of JavaScript and JSON5.
    """
    bare = [_COMMENT.sub("", _UNDEFINED.sub("", line)) for line in lines]
    gaps = [at for at, line in enumerate(bare) if _SHORTENED.search(line)]
    for at in gaps:
        bare[at] = _SHORTENED.sub("", bare[at])
    return bare, gaps


def begins_in_node(head: bytes) -> bool:
    """True for the beginning of an object as Node.js shows it, which is YAML but for its gaps."""
    return _NODE_BEGIN.match(head) is not None


def has_dots(value: Any) -> bool:
    """Whether a field or an item of a document is the mark of a gap alone."""
    if isinstance(value, dict):
        return any(map(has_dots, value.values()))
    if isinstance(value, list):
        return _is_gap(value) or any(map(has_dots, value))
    return _is_gap(value)


def _is_gap(value: Any) -> bool:
    """True for the value that a line with a mark of a gap is, below a key with nothing else."""
    if isinstance(value, list) and len(value) == 1 and isinstance(value[0], str):
        return _GAP_ITEM.fullmatch(value[0]) is not None
    return isinstance(value, str) and _GAP_VALUE.fullmatch(value) is not None


def without_dots(value: Any) -> Any:
    """A document without the fields and items that are the mark of a gap alone."""
    if isinstance(value, dict):
        kept = {name: each for name, each in value.items() if not _is_gap(each)}
        return {name: without_dots(each) for name, each in kept.items()}
    if isinstance(value, list):
        return [without_dots(each) for each in value if not _is_gap(each)]
    return value
