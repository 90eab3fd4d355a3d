"""The page with the jobs of one history."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from app.domain.values.json_tree import JsonObject
from app.web.frame import Frame, render


@dataclass(frozen=True, slots=True, kw_only=True)
class ShownJob:
    """A job as a page shows it.

    `lines` say what is known of its progress or its result. `page` is the URL of a page with the
    result, `answer` that of the result as JSON. `files` have name, bytes and path.
    """

    id: str
    kind: str
    title: str
    state: str
    seconds: float
    progress: Mapping[str, object] = field(default_factory=dict)
    problem: str = ""
    lines: Sequence[str] = ()
    rows: Sequence[JsonObject] = ()
    failed: int = 0
    files: Sequence[tuple[str, int, str]] = ()
    page: str = ""
    answer: str = ""

    @property
    def has_ended(self) -> bool:
        """Whether nothing more becomes of it."""
        return self.state not in ("waiting", "running")


def page(frame: Frame, jobs: Sequence[ShownJob]) -> bytes:
    """The jobs of a history, the newest first, each with a button that cancels or removes it."""
    return render(
        "history_jobs.html",
        frame=frame,
        jobs=jobs,
        is_under_way=any(not one.has_ended for one in jobs),
    )
