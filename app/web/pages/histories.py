"""The index page: every history that the reader may see."""

from collections.abc import Mapping, Sequence
from typing import Any

from app.web.frame import render
from app.web.links import Links


def page(items: Sequence[Mapping[str, Any]]) -> bytes:
    """The page, from the items of `/redra/v1/histories`."""
    return render("histories.html", items=[_row(item) for item in items])


def problem(
    code: int, title: str, message: str, place: Links | None = None, name: str = ""
) -> bytes:
    """The error page for a page that cannot be shown.

    `place` is the history of the page if other pages of it may be shown, `name` that of the object
    which was asked for.
    """
    return render(
        "problem.html",
        title=f"{code} {title}",
        message=message,
        next=_NEXT.get(code, ""),
        place=place,
        name=name,
        is_denied=code == _DENIED,
    )


_DENIED = 403

_NEXT = {
    400: "Correct the address or what you typed, or begin at one of these pages.",
    404: "Check the spelling in the address, or begin at one of these pages.",
    500: "This is a mistake of redra. Load the page again; if that does not help, other pages and "
    "commands may still answer. The output of the server has the error in full: report it with "
    "the address of this page.",
    503: "Load the page again in a moment.",
}
"""The next step of a reader, by status."""


def _row(item: Mapping[str, Any]) -> dict[str, Any]:
    kind = "fork" if item["is_fork"] else "recording" if item["is_recorded"] else "live"
    time = str(item["time"])
    return {
        **item,
        "kind": kind,
        "url": Links(history=item["name"]).to("findings"),
        "time": time[:23].replace("T", " "),
    }
