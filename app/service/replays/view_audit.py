"""The audit of view tables: their rows are compared with the hash kept with their checkpoint.

The hash was kept in the step that wrote the rows, so rows that were altered since differ from it. A
person who also alters the hash is not noticed here: only a rebuild folds the log again.
"""

from collections.abc import AsyncIterator, Collection
from dataclasses import dataclass
from enum import StrEnum

from app.domain.log import HistoryId
from app.domain.log.projection import sum_text
from app.ports import ALL_ROWS, StoredRows, ViewStore
from projections import all_projections

NO_ROWS = sum_text(0)
"""The hash of no rows."""


class Rows(StrEnum):
    """Whether rows are those that were written.

    `UNKNOWN`: there are more than may be compared. `OTHER`: another version of redra wrote them.
    """

    SAME = "same"
    ALTERED = "altered"
    UNKNOWN = "unknown"
    OTHER = "other"


@dataclass(frozen=True, slots=True, kw_only=True)
class AuditedView:
    """The result for one projection: its tables, and the number of their rows."""

    tables: tuple[str, ...]
    rows: Rows
    count: int


async def audit(
    views: ViewStore,
    history: HistoryId,
    names: Collection[str] | None = None,
    *,
    rows_max: int = ALL_ROWS,
) -> AsyncIterator[AuditedView]:
    """Compare the rows of the named projections, or of all: `rows_max` rows in all."""
    for view in all_projections():
        if names is None or view.name in names:
            stored = await views.hash_rows(history, view.name, view.version, rows_max=rows_max)
            kept = {each.projection for each in await views.checkpoints(history)}
            yield AuditedView(
                tables=tuple(table.name for table in view.tables()),
                rows=_judge(stored, is_other=stored.checkpoint is None and view.name in kept),
                count=stored.count,
            )
            rows_max -= 0 if stored.hash is None else stored.count


def _judge(stored: StoredRows, *, is_other: bool) -> Rows:
    if is_other:
        return Rows.OTHER
    if stored.hash is None:
        return Rows.UNKNOWN
    wanted = NO_ROWS if stored.checkpoint is None else stored.checkpoint.state_hash
    return Rows.SAME if stored.hash == wanted else Rows.ALTERED
