"""The frame of a page: its position in the history, and the links to other moments."""

from collections.abc import Iterable, Mapping
from dataclasses import replace
from urllib.parse import urlencode

from app.analysis import navigation
from app.api.redra.answers import Answers
from app.api.redra.inquiries import Inquiry
from app.api.server.messages import HttpRequest
from app.domain.log import ObjectKey, Revision
from app.domain.values import moments as relative
from app.web.frame import Frame, MomentLink
from app.web.links import Links
from app.web.pictures import strip

_SORTS: tuple[tuple[str, frozenset[str] | None, str], ...] = (
    ("event", None, "[]"),
    ("decision", navigation.DECISIONS, "()"),
    ("trouble", navigation.TROUBLES, "{}"),
)
"""The steps of a page without a single object: name, kinds of entries, keys."""


async def frame(
    answers: Answers,
    inquiry: Inquiry,
    part: str,
    parameters: Mapping[str, str] | None = None,
    subject: ObjectKey | None = None,
) -> Frame:
    """The frame of a page at the requested moment.

    The steps of a page about one object lead to moments at which such an object exists or existed.
    """
    runtime = inquiry.runtime
    views = await answers.views(inquiry)
    revision, head = views.revision, runtime.head
    time = await answers.time(inquiry, views)
    plain = Frame(
        links=Links(history=runtime.info.name, moment=inquiry.moment),
        part=part,
        parameters=dict(parameters or {}),
        revision=revision,
        head=head.revision,
        time=time,
        meaning=relative.meaning(inquiry.moment, runtime.end),
        profile=views.profile.patch or views.profile.version,
        is_recorded=runtime.info.is_recorded,
        is_paced=runtime.info.is_paced,
    )
    if not inquiry.reader().is_unlimited:
        # The density of events would reveal objects that this reader may not see.
        return plain
    chronicle = await answers.chronicle(runtime)
    density = navigation.density(
        chronicle, strip.STRETCHES, [each.revision for each in runtime.observations]
    )
    shown = Revision(revision)
    if subject is None:
        since = Revision(0)
        steps = [
            _step(plain, name, keys, navigation.nearest(chronicle, shown, kinds))
            for name, kinds, keys in _SORTS
        ]
    else:
        numbers = chronicle.numbers(subject=subject) or ()
        since = chronicle.revisions[numbers[0]] if numbers else shown
        steps = [_step(plain, "change", "[]", navigation.around(chronicle, shown, numbers))]
    return replace(
        plain,
        conflicts=chronicle.count_of_kind(navigation.CONFLICT, until=shown),
        strip=strip.draw(density, time, plain.here, since),
        key=strip.key(density),
        steps=tuple(step for pair in steps for step in pair),
    )


def _step(
    page: Frame, name: str, keys: str, there: tuple[Revision, Revision]
) -> tuple[MomentLink, MomentLink]:
    """The steps to the moments before and after."""
    before, after = there
    return (
        MomentLink(
            label=f"previous {name}",
            text=f"\N{LEFTWARDS ARROW} {name}",
            key=keys[0],
            url=page.here(before) if before else "",
        ),
        MomentLink(
            label=f"next {name}",
            text=f"{name} \N{RIGHTWARDS ARROW}",
            key=keys[1],
            url=page.here(after) if after else "",
        ),
    )


def pairs(request: HttpRequest) -> list[tuple[str, str]]:
    """The parameters of a request that have a value."""
    return [(name, values[0]) for name, values in request.query.items() if values and values[0]]


def query_text(parameters: Iterable[tuple[str, str]]) -> str:
    """The query text `?name=value&…`; empty without parameters."""
    text = urlencode(list(parameters))
    return f"?{text}" if text else ""
