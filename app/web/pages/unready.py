"""The page that is shown until the requested one is ready; it contains no answer."""

from dataclasses import dataclass

from app.web.frame import PARTS, render
from app.web.links import Links
from app.web.pages.jobs import ShownJob

_TITLES = {
    **dict(PARTS),
    "": dict(PARTS)["findings"],
    "attempts": "Attempts",
    "behaviours": "Known behaviours",
    "find": "Find",
    "jobs": "Jobs",
    "lint": "Checks of published objects",
    "object": "Object",
    "again": "Decided again",
    "rehearsal": "Rehearse an upgrade",
    "scan": "Known defects and traps",
    "why": "Why",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class PlaceInLine:
    """The answers that are worked out, and the pages in a line, for which a page waits.

    A page that waits for nothing has no answers before it.
    """

    before: int = 0
    ahead: int = 0


def page(
    links: Links,
    part: str,
    again: str,
    *,
    read: int,
    last: int,
    turn: PlaceInLine = PlaceInLine(),
    job: ShownJob | None = None,
) -> bytes:
    """The page. `again` is the address of the requested one; `read` of `last` events are read.

    A `job` that makes the requested page is shown with its progress, and can be cancelled.
    """
    return render(
        "unready.html",
        title=_TITLES.get(part, part),
        links=links,
        again=again,
        read=read,
        last=last,
        turn=turn,
        job=job,
        jobs=links.now().to("jobs"),
        is_open=True,
    )


def opening(links: Links, part: str, again: str, last: int) -> bytes:
    """The page while the history, with `last` events, is being opened."""
    title = _TITLES.get(part, part)
    return render(
        "unready.html",
        title=title,
        links=links,
        again=again,
        read=last,
        last=last,
        turn=PlaceInLine(),
        job=None,
        is_open=False,
    )
