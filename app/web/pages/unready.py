"""The page that is shown until the requested one is ready; it contains no answer."""

from app.web.frame import PARTS, render
from app.web.links import Links

_TITLES = {
    **dict(PARTS),
    "": dict(PARTS)["findings"],
    "attempts": "Attempts",
    "behaviours": "Known behaviours",
    "find": "Find",
    "lint": "Checks of published objects",
    "object": "Object",
    "again": "Decided again",
    "rehearsal": "Rehearse an upgrade",
    "scan": "Known defects and traps",
    "why": "Why",
}


def page(links: Links, part: str, again: str, *, read: int, last: int, before: int = 0) -> bytes:
    """The page. `again` is the address of the requested one; `read` of `last` events are read.

    If `before` is not 0, so many other answers are worked out, and this page waits for its turn.
    """
    return render(
        "unready.html",
        title=_TITLES.get(part, part),
        links=links,
        again=again,
        read=read,
        last=last,
        before=before,
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
        is_open=False,
    )
