"""The page that stands for another one until that is ready; it answers nothing by itself."""

from app.web.frame import PARTS, render
from app.web.links import Links

_TITLES = {
    **dict(PARTS),
    "attempts": "Attempts",
    "behaviours": "Known behaviours",
    "find": "Find",
    "object": "Object",
    "scan": "Known defects and traps",
    "why": "Why",
}


def page(links: Links, part: str, again: str, *, read: int, last: int, before: int = 0) -> bytes:
    """The page. `again` is the address of the other one; `read` of `last` events are read.

    `before` other answers are worked out before its work begins.
    """
    return render(
        "unready.html",
        title=_TITLES.get(part, part),
        links=links,
        again=again,
        read=read,
        last=last,
        before=before,
    )
