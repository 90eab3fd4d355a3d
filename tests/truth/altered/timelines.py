"""Compares the timeline of a recording with the writes that the lines of another one show.

Each row has to be a change that a line shows, by the user and within the second of that line, or it
is doubted. Namespaces are left out: the lines do not show what holds them.
"""

from collections import defaultdict
from collections.abc import Iterable, Iterator

from projections.timeline import TimelineProjection
from tests.adversary.log import Json
from tests.truth.altered.asking import Asked
from tests.truth.altered.lines import writes
from tests.truth.happenings import words_of
from tests.truth.raw import Key, State
from tests.truth.states.model import Write

CORE = ("pods", "nodes")
JUDGED = (
    *CORE, "resourceclaims", "resourceslices", "devicetaintrules", "deviceclasses",
    "resourceclaimtemplates",
)  # fmt: skip
_OTHERS = ("GapObserved", "ConflictObserved", "WriteRefused", "Warning")
_SECOND = 1_000_000

Shown = tuple[frozenset[str], Write]
"""A write, and the words that its row may have."""


def rows_of(asked: Asked) -> list[Json]:
    """The rows of the timeline that are changes of objects of the judged kinds."""
    view = TimelineProjection()
    for event in asked.events:
        view.fold(event)
    rows = map(view.row_of, view.entries)
    return [row for row in rows if row["resource"] in JUDGED and row["kind"] not in _OTHERS]


def differences(lines: Iterable[Json], rows: Iterable[Json]) -> Iterator[str]:
    """A line for each change without its row, and for each row that no line shows."""
    for change, row in _unequal(lines, rows):
        yield f"not there: {change}" if row is None else f"not shown: {row}"


def concerned(lines: Iterable[Json], rows: Iterable[Json]) -> set[Key]:
    """The objects with a row that is doubted, a row that no line shows, or a line without a row."""
    rows = list(rows)
    unequal = {words[0] if row is None else _key(row) for words, row in _unequal(lines, rows)}
    return unequal | {_key(row) for row in rows if row["doubt"]}


def _key(row: Json) -> Key:
    return row["resource"], row["namespace"], row["name"]


def undoubted(lines: Iterable[Json], rows: Iterable[Json]) -> list[Json]:
    """The rows that no line shows, and that are not doubted."""
    return [row for _, row in _unequal(lines, rows) if row is not None and not row["doubt"]]


def _unequal(lines: Iterable[Json], rows: Iterable[Json]) -> Iterator[tuple[object, Json | None]]:
    counted, said = _changes(lines), defaultdict(list)
    for row in rows:
        said[_key(row)].append(row)
    for key in sorted({*counted, *said}):
        own = list(counted[key])
        for row in said[key]:
            # Rows and writes of one object are in one order: what is passed over has no row.
            number = next((n for n, one in enumerate(own) if _is_of(row, one)), None)
            if number is None:
                yield None, row
                continue
            for words, write in own[:number]:
                yield (key, sorted(words), write.user), None
            del own[: number + 1]
        for words, write in own:
            yield (key, sorted(words), write.user), None


def _is_of(row: Json, shown: Shown) -> bool:
    words, write = shown
    is_then = abs(row["time"] - write.time) < _SECOND
    return row["kind"] in words and row["actor"] == write.user and is_then


def _changes(lines: Iterable[Json]) -> defaultdict[Key, list[Shown]]:
    """The writes of each object of which a timeline has a row."""
    state: State = {}
    changes: defaultdict[Key, list[Shown]] = defaultdict(list)
    for key, write in writes(lines):
        before = state.pop(key, None)
        if write.tree is not None:
            state[key] = write.tree
        group = "" if key[0] in CORE else "resource.k8s.io"
        words = frozenset(words_of(group, key[0], before, write.tree))
        if key[0] in JUDGED and words:
            changes[key].append((words, write))
    return changes
