"""The page that is shown until the requested one is ready; it contains no answer."""

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


def page(
    links: Links,
    part: str,
    again: str,
    *,
    read: int,
    last: int,
    before: int = 0,
    job: ShownJob | None = None,
) -> bytes:
    """The page. `again` is the address of the requested one; `read` of `last` events are read.

    If `before` is not 0, so many other answers are worked out, and this page waits for its turn.
    A `job` that makes the requested page is shown with its progress, and can be cancelled.
    """
    return render(
        "unready.html",
        title=_TITLES.get(part, part),
        links=links,
        again=again,
        read=read,
        last=last,
        before=before,
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
        before=0,
        job=None,
        is_open=False,
    )
