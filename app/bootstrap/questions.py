"""SQL queries about the view tables, with notes about how current the tables are."""

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace

from app.adapters.postgres import queries
from app.adapters.postgres.database import DatabaseBounds
from app.adapters.postgres.names import view_name
from app.adapters.postgres.queries import QueryBounds, QueryRows
from app.analysis.recordings import uncertainty
from app.bootstrap.stores import Store, database_bounds, find_history, open_store, reader_address
from app.domain.errors import HistoryBroken, NotFound
from app.domain.log import HistoryInfo, Revision
from app.service import broken_histories, recorded_doubts
from app.settings import Settings
from projections.tables import OF_PROJECTIONS


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
        result = await queries.ask(database, text, query_bounds(settings), info=of_one)
        hiding = await queries.hiding_relations(database)
        notes = [
            *await _behind(store, infos),
            *await _altered(store, infos, text, settings.sql_compared_rows_max),
            *await _unsure(store, infos),
            *_hidden(hiding, text),
        ]
    if result.cut:
        notes.append(
            f"there are more rows: the first {len(result.rows)} are shown (REDRA_SQL_ROWS_MAX)"
        )
    return QueryResult(rows=result, notes=tuple(notes))


def query_bounds(settings: Settings) -> QueryBounds:
    """The bounds of one query."""
    return QueryBounds(
        rows_max=settings.sql_rows_max,
        bytes_max=settings.sql_bytes_max,
        memory_bytes_max=settings.sql_memory_bytes_max,
    )


def _bounds(settings: Settings) -> DatabaseBounds:
    return replace(
        database_bounds(settings), statement_seconds=settings.sql_timeout_seconds, connections_max=2
    )


async def _unsure(store: Store, infos: Sequence[HistoryInfo]) -> list[str]:
    """Notes about incomplete recordings: rows about these histories may be unsure."""
    notes = []
    for info in infos:
        try:
            doubts = await recorded_doubts.doubts_of(store.log, info)
        except NotFound:  # no head, as another note says, or deleted since it was listed
            continue
        kinds = uncertainty.lines(doubts)[1:]
        if kinds:
            lacks = ", ".join(line.strip() for line in kinds)
            notes.append(
                f"the recording {info.name} is incomplete, so statements about it are unsure "
                f"({lacks}); the view `losses` has the events"
            )
    return notes


async def _behind(store: Store, infos: Sequence[HistoryInfo]) -> list[str]:
    """Notes about histories whose tables are behind the head, or ahead of it."""
    notes = []
    for info in infos:
        # Before the head: a projector may be writing.
        kept = {
            checkpoint.projection: checkpoint.revision
            for checkpoint in await store.views.checkpoints(info.id)
        }
        try:
            head = await broken_histories.head_of(store.log, info)
        except NotFound:
            continue
        except HistoryBroken as problem:
            notes.append(str(problem))
            continue
        shown = [kept.get(projection, Revision(0)) for projection in OF_PROJECTIONS]
        revision = min(shown) if min(shown) < head.revision else max(shown)
        if revision != head.revision:
            notes.append(
                f"the tables of {info.name} are at revision {revision} of {head.revision}: "
                f"`redra rebuild {info.name}` fills them, `redra up` keeps them"
            )
    return notes


async def _altered(
    store: Store, infos: Sequence[HistoryInfo], text: str, rows_max: int
) -> list[str]:
    """Notes about tables in the statement whose rows are not, or may not be, as written."""
    names = _projections_in(text)
    if not names:
        return []
    from app.service.replays import view_audit  # loads the folds

    notes, unknown = [], []
    for info in infos:
        async for view in view_audit.audit(store.views, info.id, names, rows_max=rows_max):
            tables = " and ".join(view.tables)
            if view.rows is view_audit.Rows.ALTERED:
                notes.append(
                    f"{tables} of {info.name} were altered: their rows are not those that redra "
                    f"wrote; `redra rebuild {info.name}` makes them again"
                )
            if view.rows is view_audit.Rows.OTHER:
                notes.append(
                    f"{tables} of {info.name} are of another version of redra and were not "
                    f"compared: `redra rebuild {info.name}` makes them again, as `redra up` does"
                )
            if view.rows is view_audit.Rows.UNKNOWN:
                unknown.append(f"{tables} of {info.name}")
            else:
                rows_max -= view.count
    if unknown:
        notes.append(
            f"whether these rows are as redra wrote them was not compared: {', '.join(unknown)}; "
            "`redra verify` compares all (REDRA_SQL_COMPARED_ROWS_MAX)"
        )
    return notes


def _hidden(hiding: Sequence[str], text: str) -> list[str]:
    """A note about tables in the statement of which the role may not see all rows."""
    words = set(re.findall(r"\w+", text.lower()))
    # U&"..." may spell a name with numbers of its characters.
    named = [name for name in hiding if "u" in words or name in words]
    return [f"row security may hide rows of {', '.join(named)} from this role"] if named else []


def _projections_in(text: str) -> set[str]:
    """The projections whose tables the statement may name."""
    words = set(re.findall(r"\w+", text.lower()))
    return {
        projection
        for projection, tables in OF_PROJECTIONS.items()
        # U&"..." may spell a name with numbers of its characters.
        if "u" in words or any(view_name(table.name) in words for table in tables)
    }
