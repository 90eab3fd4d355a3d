"""Pages and static files as responses, with the headers that keep them safe."""

from app.api.kubernetes import paths
from app.api.server.messages import Header, HttpRequest, Response
from app.domain.errors import RedraError
from app.web import assets
from app.web.links import BELOW, STATIC, Links
from app.web.pages import histories

HTML = b"text/html; charset=utf-8"

HEADERS: tuple[Header, ...] = (
    (
        b"content-security-policy",
        b"default-src 'self'; img-src 'self' blob:; base-uri 'none'; form-action 'self'; "
        b"frame-ancestors 'none'; object-src 'none'",
    ),
    (b"referrer-policy", b"same-origin"),
    (b"cache-control", b"no-cache, private"),
)
"""Security headers: only our own scripts and styles, no frames, no content of other sites.

Images may be blobs, which only a script of the page can make: a picture is drawn as PNG from one.
"""

NO_GUESS: Header = (b"x-content-type-options", b"nosniff")
"""Error responses of every kind already have this header."""

_KEPT: tuple[Header, ...] = (
    (b"cache-control", b"public, max-age=31536000, immutable"),
    NO_GUESS,
)


def static(path: str) -> Response | None:
    """A static file of the pages, equal for all users; None when it does not exist."""
    asset = assets.all_assets().get(path.removeprefix(STATIC))
    if asset is None:
        return None
    return Response(asset.content, content_type=asset.content_type, headers=_KEPT)


def shown(page: bytes, code: int = 200) -> Response:
    """A page as a response."""
    headers = HEADERS if code >= 400 else (*HEADERS, NO_GUESS)
    return Response(page, status=code, content_type=HTML, headers=headers)


def problem(refusal: Exception, code: int, request: HttpRequest) -> Response:
    """The page for an error; for a mistake in redra it shows only the type of the error."""
    place, name = None, ""
    if code in _FROM_A_HISTORY and getattr(refusal, "resource", "") != "histories":
        place = _place(request.path)
    if code == _DENIED and request.path.endswith("/timeline"):
        place = None
    if code == _NOT_FOUND:
        name = next(iter(request.query.get("name", ())), "")
    title = _TITLES.get(code, "Something went wrong")
    text = f"Internal error: {type(refusal).__name__}"
    if isinstance(refusal, RedraError):
        text = getattr(refusal, "message", "") or str(refusal)
    return shown(histories.problem(code, title, text, place, name), code)


def _place(path: str) -> Links | None:
    """The history that the path of a page names, at present."""
    if not path.startswith(BELOW):
        return None
    requested = paths.split_history(path)
    return None if requested is None else Links(history=requested.history)


_NOT_FOUND = 404
_DENIED = 403
_FROM_A_HISTORY = frozenset((400, _DENIED, _NOT_FOUND, 405))
"""The statuses of errors of a history that is there, or may be: its other pages can be shown.

Who may not read one page may read others, such as the timeline of what they may read.
"""


_TITLES = {
    400: "The request cannot be answered",
    401: "Who are you?",
    403: "Access denied",
    404: "Not found",
    405: "Pages are read-only",
    503: "Not available now",
}
