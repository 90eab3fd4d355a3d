"""The binding of several pages into one file, with links between them as anchors.

The content of a page is copied. Parts that need a server are left out: forms, navigation, scripts
and links to other pages, of which some keep their text. The result needs no server, no script and
no other file.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from html.parser import HTMLParser
from urllib.parse import parse_qsl, urlsplit

from markupsafe import Markup, escape

_LEFT_OUT = frozenset(("form", "nav", "script", "template"))
_KEPT_AS_TEXT = frozenset(("object", "revision", "moment-link", "number"))
"""Classes of links whose text is kept when their target is not in the file."""

_LOWER = {"h1": "h2", "h2": "h3", "h3": "h4", "h4": "h5"}
_OF_OBJECTS = ("why", "object")


@dataclass(frozen=True, slots=True, kw_only=True)
class Sheet:
    """One page: its URL, its title, and its HTML."""

    url: str
    title: str
    html: str


@dataclass(frozen=True, slots=True, kw_only=True)
class BoundSheet:
    """A sheet within the file: its anchor, its title and its content."""

    anchor: str
    title: str
    content: Markup


@dataclass(frozen=True, slots=True)
class _PageAddress:
    """The parts of a page's URL: the page, its subject, and the moment."""

    part: str
    moment: str
    subject: tuple[tuple[str, str], ...]


@dataclass(slots=True, kw_only=True)
class _Places:
    """The anchors of sheets in the file: by URL, and by page and subject at any moment."""

    exact: dict[str, str] = field(default_factory=dict)
    shown: dict[tuple[str, tuple[tuple[str, str], ...]], str] = field(default_factory=dict)
    rows: frozenset[str] = frozenset()

    def find(self, url: str, here: _PageAddress) -> str:
        """The anchor for a link on a sheet; empty when its target is not in the file."""
        if url.startswith("#"):
            return ""
        if url in self.exact:
            return self.exact[url]
        there = _address(url)
        if there is None:
            return ""
        if (there.part, there.subject) == (here.part, here.subject):
            # The same page at another moment: link to that moment's row of the timeline.
            row = f"r{there.moment}"
            return row if row in self.rows else ""
        return self.shown.get((there.part, there.subject), "")


def bind(sheets: Sequence[Sheet]) -> list[BoundSheet]:
    """The bound sheets in order.

    Rows of the timeline are anchors too, named `r` and the revision.
    """
    places = _Places(rows=frozenset(_rows(sheets)))
    for number, sheet in enumerate(sheets, start=1):
        anchor = f"s{number}"
        places.exact.setdefault(sheet.url, anchor)
        address = _address(sheet.url)
        if address is not None:
            places.shown.setdefault((address.part, address.subject), anchor)
    names: set[str] = set()
    regions = {sheet.title for sheet in sheets}
    bound = []
    for number, sheet in enumerate(sheets, start=1):
        reader = _ContentCopier(sheet, places, names, regions)
        reader.feed(sheet.html)
        reader.close()
        bound.append(BoundSheet(anchor=f"s{number}", title=sheet.title, content=reader.content))
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


def _address(url: str) -> _PageAddress | None:
    """The address in the URL of a page; None for any other URL."""
    parts = urlsplit(url)
    steps = parts.path.split("/")
    if steps[:3] != ["", "ui", "h"] or len(steps) != 5:
        return None
    _, _, moment = steps[3].partition("@")
    parameters = dict(parse_qsl(parts.query))
    named = ("kind", "namespace", "name", "node", "help") if steps[4] in _OF_OBJECTS else ()
    subject = tuple((name, parameters.get(name, "")) for name in named)
    return _PageAddress(part=steps[4], moment=moment, subject=subject)


class _ContentCopier(HTMLParser):
    """Copies the content of `main`, with links changed to anchors in the file.

    `names` are the ids and `regions` the labels of landmarks that the file has so far.
    """

    def __init__(self, sheet: Sheet, places: _Places, names: set[str], regions: set[str]) -> None:
        super().__init__(convert_charrefs=False)
        self._places = places
        self._names = names
        self._regions = regions
        self._title = sheet.title
        self._here = _address(sheet.url) or _PageAddress("", "", ())
        self._parts: list[str] = []
        self._is_inside = False
        self._silent: list[str] = []
        self._pictures = 0
        self._links: list[str] = []

    @property
    def content(self) -> Markup:
        """The copied content: markup that the templates of the page have escaped."""
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
        """The start tag as in the page, except for the heading level and what stands twice.

        A duplicate id is left out; a duplicate label of a region gets the title of its page.
        """
        text = self.get_starttag_text() or ""
        attributes = dict(attrs)
        name, label = attributes.get("id"), attributes.get("aria-label")
        if name:
            if name in self._names:
                text = text.replace(f' id="{escape(name)}"', "", 1)
            self._names.add(name)
        if label and attributes.get("role") == "region":
            if label in self._regions:
                unique = f'aria-label="{escape(self._title)}: {escape(label)}"'
                text = text.replace(f'aria-label="{escape(label)}"', unique, 1)
            self._regions.add(label)
        return text.replace(f"<{tag}", f"<{_LOWER[tag]}", 1) if tag in _LOWER else text

    def _begin_link(self, attributes: Mapping[str, str]) -> None:
        place = self._places.find(attributes.get("href", ""), self._here)
        classes = attributes.get("class", "")
        kept = {"class": classes, "aria-label": attributes.get("aria-label", "")}
        written = "".join(f' {name}="{escape(value)}"' for name, value in kept.items() if value)
        if place:
            self._links.append("a")
            self._parts.append(f'<a href="#{place}"{written}>')
        elif self._pictures:
            self._links.append("g")
            self._parts.append("<g>")
        elif _KEPT_AS_TEXT & set(classes.split()) or not self._is_offer(attributes):
            self._links.append("span")
            self._parts.append(f'<span class="{escape(classes)}">')
        else:
            self._silent.append("a")

    def _is_offer(self, attributes: Mapping[str, str]) -> bool:
        """True for a link to another page or subject, which is left out with its text."""
        there = _address(attributes.get("href", ""))
        if there is None:
            return True
        return (there.part, there.subject) != (self._here.part, self._here.subject)
