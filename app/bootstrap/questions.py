"""SQL queries about the view tables, with notes about how current the tables are."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

from app.adapters.postgres import queries
from app.adapters.postgres.database import DatabaseBounds
from app.adapters.postgres.queries import QueryRows
from app.analysis.recordings import uncertainty
from app.bootstrap.stores import Store, database_bounds, find_history, open_store, reader_address
from app.domain.log import HistoryInfo
from app.service import recorded_doubts
from app.settings import Settings


@dataclass(frozen=True, slots=True, kw_only=True)
class QueryResult:
    """The rows of a query, and notes that a reader should know."""

    rows: QueryRows
    notes: tuple[str, ...]


async def ask(settings: Settings, text: str, history: str = "") -> QueryResult:
    """Query the database of the settings, about one history or all.

    Raises InputError for an invalid query.
    """
    async with (
        open_store(settings) as store,
        queries.open_reader(reader_address(settings, store.url), _bounds(settings)) as database,
    ):
        infos = await store.log.histories()
        if history:
            infos = [await find_history(store, history)]
        of_one = infos[0] if history else None
        result = await queries.ask(database, text, rows_max=settings.sql_rows_max, info=of_one)
        notes = [*await _behind(store, infos), *await _unsure(store, infos)]
    if result.cut:
        notes.append(
            f"there are more rows: the first {len(result.rows)} are shown (REDRA_SQL_ROWS_MAX)"
        )
    return QueryResult(rows=result, notes=tuple(notes))


def _bounds(settings: Settings) -> DatabaseBounds:
    return replace(
        database_bounds(settings), statement_seconds=settings.sql_timeout_seconds, connections_max=2
    )


async def _unsure(store: Store, infos: Sequence[HistoryInfo]) -> list[str]:
    """Notes about incomplete recordings: rows about these histories may be unsure."""
    notes = []
    for info in infos:
        kinds = uncertainty.lines(await recorded_doubts.doubts_of(store.log, info))[1:]
        if kinds:
            lacks = ", ".join(line.strip() for line in kinds)
            notes.append(
                f"the recording {info.name} is incomplete, so statements about it are unsure "
                f"({lacks}); the view `losses` has the events"
            )
    return notes


async def _behind(store: Store, infos: Sequence[HistoryInfo]) -> list[str]:
    """Notes about histories whose tables are behind the head."""
    notes = []
    for info in infos:
        head = await store.log.head(info.id)
        kept = {
            checkpoint.projection: checkpoint
            for checkpoint in await store.views.checkpoints(info.id)
        }
        shown = min((checkpoint.revision for checkpoint in kept.values()), default=0)
        if shown < head.revision:
            notes.append(
                f"the tables of {info.name} are at revision {shown} of {head.revision}: "
                f"`redra rebuild {info.name}` fills them, `redra up` keeps them"
            )
    return notes
