"""The parameters that each page reads; other parameters are refused.

A page that ignored a parameter in its address would look like the answer to it.
"""

from collections.abc import Mapping

from app.analysis import scope
from app.api.kubernetes.paths import LANDING
from app.api.server.messages import HttpRequest
from app.domain.errors import BadRequest

MOMENT = "moment"
"""The parameter of every page for its moment: a form sends it, and is redirected to the path."""

_SUBJECT = ("kind", "namespace", "name")

NAMES: Mapping[str, tuple[str, ...]] = {
    LANDING: ("namespace",),
    "again": ("profile", "gate", "quirk", "by", "within"),
    "attempts": _SUBJECT,
    "behaviours": (),
    "blast": ("kind", "name"),
    "capacity": (),
    "compare": ("with", "withAt", "by", "within"),
    "find": ("q",),
    "fork": (),
    "jobs": ("job",),
    "lanes": ("namespace", "name", "since", "until"),
    "lint": ("ignore", "profile"),
    "live": (),
    "map": ("driver", "pool", "node", "labels"),
    "object": _SUBJECT,
    "pace": ("namespace", "name"),
    "rehearsal": ("to", "gate", "quirk"),
    "report": (),
    "scan": ("labels",),
    "timeline": (
        "kind", "resource", "namespace", "name", "actor", "text", "decisions", "before", "limit",
    ),
    "why": (*_SUBJECT, "node", "help"),
}  # fmt: skip
"""The parameters by page, in the order in which messages list them."""

NEEDS: Mapping[str, str] = {"again": "by", "compare": "with", "rehearsal": "to"}
"""The parameter of a page without which its others have no meaning."""

FLAGS = ("decisions", "help")

_STATES = ("", "0", "1", "false", "true")


def check(request: HttpRequest, part: str) -> None:
    """Raise BadRequest for a parameter that the page does not read, or one without its partner."""
    names = NAMES.get(part, ())
    present = {name for name, values in request.query.items() if values and values[0]}
    for name, values in request.query.items():
        if name == MOMENT:
            continue
        if name == "at":
            raise BadRequest(
                f"the moment of a page stands in its path: /ui/h/HISTORY@{values[0][:64] or '…'}/, "
                'not in a parameter "at"'
            )
        if name not in names:
            raise BadRequest(f'this page has no parameter "{name[:64]}": {_others(name, names)}')
        if name in FLAGS and values[0].lower() not in _STATES:
            raise BadRequest(f'{name} must be true or false, not "{values[0][:64]}"')
    needed = NEEDS.get(part)
    if needed is None or needed in present:
        return
    for name in sorted(present - {MOMENT}):
        raise BadRequest(f'the parameter "{name}" has no effect without "{needed}"')


def _others(name: str, names: tuple[str, ...]) -> str:
    if not names:
        return "it has none"
    return scope.nearest(name, set(names)) or f"it has {', '.join(names)}"
