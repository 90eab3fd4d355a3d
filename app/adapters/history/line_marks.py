"""The marks that programs add to the lines of a text, and their removal.

Terminals add colours and links, viewers add line numbers, emails quote lines, and a diff puts a
plus sign before each line of a new file. No line is removed, so that line numbers stay correct.
"""

import codecs
import re
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import islice

TWICE_ENDED = b"\r\r\n"
"""The end of a line of Windows that went through another change of line ends."""

_LINE_END = re.compile(r"(?<!\r)\r+\n")
_COLOURS = re.compile(
    r"\x1b(?:\[[0-9;:?]*[ -/]*[@-~]|\][^\x07\x1b]*(?:\x07|\x1b\\)|[()][A-Z0-9]|[=>78cM])"
)
_UNSEEN = "\u200b\u200c\u200d\u2060\ufeff"
_BLANK = re.compile(r"[ \t\xa0]+")
_SET_BLANK = re.compile(
    r"(?:-\xa0)*(?:[\"\u201c\u201d][^\"\u201c\u201d]*[\"\u201c\u201d]|[\w./-]+):\xa0|[-$#]\xa0"
    r"|[^\"\u201c\u201d\xa0]+\xa0\xa0"
)
"""A no-break space behind a name, a dash or a prompt, and several between columns."""

_SET_QUOTES = re.compile(
    r"((?:^|[{\[,:]|- )\s*)[\u201c\u201d]((?:[^\\\u201c\u201d]|\\.)*)[\u201c\u201d]"
    r"(?=\s*(?:[:,}\]]|$))"
)
"""A text in typographic quotes where JSON and YAML have quotes: around a name or value."""
_TYPOGRAPHIC = re.compile("[\u201c\u201d]")
_OWN_QUOTES = re.compile(r"[ \t]*(?:- )*(?:[\w./-]+:[ \t]+)?[\"{\[]")
"""The beginning of a line whose value is in quotes: others in it are a part of the value."""

_QUOTED = re.compile(r"(?:> ?)+")
_NUMBERED = re.compile(r"[ \t]*(?P<number>\d+)(?: *[\u2502|] ?|\t)")
_COUNTED = re.compile(r"[ \t]*(?P<number>\d+)(?::|(?= )|$)")
"""A number that pagers, editors and filters write: with blanks behind it, or a colon."""
_WINDOWS = "redra-windows-1252"
UTF16_SEEN = 64
"""Bytes of a text without a byte order mark that are checked for its encoding."""

UTF16_MIN = 8
"""The least number of letters for which a text without a byte order mark is taken for UTF-16."""

MARKS_MAX = 16
"""Fence marks that are examined in one line."""

NUMBERED_MIN = 3
"""The least number of consecutively numbered lines whose numbers are attributed to a viewer."""

_PAGER = r"(?:--More--|-- More --|<--- More --->)(?: ?\(\d{1,3}%\))?"
_OVERWRITTEN = re.compile(rf"{_PAGER}(?= *[\r\b])[ \r\b]*(?:[\r\b]|$)")
"""The mark of a pager that it has overwritten with the line behind it."""

_PAUSE = re.compile(rf"(?:{_PAGER}|:)[ \t]*")
_GOES_ON = re.compile(r"[ \t]+\S|- |[a-z]\w*:(?:\s|$)|[}\]],?$")
_GOES_ON_BELOW = re.compile(r"[ \t]+\S")
"""A line within a document, directly below a mark, and below empty lines."""

FRAMED_MIN = 3
"""The least number of consecutive lines between bars that are attributed to a frame."""

_BARS = "\u2502\u2503\u2551"
STAMPED_MIN = 3
"""The least number of consecutive lines whose beginnings are attributed to a program."""

_STAMP = re.compile(
    r"(?:(?P<pipe>[\w.-]{1,100} {0,40}\|)"
    r"|\[?\d{4}-\d\d-\d\d[T ]\d\d:\d\d:\d\d(?:[.,]\d{1,9})?(?:Z|[+-]\d\d:?\d\d)?\]?"
    r"(?: (?:stdout|stderr) F)?"
    r"|[A-Z][a-z]{2} [ \d]\d \d\d:\d\d:\d\d \S{1,253} [\w@./-]{1,100}\[\d+\]:"
    r"|[A-Z][a-z]{2} [ \d]\d \d\d:\d\d:\d\d|[IWE]\d{4} \d\d:\d\d:\d\d\.\d{3}\]"
    r"|\[pod/[^\]\s]{1,300}\]|\[[\w.-]{1,100} : [\w.-]{1,100}\])(?: |$)"
)
_SHOWN = re.compile(
    r"(?:- )?(?:apiVersion|kind): \S|\{\s*$|(?:NAME|NAMESPACE|LAST ?SEEN|EVENT)\s{2,}|Name:\s{2,}"
)
"""The beginning of what somebody prints into a log on purpose: an object, a table or a page."""

_OF_STREAM = re.compile(r"(?P<name>data|event|id|retry|):(?: |$|(?=[\w{\[]))")
_SENT = re.compile(r"\{\s*(?:\"|$)|\[")
"""The beginning of JSON, which a server may send as the data of an event."""

_NEW_OBJECT = re.compile(r"""\+(?:- )?(?:(?:apiVersion|kind|metadata|items):|\{\s*$|\{\s*")""")
_FENCE = re.compile(r"[ \t>]*(?:```|~~~)")
_MARK = re.compile(
    r"(?P<fence>```+|~~~+)|\{(?P<jira>code|noformat)(?::[^}\n]{0,200})?\}|(?P<xml><!\[CDATA\[|\]\]>)"
    r"|(?P<pre><pre(?:\s[^<>\n]{0,200})?>(?:<code(?:\s[^<>\n]{0,200})?>)?|(?:</code>)?</pre>)"
    r"|(?P<forum>\[/?code(?:=[^\]\n]{0,40})?\])|(?P<tick>(?<!`)`(?!`))"
)
_KINDS_OF_MARKS = ("xml", "pre", "fence", "forum", "tick")
_IN_A_TEXT = re.compile(r"""["']$|\\[nrt]$""")
"""The text before a mark that lies within a string of JSON or YAML."""

_BEFORE_A_MARK = re.compile(r"[ \t]*(?:(?:[-*+]|\d{1,9}[.)])[ \t]+)?")
_DOCUMENT = re.compile(
    r"""\s*(?:(?:- )?(?:apiVersion|kind|metadata|items):\s|\{\s*(?:"|$)|\[\s*[{"])"""
    r"|(?:[\w.@:~/-]{0,80}[$#>] +)?(?:kubectl|oc) "
    r"|(?:NAMESPACE +)?NAME {2,}[A-Z]|LAST ?SEEN {2,}(?:TYPE|FIRST ?SEEN) |Name: {2,}\S"
)
"""The content of a fence whose marks touch it, rather than the language of a fence."""

_WOULD_BE = re.compile(r"\+\+\+ \S*/MERGED-\d")
"""The heading of `kubectl diff` for the object that an apply would make."""

HEADINGS_MAX = 4
"""Lines above the added lines of a file that may be its headings."""

_HEADINGS = ("@@", "+++", "---", "diff ", "index ", "new file ", "\\ ", "-- ")


def utf16(head: bytes) -> str:
    """The encoding of a text in UTF-16, by its byte order mark or its zero bytes; else empty."""
    for mark, name in ((b"\xff\xfe", "utf-16-le"), (b"\xfe\xff", "utf-16-be")):
        if head.startswith(mark):
            return name
    for at, name in ((1, "utf-16-le"), (0, "utf-16-be")):
        zeros, letters = head[at:UTF16_SEEN:2], head[1 - at : UTF16_SEEN : 2]
        if len(zeros) >= UTF16_MIN and not any(zeros) and 0 not in letters:
            return name
    return ""


def decoded(content: bytes) -> str:
    """The decoded text: UTF-16 when the byte order mark or the zeros indicate it, else UTF-8.

    Bytes that are not UTF-8 are taken for Windows-1252, as editors of Windows write texts.
    """
    if encoding := utf16(content):
        return _LINE_END.sub("\n", content.decode(encoding, "replace").removeprefix("\ufeff"))
    return _LINE_END.sub("\n", content.removeprefix(b"\xef\xbb\xbf").decode("utf-8", _WINDOWS))


def is_utf8(content: bytes) -> bool:
    """False for a text with bytes that are read as Windows-1252."""
    try:
        content.decode()
    except UnicodeDecodeError:
        return False
    return True


def _as_windows(problem: UnicodeError) -> tuple[str, int]:
    if not isinstance(problem, UnicodeDecodeError):
        raise problem
    return problem.object[problem.start : problem.end].decode("cp1252", "replace"), problem.end


def is_set(head: bytes) -> bool:
    """True for a text whose only double quotes are typographic ones where YAML has quotes."""
    if b'"' in head or "\u201d".encode() not in head:
        return False
    return any(_SET_QUOTES.search(line) for line in decoded(head).split("\n"))


def uncoloured(line: str) -> str:
    """The line without terminal escape sequences."""
    return _COLOURS.sub("", line) if "\x1b" in line else line


def without_zero_width(line: str) -> str:
    """The line without zero-width characters at its ends, as word processors leave them."""
    return line.strip(_UNSEEN) if line[:1] in _UNSEEN or line[-1:] in _UNSEEN else line


def plain(line: str) -> str:
    """The line without terminal colours and without typographic quotes and spaces.

    Chats and word processors replace the quotes of a field by “ and ”, and indentation, or all
    spaces of a line, by no-break spaces. Other ones within a text stay as they are.
    """
    line = without_zero_width(uncoloured(line))
    begin = _BLANK.match(line)
    if begin is not None:
        line = begin.group().replace("\xa0", " ") + line[begin.end() :]
    if "\xa0" in line and " " not in line.lstrip(" ") and _SET_BLANK.match(line.lstrip(" ")):
        # Whatever put them there has left no other space: those within texts are of it, too.
        line = line.replace("\xa0", " ")
    if "\u201c" in line or "\u201d" in line:
        line = _SET_QUOTES.sub(_in_plain_quotes, line)
    return line


def plain_lines(lines: list[str]) -> list[str]:
    """The lines as `plain` gives them.

    Where they have no double quotes but typographic ones, some around values, whatever set those
    has set all, also within a value that has none around it.
    """
    bare = [plain(line) for line in lines]
    if any('"' in line for line in lines) or not any('"' in line for line in bare):
        return bare
    return [line if _OWN_QUOTES.match(line) else _TYPOGRAPHIC.sub('"', line) for line in bare]


def _in_plain_quotes(match: re.Match[str]) -> str:
    text = re.sub("\\\\[\u201c\u201d]", '\\\\"', match.group(2))
    return f'{match.group(1)}"{text}"'


def unquoted(lines: list[str]) -> tuple[list[str], list[int]]:
    """The lines without the quote marks of emails, and the quoting depth of each line."""
    out: list[str] = []
    depths: list[int] = []
    for line in lines:
        match = _QUOTED.match(line)
        depths.append(0 if match is None else match.group().count(">"))
        out.append(line if match is None else line[match.end() :])
    return out, depths


def unnumbered(lines: list[str]) -> list[str]:
    """The lines without the consecutive line numbers that viewers add."""
    out = list(lines)
    for at, end, begins in _counted(lines, _NUMBERED):
        if end - at >= NUMBERED_MIN:
            out[at:end] = [line[begin:] for line, begin in zip(lines[at:end], begins, strict=True)]
    for at, end, begins in _counted(out, _COUNTED):
        bare = [line[begin:] for line, begin in zip(out[at:end], begins, strict=True)]
        # The least gap is that of the numbers; the rest of a wider one sets the line in.
        gap = min((len(line) - len(line.lstrip(" ")) for line in bare if line.strip()), default=0)
        bare = [line[gap:] for line in bare]
        if end - at >= NUMBERED_MIN and any(_SHOWN.match(line) for line in bare):
            out[at:end] = bare
    return out


def unframed(lines: list[str]) -> list[str]:
    """The lines without the frame that a terminal program draws around a page or an object.

    Where a line reaches the right side of its frame, the program may have cut it, so all stay text.
    """
    out = list(lines)
    at = 0
    while at < len(lines):
        end, texts = at, list[str]()
        while end < len(lines) and (text := _in_frame(lines[end])) is not None:
            texts.append(text)
            end += 1
        if all(text[:1] in ("", " ") for text in texts):
            texts = [text[1:] for text in texts]
        is_shown = any(_SHOWN.match(text) for text in texts)
        if len(texts) >= FRAMED_MIN and is_shown and all(text[-1:] == " " for text in texts):
            out[at:end] = [text.rstrip() for text in texts]
        at = max(end, at + 1)
    return out


def _in_frame(line: str) -> str | None:
    """The text between two bars; None for other lines, such as those of tables."""
    text = line.strip()
    if len(text) < FRAMED_MIN or text[0] not in _BARS or text[-1] not in _BARS:
        return None
    return None if any(bar in text[1:-1] for bar in _BARS) else text[1:-1]


def unstamped(lines: list[str]) -> list[str]:
    """The lines without the times and names that a runtime or a job writes before each line.

    Only lines with an object, a table or a description among them lose these beginnings.
    """
    out = list(lines)
    at = 0
    while at < len(lines):
        end, begins, pipe = at, list[int](), ""
        while end < len(lines) and (match := _STAMP.match(lines[end])) is not None:
            if begins and (match["pipe"] or "") != pipe:
                break
            pipe = match["pipe"] or ""
            begins.append(match.end())
            end += 1
        bare = [line[begin:] for line, begin in zip(lines[at:end], begins, strict=True)]
        if len(bare) >= STAMPED_MIN and any(_SHOWN.match(line) for line in bare):
            out[at:end] = bare
        at = max(end, at + 1)
    return out


def begins_shown(line: str) -> bool:
    """True for the first line of an object, a table or a description."""
    return _SHOWN.match(line) is not None


def unstreamed(lines: list[str]) -> list[str]:
    """The lines, of the events that a server sends (text/event-stream) only their data in JSON.

    event: ADDED
    data: {"type": "ADDED", "object": …}
    """
    out = list(lines)
    at = 0
    while at < len(lines):
        end, matches = at, list[re.Match[str]]()
        while end < len(lines) and (match := _OF_STREAM.match(lines[end])) is not None:
            matches.append(match)
            end += 1
        is_paragraph = (not at or not lines[at - 1].strip()) and not "".join(lines[end : end + 1])
        data = [match.string[match.end() :] if match["name"] == "data" else "" for match in matches]
        if is_paragraph and _SENT.match("\n".join(data).lstrip("\n")):
            out[at:end] = data
        at = max(end, at + 1)
    return out


def _counted(lines: list[str], pattern: re.Pattern[str]) -> Iterator[tuple[int, int, list[int]]]:
    """Runs of consecutively numbered lines, with the column after the number of each line."""
    begin, last, begins = 0, -1, list[int]()
    for at, line in enumerate(lines):
        match = pattern.match(line)
        number = -1 if match is None else int(match["number"])
        if match is None or number != last + 1 or not begins:
            if begins:
                yield begin, at, begins
            begin, begins = at, []
        if match is not None:
            begins.append(match.end())
        last = number
    if begins:
        yield begin, len(lines), begins


def unpaged(lines: list[str]) -> list[str]:
    """The lines without the marks of a pager that waited within a document.

    Its lines below them move up, so that no text within it gets a line more. Empty lines behind the
    document make up for it. A mark behind which nothing goes on stays: there the text was cut off.
    """
    out: list[str] = []
    moved = 0
    for at, line in enumerate(lines):
        if _PAUSE.fullmatch(line) and _goes_on(lines, at + 1):
            moved += 1
            continue
        bare = _OVERWRITTEN.sub("", line, count=1) if line[:1] in "-<" else line
        if moved and bare.strip() and not _GOES_ON.match(bare):
            is_border = bare.startswith("---")
            empty = [""] * moved
            out += [bare, *empty] if is_border else [*empty, bare]
            moved = 0
        else:
            out.append(bare)
    return out


def _goes_on(lines: list[str], at: int) -> bool:
    following = next((each for each in islice(lines, at, None) if each.strip()), "")
    is_next = at < len(lines) and following == lines[at]
    begin = _GOES_ON.match(following) if is_next else _GOES_ON_BELOW.match(following)
    return begin is not None


def without_additions(lines: list[str]) -> list[str]:
    """The lines, without the plus signs of a diff where it adds whole documents.

    Only a run of added lines without context lines around it is a whole document; between context
    lines it would be a part of one.
    """
    out = list(lines)
    at = 0
    while at < len(lines):
        end = at
        while end < len(lines) and lines[end].startswith("+") and lines[end][:4] != "+++ ":
            end += 1
        if end > at and _is_new_file(lines, at, end):
            out[at:end] = [line[1:] for line in lines[at:end]]
        at = max(end, at + 1)
    return out


def _is_new_file(lines: list[str], at: int, end: int) -> bool:
    if not any(_NEW_OBJECT.match(line) for line in lines[at:end]):
        return False
    if any(_WOULD_BE.match(line) for line in lines[max(0, at - HEADINGS_MAX) : at]):
        return False
    before = lines[at - 1] if at else ""
    after = lines[end] if end < len(lines) else ""
    return all(
        not line.strip() or _FENCE.match(line) is not None or line.startswith(_HEADINGS)
        for line in (before, after)
    )


@dataclass(slots=True)
class Fences:
    """The state of fences: of Markdown, the macros of Jira, CDATA of Confluence, code of HTML.

    In chats the marks directly precede and follow the pasted text; in forums they are `[code]`. A
    single backtick is one only directly before an object, a table or a page that it does not end.
    """

    indent: str | None = None
    """The indentation of the lines of the open fence; None when no fence is open."""
    _kind: str = ""
    _is_forum: bool = False

    def cut(self, line: str) -> Iterator[str | None]:
        """The pieces of a line, with None where a fence begins or ends."""
        at = 0
        for match in islice(_MARK.finditer(line), MARKS_MAX):
            kind = match["jira"] or next(each for each in _KINDS_OF_MARKS if match[each])
            before, after = line[at : match.start()], line[match.end() :]
            if match["forum"]:
                if self.indent is not None or not self._is_border(before, after, match.group()):
                    continue
                if before.strip():
                    yield before
            elif self.indent is None:
                is_end = match.group().endswith(("]]>", "</pre>"))
                if is_end or not self._begins(before, after, match):
                    continue
                if before.strip(" \t>-*+.)0123456789"):
                    yield before
                plain = _BEFORE_A_MARK.fullmatch(before)
                self.indent = "" if plain is None or at else " " * len(before)
                if plain is not None and before.isspace():
                    self.indent = before
                self._kind = kind
            elif not self._ends(before, after, match, kind):
                continue
            else:
                if before.strip():
                    yield before.removeprefix(self.indent)
                is_anew = bool(match["fence"] and after.strip() and not before.strip())
                self.indent = before if is_anew else None
            yield None
            at = match.end()
            if self.indent is not None and _DOCUMENT.match(after) is None:
                return
        rest = line[at:]
        if rest.strip() or not at:
            yield rest.removeprefix(self.indent) if self.indent and not at else rest

    def _is_border(self, before: str, after: str, mark: str) -> bool:
        """True for a mark of a forum: other fences may stand between two of them."""
        is_end = mark == "[/code]"
        is_border = self._is_forum
        if not is_end:
            is_border = not before.strip() or _DOCUMENT.match(after) is not None
        self._is_forum = is_border and not is_end
        return is_border

    def _begins(self, before: str, after: str, match: re.Match[str]) -> bool:
        is_first = _BEFORE_A_MARK.fullmatch(before) is not None
        if match["tick"]:
            return is_first and "`" not in after and _SHOWN.match(after) is not None
        if is_first and match["fence"] and match["fence"] in after:
            # Code within a line is not a fence, unless it holds a document.
            is_first = False
        if not is_first and _IN_A_TEXT.search(before[-2:]):
            return False
        return is_first or _DOCUMENT.match(after) is not None

    def _ends(self, before: str, after: str, match: re.Match[str], kind: str) -> bool:
        if kind != self._kind or match["xml"] == "<![CDATA[":
            return False
        if match["pre"]:
            return match["pre"].endswith("</pre>")
        if match["tick"]:
            return not after.strip() and before.count("`") % 2 == 0
        return match["xml"] is not None or not before.strip() or not after.strip()


codecs.register_error(_WINDOWS, _as_windows)
