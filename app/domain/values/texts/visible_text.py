"""Text as it is shown to people: characters that act on what is around them are spelt out.

Names, values and file names come from outside. A control character commands a terminal; a mark of
writing direction or an invisible character makes a text look like another one (Unicode Technical
Report 36, section 2). Every answer to a terminal and every page passes through here.
"""

import re

_ACTING = (
    r"\x00-\x08\x0b-\x1f\x7f-\x9f"
    r"\u00ad\u061c\u180e\u200b\u200e\u200f\u2028-\u202e\u2060-\u2064\u2066-\u206f\ufeff\ufff9-\ufffb"
    r"\U000e0001\U000e0020-\U000e007f"
)
"""Control characters except line ends and tabs, marks of direction, separators of lines, and
characters that take no room. The joiners U+200C and U+200D stay: words and emoji need them."""

_IN_TEXT = re.compile(f"[{_ACTING}]")
_IN_PAGES = re.compile(rf'value="[^"]*"|<textarea\b[^>]*>[^<]*</textarea>|[{_ACTING}]')


def visible(text: str) -> str:
    """The text with acting characters as escapes: `\\x1b`, `\\u202e`, `\\U000e0001`."""
    return _IN_TEXT.sub(lambda match: escape_of(match[0]), text)


def on_one_line(text: str) -> str:
    """The visible text with line ends and tabs as escapes, too."""
    return visible(text).replace("\n", "\\n").replace("\t", "\\t")


def visible_json(document: str) -> str:
    """The JSON document with acting characters as the escapes of JSON, so with the same values."""
    return _IN_TEXT.sub(lambda match: _json_escape_of(match[0]), document)


def visible_html(page: str) -> str:
    """The page with acting characters as escapes, except in the values of its forms.

    A form sends back what its fields hold; so these hold it unchanged. A line end of another system
    counts as a line end, as it does for HTML.
    """
    if _IN_TEXT.search(page) is None:
        return page
    page = page.replace("\r\n", "\n")
    return _IN_PAGES.sub(
        lambda match: escape_of(match[0]) if len(match[0]) == 1 else match[0], page
    )


def escape_of(character: str) -> str:
    """The escape of one character, as Go and Python write it."""
    code = ord(character)
    if code < 0x100:
        return f"\\x{code:02x}"
    return f"\\u{code:04x}" if code < 0x10000 else f"\\U{code:08x}"


def _json_escape_of(character: str) -> str:
    units = character.encode("utf-16-be")
    return "".join(
        f"\\u{int.from_bytes(units[at : at + 2], 'big'):04x}" for at in range(0, len(units), 2)
    )
