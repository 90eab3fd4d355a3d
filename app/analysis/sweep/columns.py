"""The table of a sweep: its columns, and the row of a run with a value for each of them."""

from collections.abc import Sequence

from app.domain.values.json_tree import JsonObject

HEADINGS = (
    "cell",
    "history",
    "profile",
    "gates",
    "quirks",
    "change",
    "seed",
    "pods",
    "placed",
    "waiting",
    "evicted",
    "boundMean",
    "boundP50",
    "boundP99",
    "boundMax",
    "differing",
    "notDone",
)

VARIED = ("history", "profile", "gates", "quirks", "change", "seed")
"""The columns that say what a run is of; the others have its result."""

BRIEF = (
    *VARIED,
    *("placed", "waiting", "evicted", "boundMean", "stranded", "differing", "problem"),
)
"""The columns of a short table."""

_WORDS = {
    "cell": "run",
    "profile": "release",
    "gates": "feature gates",
    "quirks": "behaviours",
    "seed": "order of arrival",
    "pods": "pods in all",
    "placed": "pods placed",
    "waiting": "pods waiting",
    "evicted": "pods evicted",
    "boundMean": "mean seconds to binding",
    "boundP50": "median seconds to binding",
    "boundP99": "99th percentile of seconds to binding",
    "boundMax": "most seconds to binding",
    "differing": "pods unlike the base",
    "notDone": "writes that did not apply",
    "largest": "devices in the largest claim of class",
    "stranded": "stranded amount of counter",
    "strandedShare": "stranded share (0 to 1) of counter",
}
"""The words of the columns whose names are none; the files have the names."""

_BRIEF_WORDS = {"stranded": "stranded share of counters"}

LARGEST = "largest"
STRANDED = {"stranded": "amount", "strandedShare": "share"}
"""The columns of each counter, with the keys of their values in a run."""


def columns_of(rows: Sequence[JsonObject]) -> list[str]:
    """The columns: those of every sweep, those of each class and counter, the problem."""
    classes = sorted({name for row in rows for name in row.get("largest", ())})
    counters = sorted({name for row in rows for name in row.get("stranded", ())})
    return [
        *HEADINGS,
        *(f"{LARGEST} {name}" for name in classes),
        *(f"{column} {name}" for name in counters for column in STRANDED),
        "problem",
    ]


def worded(column: str) -> str:
    """The heading of a column for people, with the unit of its values."""
    name, _, about = column.partition(" ")
    words = _WORDS.get(name, name) if about or column not in _BRIEF_WORDS else _BRIEF_WORDS[name]
    return f"{words} {about}".strip()


def bases(rows: Sequence[JsonObject]) -> set[int]:
    """The numbers of the runs with which others are compared: one for each history and seed."""
    first: dict[tuple[object, object], int] = {}
    for row in rows:
        first.setdefault((row["history"], row["seed"]), row["cell"])
    return set(first.values())


def flat(row: JsonObject, columns: Sequence[str]) -> JsonObject:
    """The values of a run by column; None where it has none."""
    return {name: _value(row, *name.partition(" ")[::2]) for name in columns}


def brief(row: JsonObject) -> JsonObject:
    """The values of a run by column of the short table; empty where it has none."""
    return {name: row.get(name, "") for name in BRIEF} | {"stranded": stranded_text(row)}


def stranded_text(row: JsonObject) -> str:
    """The stranded share of each counter as a short text, the largest share first."""
    counters: JsonObject = row.get("stranded", {})
    ranked = sorted(counters.items(), key=lambda item: (-item[1]["share"], item[0]))
    names = [name.rpartition("/")[2] for name in counters]
    return ", ".join(
        f"{short if names.count(short) == 1 else name} {one['share']:.1%}"
        for name, one in ranked
        if one["amount"] and (short := name.rpartition("/")[2])
    )


def _value(row: JsonObject, column: str, about: str) -> object:
    """The value of a column, which may be about a class or a counter."""
    if column == LARGEST:
        return row.get("largest", {}).get(about)
    if column in STRANDED:
        return row.get("stranded", {}).get(about, {}).get(STRANDED[column])
    return row.get(column)
