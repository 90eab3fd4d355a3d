"""Checks that a form comes from our own pages: a page of another site cannot post a form.

Browsers state the origin of a form in `Sec-Fetch-Site` or `Origin`. A client that states neither is
not a browser, and has no rights of a reader that a foreign page could borrow.
"""

from urllib.parse import urlsplit

from app.api.server.messages import HttpRequest
from app.domain.errors import BadRequest, Forbidden

FORM = "application/x-www-form-urlencoded"


def check_own(request: HttpRequest) -> None:
    """Raise Forbidden for a form of another origin, BadRequest for another content type."""
    site, origin = request.header(b"sec-fetch-site"), request.header(b"origin")
    if site and site != "same-origin":
        raise _foreign(site)
    if origin and _site(origin) != _host(request):
        raise _foreign(origin)
    kind = request.header(b"content-type").partition(";")[0].strip().lower()
    if kind != FORM:
        raise BadRequest(f"a form is sent as {FORM}")


def _site(origin: str) -> str | None:
    """The host and port of an origin; None when it has none."""
    try:
        return urlsplit(origin).netloc or None
    except ValueError:
        return None


def _host(request: HttpRequest) -> str:
    return request.header(b"host")


def _foreign(origin: str) -> Forbidden:
    return Forbidden(
        f'forms are accepted only from this server\'s own pages, not from "{origin[:100]}"'
    )
