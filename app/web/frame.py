"""The frame of each page: history, moment, strip of events, links to other moments."""

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import lru_cache
from importlib.resources import files

from jinja2 import Environment, FunctionLoader, StrictUndefined
from markupsafe import Markup, escape

from app.domain.log import ObjectKey
from app.domain.log.records import named_author
from app.domain.objects import registry
from app.domain.values import identifiers, timestamps
from app.domain.values.texts import kind_words
from app.domain.values.texts.visible_text import visible_html
from app.domain.values.timestamps import Instant
from app.web import links, svg
from app.web.assets import all_assets
from app.web.links import Links

PARTS = (
    ("findings", "Findings"),
    ("lanes", "Lanes"),
    ("map", "Device map"),
    ("timeline", "Timeline"),
    ("capacity", "Capacity"),
    ("pace", "Pace"),
    ("blast", "What if"),
    ("compare", "Compare"),
    ("rehearsal", "Rehearse"),
)
"""The pages of a history that need no object, with their titles."""


UNFOLLOWED = frozenset(
    (
        "again",
        "behaviours",
        "blast",
        "capacity",
        "compare",
        "jobs",
        "lint",
        "rehearsal",
        "report",
        "scan",
    )
)
"""Pages that answer a specific question and do not update with the history."""


@dataclass(frozen=True, slots=True, kw_only=True)
class MomentLink:
    """A link to another moment: name, text, key, and URL (empty without a target)."""

    label: str
    text: str
    key: str
    url: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Frame:
    """The context of a page: its history and moment, the part, and its parameters.

    `revision` is the shown revision, `head` the last one of the history. `strip` draws the events
    over time, and is empty for readers who may not see all of them. `meaning` says which instant a
    relative moment names. `conflicts` counts the recorded events that a paced replay has not shown
    as they were; readers who may not see all of them get no count.
    """

    links: Links
    part: str
    parameters: dict[str, str] = field(default_factory=dict)
    revision: int = 0
    head: int = 0
    time: Instant = Instant(0)
    meaning: str = ""
    profile: str = ""
    is_recorded: bool = False
    is_paced: bool = False
    conflicts: int = 0
    strip: Markup = Markup("")
    key: Markup = Markup("")
    steps: tuple[MomentLink, ...] = ()

    @property
    def is_past(self) -> bool:
        """True if the page is pinned to a moment."""
        return bool(self.links.moment)

    @property
    def is_followed(self) -> bool:
        """True if the page updates with its history; a page that answers a form does not."""
        return not self.is_past and self.part not in UNFOLLOWED

    @property
    def again(self) -> str:
        """The URL of this page at the same moment."""
        return self.here(self.links.moment) if self.is_past else self.here()

    def here(self, moment: object = None) -> str:
        """The URL of this page at another moment; without a moment, at present."""
        there = self.links.now() if moment is None else self.links.at(moment)
        return there.to(self.part, **self.parameters)


def render(template: str, **values: object) -> bytes:
    """A page made from a template, with the characters of foreign texts that act spelt out."""
    return visible_html(_environment().get_template(template).render(**values)).encode()


def compile_templates() -> Iterator[str]:
    """Compile the templates one by one, so that no request has to; yields their names."""
    for each in sorted(files("app.web").joinpath("templates").iterdir(), key=lambda one: one.name):
        _environment().get_template(each.name)
        yield each.name


@lru_cache(maxsize=1)
def _environment() -> Environment:
    folder = files("app.web").joinpath("templates")
    made = Environment(
        autoescape=True,
        loader=FunctionLoader(lambda name: folder.joinpath(name).read_text("utf-8")),
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        auto_reload=False,
    )
    assets = all_assets()
    made.globals["asset"] = lambda name: assets[name].url
    made.globals["parts"] = PARTS
    made.globals["root"] = links.ROOT
    made.globals["sweeps"] = links.JOBS
    made.globals["has_page"] = links.has_page
    made.filters["time"] = time_text
    made.filters["count"] = count_text
    made.filters["place"] = _namespaced_name
    made.filters["breaks"] = breaks
    made.filters["steps"] = steps
    made.filters["author"] = named_author
    made.filters["noun"] = noun
    made.filters["program"] = program_text
    made.filters["linked"] = linked
    made.filters["coded"] = coded
    made.filters["revisions"] = revisions
    return made


def time_text(instant: int) -> str:
    """An instant as readable text in UTC, to the millisecond; empty without one."""
    return timestamps.micro_text(Instant(instant))[:-4].replace("T", " ") if instant else ""


def count_text(number: int) -> str:
    """A number with a narrow space between thousands."""
    return f"{number:,}".replace(",", "\N{NARROW NO-BREAK SPACE}")


def _namespaced_name(named: ObjectKey) -> str:
    """The name with the namespace, also of what only has the two fields."""
    return identifiers.namespaced_name(named.namespace, named.name)


def breaks(text: str) -> Markup:
    """The text, with places to break the line after `/`, `:` and `=`, where names are joined."""
    return _broken(_JOINT, text)


def steps(path: str) -> Markup:
    """The path of a field, with a place to break the line after each step."""
    return _broken(_STEP, path)


def _broken(places: re.Pattern[str], text: str) -> Markup:
    parts = places.split(text)
    return Markup("<wbr>").join(map(escape, parts)) if len(parts) > 1 else escape(text)


_JOINT = re.compile(r"(?<=[/:=])(?=\w)")
_STEP = re.compile(r"(?<=[./])(?=\w)")


def program_text(agent: str) -> str:
    """The program and version at the start of a user agent; the tooltip has the whole text."""
    return agent.partition(" ")[0]


_REVISION = re.compile(r"(revision \d+)")
_INSTANT = re.compile(r"(\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(?:\.\d+)?Z)")


def linked(text: str, page: Frame | None, marked: str = "") -> Markup:
    """The text, with each named revision as a link to its moment, but for no page.

    No line breaks within an instant. The last occurrence of `marked` in the text is highlighted.
    """
    before, part, after = text.rpartition(marked) if marked else ("", "", "")
    if part:
        return linked(before, page) + svg.element("mark", part) + linked(after, page)
    if page is None:
        return _unbroken(text)
    parts = [
        svg.element("a", part, href=page.here(part.partition(" ")[2]), class_="moment-link")
        if number % 2
        else _unbroken(part)
        for number, part in enumerate(_REVISION.split(text))
    ]
    return Markup("").join(parts)


def _unbroken(text: str) -> Markup:
    """The text, broken where names are joined, and not within an instant."""
    return Markup("").join(
        svg.element("span", part, class_="instant") if number % 2 else breaks(part)
        for number, part in enumerate(_INSTANT.split(text))
    )


_CODE = re.compile(r"`([^`]+)`")


def coded(text: str) -> Markup:
    """The text, with what stands between backticks as code, such as a command."""
    parts = _CODE.split(text)
    return Markup("").join(
        svg.element("code", part) if number % 2 else escape(part)
        for number, part in enumerate(parts)
    )


def revisions(text: str) -> list[int]:
    """The revisions that a text names, each once."""
    named = [int(part.partition(" ")[2]) for part in _REVISION.findall(text)]
    return list(dict.fromkeys(named))


_NOUNS = {
    "pods": "pod",
    "nodes": "node",
    "resourceclaims": "claim",
    "resourceclaimtemplates": "template",
    "resourceslices": "slice",
    "deviceclasses": "class",
    "devicetaintrules": "taint rule",
    "resourceslicepatches": "patch",
    "namespaces": "namespace",
    "events": "event object",
}


def noun(resource: str) -> str:
    """The noun for one object of a resource; one that a history defines keeps its plural."""
    return _NOUNS.get(resource) or _singulars().get(resource, resource)


@lru_cache(maxsize=1)
def _singulars() -> dict[str, str]:
    return {kind.plural: kind_words.in_sentence(kind.kind) for kind in registry.kinds()}
