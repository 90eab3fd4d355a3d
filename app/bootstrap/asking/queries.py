"""Queries about a history to redra's own API, in this process or on a server."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from urllib.parse import quote

from app.domain.errors import InputError, NotFound, Rejected

NAMED_MAX = 3
"""The most histories that an error lists when the given name resembles none of them."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ServedQuery:
    """A query for one part of the answers about a history at a moment (empty: the present).

    A query with a `body` is a POST. `is_page` asks for a page for browsers.
    """

    history: str
    part: str
    at: str = ""
    parameters: Mapping[str, str] = field(default_factory=dict)
    body: object | None = None
    is_page: bool = False

    def path(self, at: str) -> str:
        """The URL path; for a page it contains the moment."""
        if self.is_page:
            moment = f"@{at}" if at else ""
            return f"/ui/h/{quote(f'{self.history}{moment}', safe='@:+')}/{self.part}"
        return f"/redra/v1/histories/{quote(self.history)}/{self.part}"

    def query(self, at: str) -> dict[str, str]:
        """The query parameters."""
        return {**self.parameters} if self.is_page else {**self.parameters, "at": at}


def no_history(name: str, names: list[str]) -> InputError:
    """The error for a history that does not exist, naming the nearest ones."""
    history, mark, moment = name.partition("@")
    if mark and history in names:
        return InputError(
            f"{name!r} names a moment, but this question is about a whole history",
            cure=f"leave out @{moment}",
        )
    from app.analysis import scope

    cure = scope.nearest(history, names)
    if not names:
        cure = "import one, or start `redra up`"
    elif not cure and len(names) <= NAMED_MAX:
        cure = f"choose from {', '.join(names)}"
    elif not cure:
        cure = f"`redra histories` lists all {len(names)} histories"
    return InputError(f"there is no history {name!r}", cure=cure)


def refusal(problem: Rejected, at: str) -> Exception:
    """The error of a command for a refused request: a moment after the end is a wrong `--at`."""
    if isinstance(problem, NotFound) and problem.resource == "revisions" and at:
        return InputError(problem.message, place="--at")
    return problem
