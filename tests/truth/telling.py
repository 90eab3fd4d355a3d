"""Compares timelines, with each of their filters, with what happened in the raw log."""

import random
from collections.abc import Awaitable, Callable, Iterator

from tests.truth.answers import differences
from tests.truth.happenings import Happening, Telling

Lines = Callable[..., Awaitable[list[dict]]]
"""Asks for lines of the entries with these parameters."""


async def timeline(lines: list[dict], ask: Lines, pick: random.Random, filters: int) -> list[str]:
    """Differences of the whole timeline, and of timelines with drawn filters."""
    happened = {one.revision: one for one in Telling().of(lines)}
    rows = await ask(decisions="true")
    wrong = list(_all_rows(happened, rows))
    plain = await ask()
    wrong += differences("rows", plain, [row for row in rows if row["kind"] != "Decision"])
    for _ in range(filters if rows else 0):
        wanted, is_left = _drawn(pick, happened, rows)
        given = await ask(**wanted)
        with_decisions = "kinds" in wanted
        left = [row["revision"] for row in (rows if with_decisions else plain) if is_left(row)]
        wrong += _listed(f"timeline {wanted}", [row["revision"] for row in given], left)
    return wrong


def _all_rows(happened: dict[int, Happening], rows: list[dict]) -> Iterator[str]:
    revisions = [row["revision"] for row in rows]
    yield from differences("order of rows", revisions, sorted(set(revisions)))
    attempts = {"AttemptFailed", "AttemptSucceeded", "KubeletFailed", "KubeletReported"}
    lost = {one.revision for one in happened.values() if one.words and not one.words & attempts}
    yield from _listed("rows", revisions, sorted(lost | (set(revisions) & _asked(happened))))
    for row in rows:
        one = happened[row["revision"]]
        if row["kind"] not in one.words | attempts:
            yield f"{row['revision']}: {row['kind']} {row['text']!r} of {sorted(one.words)}"
        yield from differences(f"time of {row['revision']}", row["time"], one.time)
        if row["kind"] not in ("Warning", "Decision", "ConflictObserved", *attempts):
            shown = tuple(row[part] for part in ("api_group", "resource", "namespace", "name"))
            yield from differences(f"subject of {row['revision']}", shown, one.subject)


def _asked(happened: dict[int, Happening]) -> set[int]:
    return {one.revision for one in happened.values() if "AttemptFailed" in one.words}


def _listed(what: str, said: list[int], counted: list[int]) -> Iterator[str]:
    if said != counted:
        lost = sorted(set(counted) - set(said))[:5]
        added = sorted(set(said) - set(counted))[:5]
        yield f"{what}: {len(said)} rows of {len(counted)}, lost {lost}, added {added}"


def _drawn(pick: random.Random, happened: dict[int, Happening], rows: list[dict]):
    """Parameters with one to three filters, and the rows that they leave."""
    wanted: dict[str, str] = {}
    tests: list[Callable[[dict], bool]] = []
    for names in pick.sample(_FILTERS, pick.randint(1, 3)):
        name = pick.choice(sorted(names))
        value, test = names[name](pick, happened, pick.choice(rows))
        if value:
            wanted[name] = value
            tests.append(test)
    return wanted, lambda row: all(test(row) for test in tests)


def _kinds(pick, happened, row):
    kinds = {row["kind"]}
    return row["kind"], lambda row: row["kind"] in kinds


def _object(pick, happened, row):
    subject = tuple(row[one] for one in ("api_group", "resource", "namespace", "name"))
    if subject[1] not in _NAMED or not subject[3]:
        return "", None
    words = (
        [subject[1], *subject[2:]]
        if subject[2] and pick.random() < 0.5
        else [subject[1], subject[3]]
    )
    has_place = len(words) == 3

    def test(row) -> bool:
        own = tuple(row[one] for one in ("api_group", "resource", "namespace", "name"))
        if not has_place:
            return (own[:2], own[3]) == (subject[:2], subject[3])
        return own == subject

    return "/".join(words), test


def _name(pick, happened, row):
    return row["name"], lambda other: other["name"] == row["name"]


def _moment(*, is_start: bool):
    def draw(pick, happened, row):
        revision, time = row["revision"], row["time"]
        by_time = pick.random() < 0.5

        def test(other) -> bool:
            own, wanted = (other["time"], time) if by_time else (other["revision"], revision)
            return own >= wanted if is_start else own <= wanted

        return (time if by_time else str(revision)), test

    return draw


def _concerned(part: str, text: Callable[[object], str]):
    def draw(pick, happened, row):
        values = sorted(getattr(happened[row["revision"]], part))
        if not values:
            return "", None
        value = pick.choice(values)

        def test(other) -> bool:
            own = getattr(happened[other["revision"]], part)
            is_itself = other["resource"] == "namespaces" and other["name"] == value
            is_about = part == "namespaces" and (is_itself or other["namespace"] == value)
            return value in own or is_about

        return text(value), test

    return draw


_FILTERS: tuple[dict[str, Callable], ...] = (
    {"kinds": _kinds},
    {"object": _object, "name": _name},
    {"since": _moment(is_start=True), "until": _moment(is_start=False)},
    {"namespace": _concerned("namespaces", str)},
    {"node": _concerned("nodes", str)},
    {"device": _concerned("devices", "/".join)},
)
"""The filters; of each group one is drawn, since two of them may be refused together."""

_NAMED = (
    "pods", "nodes", "resourceclaims", "resourceslices", "devicetaintrules", "deviceclasses",
    "resourceclaimtemplates", "namespaces",
)  # fmt: skip
