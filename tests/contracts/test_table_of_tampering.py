"""What a chain proves, as one table: each way to alter a stored history, and each way to meet it.

The verdicts were written down before the ways were tried. `docs/explanation/proof.md` shows the
same table. The forger is in `tampering.py`; `test_tampering.py` has the words of each verdict.
"""

import json
import re
from pathlib import Path

import pytest

from app.adapters.head_keys import open_head_key
from app.adapters.history.formats.bundle import BundleReader
from app.adapters.history.limits import DEFAULT_LIMITS
from app.bootstrap import recordings, stores
from app.bootstrap.histories import open_histories
from app.domain.errors import InputError, LogError, Rejected
from app.domain.log.heads import SignedHead
from app.service.folding import snapshots
from app.settings import Settings
from tests import draws
from tests.command_line import ROOT
from tests.conftest import new_database, say
from tests.contracts import test_tampering as ways
from tests.contracts.tampering import Forger, Row, Tampering, hash_of, rehashed, renumbered
from tests.contracts.test_drawn_tampering import family  # noqa: F401
from tests.contracts.test_tampering import column, forger, head, settings, verify
from tests.contracts.test_tampering import untouched as of_two  # noqa: F401

pytestmark = pytest.mark.database


async def one_hash_anew(hand: Forger) -> None:
    """Another user in one stamp, and the hash of that event alone."""
    rows = await hand.rows()
    changed = {**rows[6], "stamp": str(rows[6]["stamp"]).replace('"user":"', '"user":"x')}
    before = rows[5]["hash"]
    assert isinstance(before, bytes)
    assert changed["stamp"] != rows[6]["stamp"]
    await hand.replace([{**changed, "hash": hash_of(changed, before)}, *rows[7:]], after=6)


async def all_rows(hand: Forger, rows: list[Row], first: int) -> None:
    """Put rows in the place of the events from a position on, hashed anew, with their head."""
    kept = await hand.rows()
    before = kept[first - 1]["hash"]
    assert isinstance(before, bytes)
    anew = rehashed(renumbered(rows, first + 1), before)
    await hand.replace(anew, after=first)
    await hand.set_head((await hand.rows())[-1])


async def one_dropped_anew(hand: Forger) -> None:
    """A slice is dropped."""
    rows = await hand.rows()
    await all_rows(hand, rows[3:], 2)


async def one_doubled_anew(hand: Forger) -> None:
    """A slice is created twice."""
    rows = await hand.rows()
    await all_rows(hand, [rows[2], *rows[2:]], 2)


async def two_swapped_anew(hand: Forger) -> None:
    """A class and a template, which no decision names and which have the same time."""
    rows = await hand.rows()
    one, two = rows[3], rows[4]
    assert [one["resource"], two["resource"]] == ["deviceclasses", "resourceclaimtemplates"]
    await all_rows(hand, [two, one, *rows[5:]], 3)


async def decision_out_anew(hand: Forger) -> None:
    """A decision is taken out, and its effects are left."""
    rows = await hand.rows()
    place = next(at for at, row in enumerate(rows) if ways.is_decision(row))
    await all_rows(hand, rows[place + 1 :], place)


async def later_time_anew(hand: Forger) -> None:
    """The last event is an hour later, with its columns and its hash."""
    rows = await hand.rows()
    stamp = json.loads(str(rows[-1]["stamp"]))
    stamp["time"] += 3_600_000_000
    text = json.dumps(stamp, separators=(",", ":"))
    await hand.run(
        "UPDATE log_events SET stamp = $3::json, time = time + interval '1 hour', "
        "clock = clock + interval '1 hour' WHERE history = $1 AND revision = $2",
        rows[-1]["revision"],
        text,
    )
    last = (await hand.rows())[-1]
    before = rows[-2]["hash"]
    assert isinstance(before, bytes)
    await hand.run(
        "UPDATE log_events SET hash = $3 WHERE history = $1 AND revision = $2",
        last["revision"],
        hash_of(last, before),
    )
    await hand.set_head((await hand.rows())[-1])


def with_all_beside(tampering: Tampering) -> Tampering:
    """The tampering by a forger who removes all that is kept beside the log and tells of it."""

    async def change(hand: Forger) -> None:
        views = await hand.connection.fetch(
            "SELECT relname FROM pg_class WHERE relname LIKE 'view\\_%' AND relkind = 'r'"
        )
        beside = ("signed_heads", "snapshots", "checkpoints")
        for table in (*beside, *(row["relname"] for row in views)):
            await hand.run(f"DELETE FROM {table} WHERE history = $1")
        await tampering(hand)

    return change


def said(statement: str) -> Tampering:
    """Run a statement on the victim."""

    async def change(hand: Forger) -> None:
        await hand.run(statement)

    return change


OF_FORK = "(SELECT history FROM histories WHERE name = 'fork')"
OF_COPY = "(SELECT history FROM histories WHERE name = 'copy')"
OF_OTHER = "(SELECT history FROM histories WHERE name = 'other')"
PATCHED = "replace(object::text, 'gpu-0', 'gpu-1')::json"
ENCODED = "encode('gpu-0', 'hex'), encode('gpu-1', 'hex')"
GPU_0 = f"decode(replace(encode(state, 'hex'), {ENCODED}), 'hex')"
OTHER_HEAD = (
    'UPDATE signed_heads SET head = replace(head::text, \'"time":"20\', \'"time":"21\')::json '
    "WHERE history = $1"
)


async def state_with_its_digest(hand: Forger) -> None:
    """Another device in the kept state, with the digest of what it says now."""
    row = await hand.connection.fetchrow(
        "SELECT projection, version, state FROM snapshots WHERE history = $1 "
        "AND projection = 'objects' ORDER BY revision DESC LIMIT 1",
        hand.history,
    )
    assert row is not None
    view = (row["projection"], row["version"])
    parts = snapshots.parts_of(row["state"], view)
    assert parts is not None
    changed = parts.state.replace(b"alice", b"mally")
    assert changed != parts.state
    mark = snapshots._MARK
    digest = snapshots._digest(mark, view, parts.hash, changed)
    await hand.run(
        "UPDATE snapshots SET state = $2 WHERE history = $1 AND projection = 'objects'",
        mark + parts.hash + digest + changed,
    )


async def head_back(hand: Forger) -> None:
    """The head names the event before the last one, as it did once."""
    await hand.set_head((await hand.rows())[-2])


WAYS = ("verify", "verify --head", "server", "server with a kept state", "export")
"""How an altered history is met."""

TABLE: tuple[tuple[str, str, Tampering, str], ...] = (
    # The history that is met, what is altered, how, and the verdict of each way.
    ("victim", "a value of an object", column("object", PATCHED, 3),
     "fails fails broken true refused"),
    ("victim", "a user, with the hash of the event", one_hash_anew,
     "fails fails broken true refused"),
    ("victim", "a user, with all hashes from there on",
     with_all_beside(ways.one_event_written_anew),
     "agrees fails altered altered written"),
    ("victim", "an event dropped", ways.delete_from_the_middle, "fails fails broken true refused"),
    ("victim", "an event dropped, all anew", with_all_beside(one_dropped_anew),
     "fails fails altered altered written"),
    ("victim", "the last events dropped", ways.delete_tail, "fails fails broken broken refused"),
    ("victim", "the last events dropped, with the head", with_all_beside(ways.cut_with_head),
     "agrees fails altered altered written"),
    ("victim", "all events dropped, with the head", with_all_beside(ways.emptied_with_head),
     "agrees fails altered altered written"),
    ("victim", "two events swapped", ways.swap_two, "fails fails broken true refused"),
    ("victim", "two unrelated events swapped, all anew", with_all_beside(two_swapped_anew),
     "agrees fails altered altered written"),
    ("victim", "an event doubled, all anew", with_all_beside(one_doubled_anew),
     "fails fails altered altered written"),
    ("victim", "an event after the end", ways.repeat_one_at_the_end,
     "fails fails broken broken refused"),
    ("victim", "an event of another history", ways.take_over_an_event_of_another_history,
     "fails fails broken true refused"),
    ("victim", "all events and the head of another history",
     ways.give_all_events_to_another_history, "fails fails broken broken refused"),
    ("victim", "a decision taken out, all anew", with_all_beside(decision_out_anew),
     "fails fails altered altered written"),
    ("victim", "the head's revision", head("revision = revision - 1"),
     "fails fails broken broken refused"),
    ("victim", "the head moved back, with its hash", head_back,
     "fails fails broken broken refused"),
    ("victim", "the seed", settings("seed = 5"), "fails fails broken broken refused"),
    ("victim", "the seed, all anew", with_all_beside(ways.settings_written_anew),
     "agrees fails altered altered written"),
    ("victim", "the settings taken out of the chain", with_all_beside(ways.settings_taken_out),
     "agrees fails altered altered written"),
    ("victim", "the column of a time", column("time", "time + interval '1 second'"),
     "fails fails true true written"),
    ("victim", "a time that falls, all anew", with_all_beside(ways.earlier_time_everywhere),
     "fails fails altered altered written"),
    ("victim", "the time of the last write, anew", with_all_beside(later_time_anew),
     "fails fails altered altered written"),
    ("victim", "a user, all anew, beside a kept head", ways.one_event_written_anew,
     "fails fails altered altered refused"),
    ("victim", "a kept head deleted", said("DELETE FROM signed_heads WHERE history = $1"),
     "agrees agrees true true written"),
    ("victim", "a kept head", said(OTHER_HEAD),
     "fails fails true true refused"),
    ("victim", "a kept state", said(f"UPDATE snapshots SET state = {GPU_0} WHERE history = $1"),
     "fails fails true true written"),
    ("victim", "a kept state, with its digest", state_with_its_digest,
     "fails fails true altered written"),
    ("victim", "a row of a view", said("UPDATE view_claims SET state = 'x' WHERE history = $1"),
     "fails fails true true written"),
    ("fork", "an event before the fork", column("object", PATCHED, 3),
     "fails fails broken true refused"),
    ("fork", "the events before the fork, all anew", ways.one_event_written_anew,
     "fails fails broken broken refused"),
    ("fork", "where the fork begins",
     said(f"UPDATE histories SET parent_revision = 19 WHERE history = {OF_FORK} AND $1 > 0"),
     "fails fails broken broken refused"),
    ("fork", "of what it is a fork",
     said(f"UPDATE histories SET parent = {OF_OTHER} WHERE history = {OF_FORK} AND $1 > 0"),
     "fails fails broken broken refused"),
    ("fork", "that it is a fork",
     said(f"UPDATE histories SET is_fork = false WHERE history = {OF_FORK} AND $1 > 0"),
     "fails fails broken broken refused"),
    ("copy", "of what it is a copy",
     said(f"UPDATE histories SET parent = {OF_OTHER} WHERE history = {OF_COPY} AND $1 > 0"),
     "fails fails true true written"),
    ("copy", "where the copy ends",
     said(f"UPDATE histories SET parent_revision = 9 WHERE history = {OF_COPY} AND $1 > 0"),
     "fails fails true true written"),
)  # fmt: skip


async def served(url: str, name: str, *, kept: bool) -> bytes | None:
    """The objects with which a server opens a history; None if it does not serve it."""
    choice = Settings(database_url=url)
    async with stores.open_store(choice) as store:
        if not kept:
            await say(url, "DELETE FROM snapshots")
        async with open_histories(store, choice) as histories:
            try:
                return (await histories.open(name)).views.objects.dump()
            except LogError:
                return None


async def exports(url: str, name: str, folder: Path) -> bool:
    """Whether a bundle is written of a history, which an import then takes."""
    file = folder / "of.redra"
    choice = Settings(database_url=url, data=folder)
    async with stores.open_store(choice) as store:
        try:
            await recordings.export_history(store, choice, name, "", file, lambda *_: None)
        except (LogError, InputError):
            assert not file.exists()
            return False
    BundleReader(file, DEFAULT_LIMITS).check()
    return True


async def verdict(url: str, name: str, heads: tuple[SignedHead, ...] = ()) -> str:
    try:
        return "agrees" if (await verify(url, heads, name=name)).agrees else "fails"
    except (LogError, InputError, Rejected):
        return "fails"


async def head_now(url: str, name: str, folder: Path) -> SignedHead:
    async with stores.open_store(Settings(database_url=url)) as store:
        info = await stores.find_history(store, name)
        return open_head_key(folder).sign(name, await store.log.head(info.id))


async def served_as_it_was(url: str, name: str) -> bytes:
    dump = await served(url, name, kept=True)
    assert dump is not None
    return dump


async def verdicts(url: str, name: str, signed: SignedHead, honest: bytes, folder: Path) -> str:
    """The verdict of each way to meet a history."""
    found = [await verdict(url, name), await verdict(url, name, (signed,))]
    written = await exports(url, name, folder)
    for kept in (True, False):
        dump = await served(url, name, kept=kept)
        found.insert(2, "broken" if dump is None else "true" if dump == honest else "altered")
    return " ".join((*found, "written" if written else "refused"))


@draws.in_turn("rows of wrongs")
@pytest.mark.parametrize(
    ("name", "tampering", "expected"),
    [(row[0], *row[2:]) for row in TABLE],
    ids=[f"{row[0]}-{row[1]}" for row in TABLE],
)
async def test_each_way_has_the_verdict_of_the_table(
    server_url: str,
    family: str,  # noqa: F811
    tmp_path: Path,
    name: str,
    tampering: Tampering,
    expected: str,
) -> None:
    with new_database(server_url, template=family) as url:
        signed = await head_now(url, name, tmp_path)
        honest = await served_as_it_was(url, name)
        async with forger(url) as hand:
            await tampering(hand)
        assert await verdicts(url, name, signed, honest, tmp_path) == expected


def test_page_shows_the_table() -> None:
    text = (ROOT / "docs" / "explanation" / "proof.md").read_text()
    rows = re.findall(r"^\| (the history|a fork|a copy): (.*?) \| (.*) \|$", text, re.MULTILINE)
    shown = [(name, title, tuple(cells.split(" | "))) for name, title, cells in rows]
    nouns = {"victim": "the history", "fork": "a fork", "copy": "a copy"}
    assert shown == [(nouns[row[0]], row[1], tuple(row[3].split())) for row in TABLE]
    assert "| what is altered | `" + "` | `".join(WAYS[:2]) + "` | " in text
