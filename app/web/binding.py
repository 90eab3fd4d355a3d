"""Several pages bound into one file: links among them become places in it, all others plain text.

A page's content is taken as it is. What needs a server is left out: forms, links to pages that are
not bound, script. The file then needs nothing: no server, no script, no other file.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from html.parser import HTMLParser
from urllib.parse import parse_qsl, urlsplit

from markupsafe import Markup, escape

_LEFT_OUT = frozenset(("form", "nav", "script", "template"))
_KEPT_AS_TEXT = frozenset(("object", "revision", "moment-link"))
"""Classes of links whose text is worth reading where they lead nowhere."""

_LOWER = {"h1": "h2", "h2": "h3", "h3": "h4", "h4": "h5"}
_OF_OBJECTS = ("why", "object")


@dataclass(frozen=True, slots=True, kw_only=True)
class Sheet:
    """One page: where it is served, what it is called, and its HTML."""

    url: str
    title: str
    html: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Bound:
    """A sheet within the file: the name of its place, its title and what is in it."""

    anchor: str
    title: str
    content: Markup


@dataclass(frozen=True, slots=True)
class _Address:
    """What a URL names: the page and its subject, and the moment."""

    part: str
    moment: str
    subject: tuple[tuple[str, str], ...]


@dataclass(slots=True, kw_only=True)
class _Places:
    """Where each sheet is in the file: by its URL, and by what it shows at any moment."""

    exact: dict[str, str] = field(default_factory=dict)
    shown: dict[tuple[str, tuple[tuple[str, str], ...]], str] = field(default_factory=dict)
    rows: frozenset[str] = frozenset()

    def find(self, url: str, here: _Address) -> str:
        """The place of a link on a sheet; empty when there is none in the file."""
        if url.startswith("#"):
            return ""
        if url in self.exact:
            return self.exact[url]
        there = _address(url)
        if there is None:
            return ""
        if (there.part, there.subject) == (here.part, here.subject):
            # The same page as of another moment: what happened then is on the timeline.
            row = f"r{there.moment}"
            return row if row in self.rows else ""
        return self.shown.get((there.part, there.subject), "")


def bind(sheets: Sequence[Sheet]) -> list[Bound]:
    """The sheets in their order. Rows of the timeline are places too, named `r` and revision."""
    places = _Places(rows=frozenset(_rows(sheets)))
    for number, sheet in enumerate(sheets, start=1):
        anchor = f"s{number}"
        places.exact.setdefault(sheet.url, anchor)
        address = _address(sheet.url)
        if address is not None:
            places.shown.setdefault((address.part, address.subject), anchor)
    names: set[str] = set()
    bound = []
    for number, sheet in enumerate(sheets, start=1):
        reader = _Reader(sheet, places, names)
        reader.feed(sheet.html)
        reader.close()
        bound.append(Bound(anchor=f"s{number}", title=sheet.title, content=reader.content))
    return bound


def _rows(sheets: Sequence[Sheet]) -> Iterator[str]:
    for sheet in sheets:
        finder = _RowFinder()
        finder.feed(sheet.html)
        yield from finder.rows


class _RowFinder(HTMLParser):
    def __init__(self) -> None:
        super().__init__()
        self.rows: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        name = dict(attrs).get("id")
        if tag == "tr" and name:
            self.rows.append(name)


def _address(url: str) -> _Address | None:
    """What a URL of a page names; None for any other URL."""
    parts = urlsplit(url)
    steps = parts.path.split("/")
    if steps[:3] != ["", "ui", "h"] or len(steps) != 5:
        return None
    _, _, moment = steps[3].partition("@")
    parameters = dict(parse_qsl(parts.query))
    named = ("kind", "namespace", "name", "node", "help") if steps[4] in _OF_OBJECTS else ()
    subject = tuple((name, parameters.get(name, "")) for name in named)
    return _Address(part=steps[4], moment=moment, subject=subject)


class _Reader(HTMLParser):
    """Takes what stands in `main`, with its links led to places in the file."""

    def __init__(self, sheet: Sheet, places: _Places, names: set[str]) -> None:
        super().__init__(convert_charrefs=False)
        self._places = places
        self._names = names
        self._here = _address(sheet.url) or _Address("", "", ())
        self._parts: list[str] = []
        self._is_inside = False
        self._silent: list[str] = []
        self._pictures = 0
        self._links: list[str] = []

    @property
    def content(self) -> Markup:
        """What has been taken: markup that the page's templates have escaped."""
        return Markup("".join(self._parts))  # noqa: S704 - it was escaped when it was made

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        if tag == "main":
            self._is_inside = True
            return
        if not self._is_inside:
            return
        if self._silent:
            if tag == self._silent[0]:
                self._silent.append(tag)
            return
        if tag in _LEFT_OUT:
            self._silent.append(tag)
            return
        if tag == "svg":
            self._pictures += 1
        if tag == "a":
            self._begin_link({name: value or "" for name, value in attrs})
            return
        self._parts.append(self._start(tag, attrs))

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        if self._is_inside and not self._silent:
            self._parts.append(self._start(tag, attrs))

    def handle_endtag(self, tag: str) -> None:
        if tag == "main":
            self._is_inside = False
        if not self._is_inside:
            return
        if self._silent:
            if tag == self._silent[0]:
                self._silent.pop()
            return
        if tag == "svg":
            self._pictures -= 1
        if tag == "a":
            tag = self._links.pop()
        self._parts.append(f"</{_LOWER.get(tag, tag)}>")

    def handle_data(self, data: str) -> None:
        self._take(data)

    def handle_entityref(self, name: str) -> None:
        self._take(f"&{name};")

    def handle_charref(self, name: str) -> None:
        self._take(f"&#{name};")

    def _take(self, text: str) -> None:
        if self._is_inside and not self._silent:
            self._parts.append(text)

    def _start(self, tag: str, attrs: Sequence[tuple[str, str | None]]) -> str:
        """The element as it was written, but for its level and a name that is there already."""
        text = self.get_starttag_text() or ""
        name = dict(attrs).get("id")
        if name:
            if name in self._names:
                text = text.replace(f' id="{escape(name)}"', "", 1)
            self._names.add(name)
        return text.replace(f"<{tag}", f"<{_LOWER[tag]}", 1) if tag in _LOWER else text

    def _begin_link(self, attributes: Mapping[str, str]) -> None:
        place = self._places.find(attributes.get("href", ""), self._here)
        classes = attributes.get("class", "")
        kept = {"class": classes, "aria-label": attributes.get("aria-label", "")}
        given = "".join(f' {name}="{escape(value)}"' for name, value in kept.items() if value)
        if place:
            self._links.append("a")
            self._parts.append(f'<a href="#{place}"{given}>')
        elif self._pictures:
            self._links.append("g")
            self._parts.append("<g>")
        elif _KEPT_AS_TEXT & set(classes.split()) or not self._is_offer(attributes):
            self._links.append("span")
            self._parts.append(f'<span class="{escape(classes)}">')
        else:
            self._silent.append("a")

    def _is_offer(self, attributes: Mapping[str, str]) -> bool:
        """Whether a link offers something else to look at, rather than being part of a text."""
        there = _address(attributes.get("href", ""))
        if there is None:
            return True
        return (there.part, there.subject) != (self._here.part, self._here.subject)
