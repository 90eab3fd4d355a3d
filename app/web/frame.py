"""What stands around each page: the history, its moment, the strip of its events, the way on."""

import re
from dataclasses import dataclass, field
from functools import lru_cache
from importlib.resources import files

from jinja2 import Environment, FunctionLoader, StrictUndefined
from markupsafe import Markup, escape

from app.domain.log import ObjectKey
from app.domain.values import timestamps
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
"""The pages of a history that need no object, and what they are called."""


UNFOLLOWED = frozenset(("blast", "capacity", "compare", "rehearsal", "report", "scan"))
"""Pages that answer a question of their own rather than show what is going on."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Step:
    """A way to another moment: name, text, key, and where it leads (empty: nowhere)."""

    label: str
    text: str
    key: str
    url: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Frame:
    """The place of a page: which history, as of when, which part with which parameters.

    `revision` is what is shown, `head` the last of the history. `strip` draws its events over time,
    and is empty for readers who may not see all of them.
    """

    links: Links
    part: str
    parameters: dict[str, str] = field(default_factory=dict)
    revision: int = 0
    head: int = 0
    time: Instant = Instant(0)
    profile: str = ""
    is_recorded: bool = False
    strip: Markup = Markup("")
    steps: tuple[Step, ...] = ()

    @property
    def is_past(self) -> bool:
        """Whether the page is pinned to a moment."""
        return bool(self.links.moment)

    @property
    def is_followed(self) -> bool:
        """Whether the page goes on with its history; one that answers a form stays."""
        return not self.is_past and self.part not in UNFOLLOWED

    def here(self, moment: object = None) -> str:
        """This page at another moment; without one, at present."""
        there = self.links.now() if moment is None else self.links.at(moment)
        return there.to(self.part, **self.parameters)


def render(template: str, **values: object) -> bytes:
    """A page made from a template."""
    return _environment().get_template(template).render(**values).encode()


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
    made.filters["time"] = time_text
    made.filters["count"] = count_text
    made.filters["place"] = place_text
    made.filters["noun"] = noun
    made.filters["program"] = program_text
    made.filters["linked"] = linked
    return made


def time_text(instant: int) -> str:
    """An instant as people read it, UTC, to the millisecond; empty for none."""
    return timestamps.micro_text(Instant(instant))[:-4].replace("T", " ") if instant else ""


def count_text(number: int) -> str:
    """A number with its thousands set apart."""
    return f"{number:,}".replace(",", "\N{NARROW NO-BREAK SPACE}")


def place_text(key: ObjectKey) -> str:
    """`namespace/name`, or the name of what has no namespace."""
    return f"{key.namespace}/{key.name}" if key.namespace else key.name


def program_text(agent: str) -> str:
    """The program and version that a user agent begins with; the whole is for who points at it."""
    return agent.partition(" ")[0]


_REVISION = re.compile(r"(revision \d+)")


def linked(text: str, page: Frame, marked: str = "") -> Markup:
    """The text, with a link to the moment wherever it names a revision.

    The last place where the text has the part `marked` is marked.
    """
    before, part, after = text.rpartition(marked) if marked else ("", "", "")
    if part:
        return linked(before, page) + svg.element("mark", part) + linked(after, page)
    parts = [
        svg.element("a", part, href=page.here(part.partition(" ")[2]), class_="moment-link")
        if number % 2
        else escape(part)
        for number, part in enumerate(_REVISION.split(text))
    ]
    return Markup("").join(parts)


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
    """What one object of a resource is called."""
    return _NOUNS.get(resource, resource)
