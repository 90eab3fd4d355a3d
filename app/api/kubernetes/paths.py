"""Parses request paths.

A path may begin with `/h/<history>/…` or `/h/<history>@<moment>/…`; the rest is a Kubernetes path.
Parity: api.md 2.
"""

import re
from dataclasses import dataclass
from functools import lru_cache
from urllib.parse import unquote

from app.domain.errors import BadRequest

_REFUSED = re.compile(r"[\x00-\x1f\x7f]|/\.{1,2}(/|$)")
"""Control characters, and the steps `.` and `..`, which some programs resolve and others do not."""

DEFAULT_HISTORY = "default"

_PAGES = "/ui"

LANDING = "findings"
"""The part of a history that a page without a part shows."""

_KNOWN_MAX = 4_096
_KNOWN_LENGTH_MAX = 256
"""Number and length of the parsed paths that are cached: clients repeat the same paths."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RequestedTimeline:
    """The timeline of a request. `moment` is empty for the present, otherwise as in the path."""

    history: str
    moment: str
    prefix: str
    path: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ResourcePath:
    """A path below a group-version. `resource` is empty for the group-version itself."""

    group: str
    version: str
    namespace: str = ""
    resource: str = ""
    name: str = ""
    subresource: str = ""
    is_watch: bool = False


def check(path: str) -> None:
    """Raise BadRequest for a path that programs may interpret in different ways."""
    is_fine = _is_fine_and_known(path) if len(path) <= _KNOWN_LENGTH_MAX else _is_fine(path)
    if not is_fine:
        raise BadRequest("the path of the request is not acceptable")


def _is_fine(path: str) -> bool:
    return path.startswith("/") and _REFUSED.search(path) is None


_is_fine_and_known = lru_cache(maxsize=_KNOWN_MAX)(_is_fine)


def split_history(path: str) -> RequestedTimeline | None:
    """The history in a path and the rest of the path; None when the history part is malformed.

    Example: `/h/night@42/api/v1/pods` is history `night`, moment `42`, path `/api/v1/pods`;
    `/redra/v1/histories/night/events` is also history `night`, with its path unchanged. A page is
    authorized as the answer that it shows: `/ui/h/night@42/why` is history `night`, moment `42`,
    path `/redra/v1/histories/night/why`.
    """
    if len(path) <= _KNOWN_LENGTH_MAX:
        return _known_place(path)
    return _split_history(path)


def _split_history(path: str) -> RequestedTimeline | None:
    if is_page(path):
        return _split_page(path)
    if not path.startswith("/h/"):
        history = history_of_redra(path) or DEFAULT_HISTORY
        return RequestedTimeline(history=history, moment="", prefix="", path=path)
    named, slash, rest = path[3:].partition("/")
    history, at, moment = named.partition("@")
    if not history or (at and not moment):
        return None
    return RequestedTimeline(
        history=history, moment=unquote(moment), prefix=f"/h/{named}", path=slash + rest or "/"
    )


def _split_page(path: str) -> RequestedTimeline | None:
    """The history and moment of a page, with the path of the answer that the page shows."""
    steps = [step for step in path.split("/") if step][1:]
    if not steps:
        return RequestedTimeline(
            history=DEFAULT_HISTORY, moment="", prefix=_PAGES, path="/redra/v1/histories"
        )
    if steps in (["jobs"], ["sweep"]) or (steps[0] == "jobs" and len(steps) == 2):
        return RequestedTimeline(
            history=DEFAULT_HISTORY, moment="", prefix=_PAGES, path="/".join(["/redra/v1", *steps])
        )
    if steps[0] != "h" or not 2 <= len(steps) <= 3:
        return None
    history, at, moment = steps[1].partition("@")
    if not history or (at and not moment):
        return None
    part = steps[2] if len(steps) == 3 else LANDING
    answer = f"/redra/v1/histories/{history}/{part}"
    return RequestedTimeline(
        history=history, moment=unquote(moment), prefix=f"{_PAGES}/h/{steps[1]}", path=answer
    )


def is_page(path: str) -> bool:
    """Whether a path is a page for browsers."""
    return path == _PAGES or path.startswith(f"{_PAGES}/")


def parts_of_redra(path: str) -> list[str]:
    """The parts of a path below `/redra/`; repeated and trailing slashes are ignored."""
    return [part for part in path.split("/") if part][1:]


def history_of_redra(path: str) -> str:
    """The history in a path below `/redra/v1/histories/`; empty for any other path."""
    parts = parts_of_redra(path) if path.startswith("/redra/") else []
    return parts[2] if len(parts) > 2 and parts[:2] == ["v1", "histories"] else ""


def parse_resource(path: str) -> ResourcePath | None:
    """The parts of a path under `/api/v1` or `/apis/<group>/<version>`; None for other paths.

    Example: `/api/v1/namespaces/a/pods/p/status` has namespace a, resource pods, name p,
    subresource status; `/api/v1/namespaces/a/status` is the status of namespace a.
    """
    return _known_resource(path) if len(path) <= _KNOWN_LENGTH_MAX else _parse_resource(path)


def _parse_resource(path: str) -> ResourcePath | None:
    parts = path.split("/")
    if parts[-1] == "" and len(parts) > 2:
        parts.pop()
    if parts[1] == "api":
        if len(parts) < 3:
            return None
        group, version, rest = "", parts[2], parts[3:]
    elif parts[1] == "apis":
        if len(parts) < 4:
            return None
        group, version, rest = parts[2], parts[3], parts[4:]
    else:
        return None
    is_watch = bool(rest) and rest[0] == "watch"
    if is_watch:
        rest = rest[1:]
    if "" in rest:
        return None
    namespace = ""
    if len(rest) >= 3 and rest[0] == "namespaces" and not _is_of_namespace(rest):
        namespace, rest = rest[1], rest[2:]
    padded = (*rest, "", "", "")
    return ResourcePath(
        group=group,
        version=version,
        namespace=namespace,
        resource=padded[0],
        name=padded[1],
        subresource="/".join(rest[2:]),
        is_watch=is_watch,
    )


_known_place = lru_cache(maxsize=_KNOWN_MAX)(_split_history)
_known_resource = lru_cache(maxsize=_KNOWN_MAX)(_parse_resource)


def _is_of_namespace(rest: list[str]) -> bool:
    """Whether `namespaces/x/…` is a subresource of the namespace object itself."""
    return len(rest) == 3 and rest[2] in ("status", "finalize")
