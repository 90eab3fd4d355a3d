"""What verification says of a log that its owner has altered, for each way of altering it.

Each case states the words of the verdict, or that only a signed head kept elsewhere notices it.
The forger is in `tampering.py` and shares no code with the verifier.

Settings that cannot be read come by day.
"""

import json
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager
from datetime import datetime, timedelta
from pathlib import Path
from urllib.parse import urlsplit

import anyio
import asyncpg
import msgspec
import pytest
from sqlalchemy import Table
from sqlalchemy.dialects import postgresql

from app.adapters.head_keys import open_head_key
from app.adapters.postgres.names import view_name
from app.adapters.postgres.tables import metadata
from app.bootstrap import questions, recordings, replays, stores
from app.bootstrap.histories import open_histories
from app.domain.errors import ChainBroken, HistoryBroken, LogError
from app.domain.log import Draft, Event, Head, Revision, chain
from app.domain.log.heads import SignedHead
from app.domain.values import json_tree, timestamps
from app.domain.values.json_tree import JsonObject
from app.domain.values.timestamps import Instant
from app.service import copying
from app.service.replays import heads, integrity
from app.service.replays.verifying import VerifyReport
from app.settings import Settings
from tests import draws
from tests.cluster import T0, Cluster
from tests.command_line import redra
from tests.conftest import in_thread, new_database, say
from tests.contracts.tampering import COLUMNS, Forger, Row, Tampering, rehashed, renumbered

pytestmark = pytest.mark.database

CREATED = Instant(T0 - 1)
SETTINGS: JsonObject = {"profile": "1.37", "gates": {}}


def events_of(cluster: Cluster, beginning: bytes) -> list[Event]:
    """What happened, as the log of a history with this beginning."""
    made: list[Event] = []
    previous = beginning
    for event in cluster.line.events:
        draft = Draft(
            type=event.type,
            key=event.key,
            uid=event.uid,
            tree=json_tree.copy(event.object),
            stamp=event.stamp,
        )
        made.append(chain.seal(draft, event.revision, previous))
        previous = made[-1].hash
    return made


def story(pods: int) -> Cluster:
    cluster = Cluster()
    cluster.node("n1")
    cluster.slice("n1", 2)
    cluster.device_class()
    cluster.template()
    for number in range(pods):
        cluster.pod(f"p{number}", template="gpu")
    cluster.wait(5)
    cluster.finish("p0")
    return cluster.wait(5)


@pytest.fixture(scope="module")
def untouched(server_url: str, template: str) -> Iterator[str]:
    """The name of a database with two histories, of which `victim` is the first."""

    async def prepare(url: str) -> None:
        async with stores.open_store(Settings(database_url=url)) as store:
            for history, pods, seed in (("victim", 3, 1), ("other", 2, 2)):
                beginning = chain.genesis(seed=seed, settings=SETTINGS, created=CREATED)
                info = await store.log.create_history(
                    history, seed=seed, settings=SETTINGS, created=CREATED, hash=beginning
                )
                head = await store.log.head(info.id)
                assert head.hash == beginning
                events = events_of(story(pods), beginning)
                await store.log.append(info.id, expected=head, events=events)

    with new_database(server_url, "untouched", template) as url:
        in_thread(lambda: anyio.run(prepare, url))
        yield urlsplit(url).path.removeprefix("/")


@pytest.fixture
def url(server_url: str, untouched: str) -> Iterator[str]:
    """A copy of that database, for one case."""
    with new_database(server_url, template=untouched) as url:
        yield url


@asynccontextmanager
async def forger(url: str) -> AsyncIterator[Forger]:
    """The owner with all guards off."""
    connection = await asyncpg.connect(url)
    try:
        for table in ("log_events", "log_heads", "histories"):
            await connection.execute(f"ALTER TABLE {table} DISABLE TRIGGER ALL")
        for number in range(8):
            await connection.execute(f"ALTER TABLE log_events_p{number} DISABLE TRIGGER ALL")
        numbers = {
            row["name"]: row["history"]
            for row in await connection.fetch("SELECT name, history FROM histories")
        }
        yield Forger(connection=connection, history=numbers["victim"], other=numbers["other"])
    finally:
        await connection.close()


async def verify(
    url: str, heads: tuple[SignedHead, ...] = (), name: str = "victim"
) -> VerifyReport:
    settings = Settings(database_url=url, verify_processes=1)
    async with stores.open_store(settings) as store:
        return await replays.verify(store, settings, name, "", lambda *_: None, heads=list(heads))


async def head_of(url: str, folder: Path) -> SignedHead:
    async with stores.open_store(Settings(database_url=url)) as store:
        info = await stores.find_history(store, "victim")
        return open_head_key(folder).sign("victim", await store.log.head(info.id))


def column(name: str, value: str, revision: int = 7) -> Tampering:
    """Set one column of one event."""

    async def change(forger: Forger) -> None:
        await forger.run(
            f'UPDATE log_events SET "{name}" = {value} WHERE history = $1 AND revision = $2',
            revision,
        )

    return change


def settings(assignment: str) -> Tampering:
    """Change the row of the history."""

    async def change(forger: Forger) -> None:
        await forger.run(f"UPDATE histories SET {assignment} WHERE history = $1")

    return change


def head(assignment: str) -> Tampering:
    """Change the head row."""

    async def change(forger: Forger) -> None:
        await forger.run(f"UPDATE log_heads SET {assignment} WHERE history = $1")

    return change


async def delete_tail(forger: Forger) -> None:
    await forger.run("DELETE FROM log_events WHERE history = $1 AND revision > 20")


async def delete_everything(forger: Forger) -> None:
    await forger.run("DELETE FROM log_events WHERE history = $1")


async def delete_first(forger: Forger) -> None:
    await forger.run("DELETE FROM log_events WHERE history = $1 AND revision = 1")


async def delete_from_the_middle(forger: Forger) -> None:
    await forger.run("DELETE FROM log_events WHERE history = $1 AND revision = 9")


async def delete_and_renumber(forger: Forger) -> None:
    rows = await forger.rows(after=8)
    await forger.replace(renumbered(rows[1:], 9), after=8)
    await forger.run("UPDATE log_heads SET revision = revision - 1 WHERE history = $1")


async def swap_two(forger: Forger) -> None:
    rows = await forger.rows()
    one, two = rows[8], rows[9]
    swapped = [{**two, "revision": one["revision"]}, {**one, "revision": two["revision"]}]
    await forger.replace([*rows[:8], *swapped, *rows[10:]], after=0)


async def repeat_one_at_the_end(forger: Forger) -> None:
    last = (await forger.rows())[-1]
    await forger.put([{**last, "revision": int(str(last["revision"])) + 1}])


async def repeat_one_with_its_revision(forger: Forger) -> None:
    await forger.connection.execute("ALTER TABLE log_events DROP CONSTRAINT log_events_pkey")
    await forger.put([(await forger.rows())[9]])


async def put_one_before_the_first(forger: Forger) -> None:
    await forger.put([{**(await forger.rows())[0], "revision": 0}])


async def take_over_an_event_of_another_history(forger: Forger) -> None:
    row = await forger.connection.fetchrow(
        "SELECT * FROM log_events WHERE history = $1 AND revision = 12", forger.other
    )
    await forger.run("DELETE FROM log_events WHERE history = $1 AND revision = 12")
    await forger.put([dict(row)])


async def give_all_events_to_another_history(forger: Forger) -> None:
    """The logs and heads of two histories that differ in their seed change places."""
    for statement in (
        "UPDATE log_events SET history = 99 WHERE history = {one}",
        "UPDATE log_events SET history = {one} WHERE history = {two}",
        "UPDATE log_events SET history = {two} WHERE history = 99",
        "UPDATE log_heads AS mine SET revision = its.revision, hash = its.hash, time = its.time "
        "FROM log_heads AS its WHERE mine.history + its.history = {one} + {two} "
        "AND mine.history <> its.history",
    ):
        await forger.connection.execute(statement.format(one=forger.history, two=forger.other))


async def note_in_a_stamp(forger: Forger) -> None:
    row = (await forger.rows())[6]
    stamp = json.dumps({**json.loads(str(row["stamp"])), "note": "approved by the auditor"})
    await forger.run("UPDATE log_events SET stamp = $2 WHERE history = $1 AND revision = 7", stamp)


def number_in_a_stamp(name: str) -> Tampering:
    """Set a number of the stamp to one that no database column can hold."""

    async def change(forger: Forger) -> None:
        row = (await forger.rows())[6]
        stamp = json.dumps({**json.loads(str(row["stamp"])), name: 10**20}, separators=(",", ":"))
        await forger.run(
            "UPDATE log_events SET stamp = $2 WHERE history = $1 AND revision = 7", stamp
        )

    return change


async def second_user_in_a_stamp(forger: Forger) -> None:
    """PostgreSQL reads the last of two equal names; so does a fold, which is then deceived."""
    await forger.run(
        "UPDATE log_events SET stamp = replace(stamp::text, '\"actor\":{', "
        '\'"actor":{"user":"x",\')::json WHERE history = $1 AND revision = 7'
    )


async def one_actor(forger: Forger) -> None:
    await forger.run(
        "UPDATE log_events SET stamp = replace(stamp::text, 'alice', 'mallory')::json "
        "WHERE history = $1 AND revision = 2"
    )


async def earlier_time_everywhere(forger: Forger) -> None:
    """Stamp and columns agree, and the hashes are made anew, but time goes back once."""
    rows = await forger.rows()
    stamp = json.loads(str(rows[20]["stamp"]))
    stamp["time"] -= 3_600_000_000
    moment = rows[20]["time"]
    assert isinstance(moment, datetime)
    rows[20] = {
        **rows[20],
        "stamp": json.dumps(stamp, separators=(",", ":")),
        "time": moment - timedelta(hours=1),
    }
    await forger.replace(rehashed(rows[20:], rows[19]["hash"]), after=20)
    await forger.set_head((await forger.rows())[-1])


def tree_of(row: Row) -> JsonObject:
    return json.loads(str(row["object"]))


def object_anew(
    is_meant: Callable[[Row], bool], change: Callable[[JsonObject], object]
) -> Tampering:
    """Change the first such object, and make the hashes from there on anew."""

    async def forge(forger: Forger) -> None:
        rows = await forger.rows()
        place = next(at for at, row in enumerate(rows) if is_meant(row))
        text = json.dumps(
            change(tree_of(rows[place])), sort_keys=True, separators=(",", ":"), ensure_ascii=False
        )
        rows[place] = {**rows[place], "object": text}
        after = int(str(rows[place]["revision"])) - 1
        await forger.replace(rehashed(rows[place:], rows[place - 1]["hash"]), after=after)
        await forger.set_head((await forger.rows())[-1])

    return forge


def row_anew(is_meant: Callable[[Row], bool], **columns: object) -> Tampering:
    """Set columns of the first such event, and make the hashes from there on anew."""

    async def forge(forger: Forger) -> None:
        rows = await forger.rows()
        place = next(at for at, row in enumerate(rows) if is_meant(row))
        rows[place] = {**rows[place], **columns}
        after = int(str(rows[place]["revision"])) - 1
        await forger.replace(rehashed(rows[place:], rows[place - 1]["hash"]), after=after)
        await forger.set_head((await forger.rows())[-1])

    return forge


async def fork_that_is_none(forger: Forger) -> None:
    """An event at the end that would leave all before it to a parent."""
    last = (await forger.rows())[-1]
    revision = int(str(last["revision"]))
    body = {
        "parent": "other",
        "revision": revision,
        "hash": bytes(last["hash"]).hex() if isinstance(last["hash"], bytes) else "",
        "seed": "1",
        "settings": SETTINGS,
        "created": timestamps.micro_text(CREATED),
    }
    stamp = {"time": json.loads(str(last["stamp"]))["time"], "actor": {"user": "x"}, "verb": "fork"}
    event = {
        **last,
        **dict.fromkeys(("namespace", "name", "uid"), ""),
        "revision": revision + 1,
        "type": "HistoryForked",
        "group": "redra",
        "resource": "histories",
        "object": json.dumps(body, sort_keys=True, separators=(",", ":")),
        "stamp": json.dumps(stamp, separators=(",", ":")),
    }
    await forger.put(rehashed([event], last["hash"]))
    await forger.set_head((await forger.rows())[-1])


def is_decision(row: Row) -> bool:
    return row["type"] == "DecisionRecorded"


def is_claim(row: Row) -> bool:
    return row["resource"] == "resourceclaims"


CAUGHT: tuple[tuple[str, Tampering, str], ...] = (
    ("tail deleted", delete_tail, "where there is no event: the log was cut short"),
    ("everything deleted", delete_everything, "the log was cut short"),
    ("first deleted", delete_first, "revision 1 is missing before it"),
    ("one deleted", delete_from_the_middle, "revision 9 is missing before it"),
    ("one deleted, renumbered", delete_and_renumber, "breaks at revision 9: its content"),
    ("two swapped", swap_two, "breaks at revision 9: its content"),
    ("one repeated at the end", repeat_one_at_the_end, "there is an event at revision"),
    ("one repeated in place", repeat_one_with_its_revision, "it stands after revision 10"),
    ("one before the first", put_one_before_the_first, "there is an event at revision 0"),
    ("one of another history", take_over_an_event_of_another_history, "breaks at revision 12"),
    ("all of another history", give_all_events_to_another_history, chain.BEGINNING_PROBLEM),
    ("column time", column("time", "time + interval '1 microsecond'"), "its column time"),
    ("column time infinite", column("time", "'infinity'"), "its column time is not"),
    ("column time far away", column("time", "'20000-01-01'"), "its column time is not"),
    ("column clock", column("clock", "clock + interval '1 microsecond'"), "its column clock"),
    ("column clock falls", column("clock", "'1971-01-01'"), "its column clock is not"),
    ("column type", column("type", "'ObjectDeleted'"), "breaks at revision 7: its content"),
    ("column type unknown", column("type", "'ObjectMoved'"), "breaks at revision 7: its content"),
    ("column group", column("group", "'x'"), "breaks at revision 7: its content"),
    ("column resource", column("resource", "'x'"), "breaks at revision 7: its content"),
    ("column namespace", column("namespace", "'x'"), "breaks at revision 7: its content"),
    ("column name", column("name", "name || 'x'"), "breaks at revision 7: its content"),
    ("column uid", column("uid", "'x'"), "breaks at revision 7: its content"),
    ("column format", column("format", "2"), "breaks at revision 7: its content"),
    ("column hash", column("hash", "'\\x00'"), "breaks at revision 7: its content"),
    ("column object", column("object", "(object::text || ' ')::json"), "breaks at revision 7"),
    ("column object no object", column("object", "'[]'"), "breaks at revision 7: its content"),
    ("column object null", column("object", "'null'"), "breaks at revision 7: its content"),
    ("column object deep", column("object", "(repeat('[', 5000) || repeat(']', 5000))::json"),
     "breaks at revision 7: its content"),
    ("column stamp blank", column("stamp", "(stamp::text || ' ')::json"), "its stamp is not in"),
    ("column stamp empty", column("stamp", "'{}'"), "its stamp cannot be read"),
    ("column stamp null", column("stamp", "'null'"), "its stamp cannot be read"),
    ("column stamp time text", column("stamp", "'{\"time\":\"now\"}'"), "its stamp cannot be read"),
    ("column stamp time far away", number_in_a_stamp("time"), "its stamp cannot be read"),
    ("column stamp cause far away", number_in_a_stamp("cause"), "its stamp cannot be read"),
    ("stamp with a note", note_in_a_stamp, "its stamp is not in the form"),
    ("stamp with two users", second_user_in_a_stamp, "its stamp is not in the form"),
    ("another actor", one_actor, "breaks at revision 2: its content"),
    ("settings", settings("settings = '{\"profile\": \"1.36\"}'"), chain.BEGINNING_PROBLEM),
    ("recorded", settings("settings = '{\"profile\":\"1.37\",\"gates\":{},\"recorded\":true}'"),
     chain.BEGINNING_PROBLEM),
    ("seed", settings("seed = 2"), chain.BEGINNING_PROBLEM),
    ("created", settings("created = created + interval '1 second'"), chain.BEGINNING_PROBLEM),
    ("head further", head("revision = revision + 1"), "the log was cut short"),
    ("head back", head("revision = revision - 1"), "the head's hash is not"),
    ("head at nothing", head("revision = 0"), "there is an event at revision 1, and the head"),
    ("head's hash", head("hash = '\\x00'"), "the head's hash is not"),
    ("head's time", head("time = time + interval '1 second'"), "the head's time is not"),
    ("head's time infinite", head("time = 'infinity'"), "the head's time is not"),
    ("head's time long ago", head("time = '4000-01-01 BC'"), "the head's time is not"),
    ("created never", settings("created = '-infinity'"), chain.BEGINNING_PROBLEM),
    ("fork of nothing", settings("is_fork = true"), integrity.FORK_PROBLEM),
    ("decision that is a list", object_anew(lambda row: row["type"] == "DecisionRecorded",
     lambda tree: [1]), "it cannot be folded"),
    ("decision becomes a gap", row_anew(is_decision, type="GapObserved"),
     "with the key of another type of event"),
    ("event of another name", row_anew(is_claim, name="other"), "its name is 'other'"),
    ("object created twice", row_anew(lambda row: is_claim(row) and row["type"] == "ObjectUpdated",
     type="ObjectCreated"), "which exists"),
    ("fork that is none", fork_that_is_none, integrity.NO_FORK_PROBLEM),
    ("settings unreadable", settings("settings = '[]'"), "the settings cannot be read"),
    ("settings twice", settings("settings = ('{\"profile\":\"1.36\",' || "
     "substr(settings::text, 2))::json"), chain.BEGINNING_PROBLEM),
    ("beginning with another field", settings("beginning = json_build_object('created', "
     "(extract(epoch FROM created) * 1000000)::bigint, 'seed', seed, 'settings', settings, "
     "'note', 1)"), chain.BEGINNING_PROBLEM),
    ("beginning unreadable", settings("beginning = '[]'"), chain.BEGINNING_PROBLEM),
    ("its own parent", settings("parent = history"), chain.BEGINNING_PROBLEM),
    ("first event of a newer program", column("format", "2", 1), chain.BEGINNING_PROBLEM),
    ("head gone", lambda forger: forger.run("DELETE FROM log_heads WHERE history = $1"),
     "its row was deleted"),
    ("time goes back", earlier_time_everywhere, "its time is before that of an event before it"),
)  # fmt: skip


async def problems_of(url: str) -> str:
    """Everything that verification says about the stored log; it must fail."""
    try:
        report = await verify(url)
    except LogError as problem:
        return str(problem)
    assert not report.agrees
    return "\n".join(report.chain.problems)


async def test_untouched_history_agrees(url: str, tmp_path: Path) -> None:
    report = await verify(url, (await head_of(url, tmp_path),))
    assert report.agrees
    assert report.decisions.total
    assert report.chain.settings == "anchored"
    assert [each["verdict"] for each in report.chain.signed] == ["agrees"]


@draws.in_turn("rows of wrongs")
@pytest.mark.parametrize(("tampering", "words"), [case[1:] for case in CAUGHT],
                         ids=[case[0] for case in CAUGHT])  # fmt: skip
async def test_tampering_is_named(url: str, tampering: Tampering, words: str) -> None:
    async with forger(url) as hand:
        await tampering(hand)
    assert words in await problems_of(url)


async def test_head_that_is_not_the_end_of_the_log_is_not_signed(url: str) -> None:
    """A signature is kept for years: it may say nothing that the log does not."""
    async with stores.open_store(Settings(database_url=url)) as store:
        info = await stores.find_history(store, "victim")
        end = await heads.head_at(store.log, info, "")
        whole = await store.log.head(info.id)
        assert (end.revision, end.hash, end.time) == (whole.revision, whole.hash, whole.time)
        assert await heads.head_at(store.log, info, str(end.revision)) == end
        for assignment in (
            "revision = 0",
            "revision = -1",
            "revision = revision - 1",
            "revision = revision + 1",
            "hash = sha256('x')",
            "time = time + interval '1 second'",
            "time = 'infinity'",
            "revision = 0, hash = (SELECT hash FROM log_events AS one "
            "WHERE one.history = log_heads.history AND one.revision = 1)",
        ):
            async with forger(url) as hand:
                await head(assignment)(hand)
                with pytest.raises(ChainBroken, match="the head row is not the end of the log"):
                    await heads.head_at(store.log, info, "")
                await hand.run(
                    "UPDATE log_heads SET (revision, hash, time) = (SELECT revision, hash, clock "
                    "FROM log_events AS one WHERE one.history = $1 ORDER BY revision DESC LIMIT 1) "
                    "WHERE history = $1"
                )
        assert await heads.head_at(store.log, info, "") == end


def test_history_without_a_head_hides_no_other(url: str) -> None:
    """It is listed as broken, and the others are as before: one row may not end a command."""

    async def forge() -> None:
        async with forger(url) as hand:
            await hand.run("DELETE FROM log_heads WHERE history = $1")

    anyio.run(forge)
    given = {"REDRA_DATABASE_URL": url, "REDRA_SERVER": "none"}
    cause = "it has no head: the row was deleted from the database"
    code, out, error = redra("histories", "-o", "json", **given)
    assert (code, error) == (0, "")
    rows = {row["name"]: row for row in json.loads(out)}
    assert (rows["victim"]["broken"], rows["victim"]["revision"]) == (cause, 0)
    assert rows["other"]["broken"] == ""
    assert rows["other"]["revision"] > 0
    code, out, error = redra("sql", "select 1 as one", **given)
    assert (code, out.split()) == (0, ["ONE", "1"])
    assert f"the history 'victim' is broken: {cause}" in error
    code, out, error = redra("head", "victim", **given)
    assert (code, out) == (4, "")
    assert cause in error
    assert redra("verify", "other", **given)[0] == 0


async def test_copy_has_the_events_of_its_source_up_to_where_it_says(url: str) -> None:
    """No hash covers the source of a copy; both logs tell of it."""
    async with stores.open_store(Settings(database_url=url)) as store:
        source = await stores.find_history(store, "victim")
        await copying.copy_history(store.log, source, "copy", until=Revision(5))
    assert (await verify(url, name="copy")).agrees
    for source, revision in (("victim", 4), ("victim", 6), ("victim", -1), ("other", 5)):
        await say(
            url,
            "ALTER TABLE histories DISABLE TRIGGER ALL; "
            f"UPDATE histories SET parent_revision = {revision}, parent = "
            f"(SELECT history FROM histories WHERE name = '{source}') WHERE name = 'copy'",
        )
        report = await verify(url, name="copy")
        assert "whose events are not the same up to there" in report.chain.problem


UNREADABLE = (
    "null", "[]", "5", '"1.37"', '{"profile":null}', '{"profile":7}', '{"gates":5}',
    '{"profile":"1.37","profile":"1.37"}',
)  # fmt: skip


@draws.BY_DAY
@pytest.mark.parametrize("column_name", ["settings", "beginning"])
@pytest.mark.parametrize("text", UNREADABLE)
async def test_unreadable_settings_of_one_history_leave_the_others_served(
    url: str, column_name: str, text: str
) -> None:
    async with forger(url) as hand:
        await settings(f"{column_name} = '{text}'")(hand)
    served = Settings(database_url=url)
    async with stores.open_store(served) as store, open_histories(store, served) as histories:
        assert [info.name for info in await histories.all()] == ["other", "victim"]
        assert (await histories.open("other")).head.revision
        if column_name == "settings":
            with pytest.raises(HistoryBroken, match="no readable profile"):
                await histories.open("victim")
            assert [broken.info.name for broken in histories.broken()] == ["victim"]


@pytest.mark.parametrize(
    ("tampering", "cause"),
    [
        (head("time = 'infinity'"), "the head's time is not"),
        (head("time = '4000-01-01 BC'"), "the head's time is not"),
        (head("time = time + interval '74 years'"), "the head's time is not"),
        (settings("is_fork = true, parent = history, parent_revision = 3"), "no readable profile"),
        (settings('settings = \'{"profile": "1.36"}\''), "does not follow from the settings"),
        (settings("seed = 2"), "does not follow from the settings"),
        (column("uid", "'x'"), "breaks at revision 7: its content does not give the hash"),
        (column("object", "(object::text || ' ')::json"), "breaks at revision 7: its content"),
    ],
    ids=["never", "long-ago", "years-ahead", "its-own-parent", "settings", "seed", "uid", "object"],
)
async def test_history_that_cannot_be_opened_leaves_the_others_served(
    url: str, tampering: Tampering, cause: str
) -> None:
    async with forger(url) as hand:
        await tampering(hand)
    served = Settings(database_url=url)
    async with stores.open_store(served) as store, open_histories(store, served) as histories:
        with anyio.fail_after(30):
            assert (await histories.open("other")).head.revision
            with pytest.raises(HistoryBroken, match=cause):
                await histories.open("victim")


async def test_head_that_is_given_another_time_while_it_is_served_breaks_the_history(
    url: str,
) -> None:
    served = Settings(database_url=url)
    async with stores.open_store(served) as store, open_histories(store, served) as histories:
        runtime = await histories.open("victim")
        async with forger(url) as hand:
            await head("time = time + interval '1 hour'")(hand)
        with pytest.raises(ChainBroken, match="the head's time is not"):
            async with runtime._writer.lock:
                await runtime._writer.catch_up()


def test_every_column_of_an_event_is_altered_by_some_case() -> None:
    altered = {title.split()[1] for title, *_ in CAUGHT if title.startswith("column ")}
    assert altered == {name for name in COLUMNS if name not in ("history", "revision")}


async def cut_with_head(forger: Forger) -> None:
    """Cut before the first decision, whose effects would be missed."""
    types = [row["type"] for row in await forger.rows()]
    last = types.index("DecisionRecorded")
    await forger.run(f"DELETE FROM log_events WHERE history = $1 AND revision > {last}")
    await forger.set_head((await forger.rows())[-1])


async def emptied_with_head(forger: Forger) -> None:
    beginning = chain.genesis(seed=1, settings=SETTINGS, created=CREATED)
    await delete_everything(forger)
    await forger.run(
        "UPDATE log_heads SET revision = 0, hash = $2, time = 'epoch' WHERE history = $1",
        beginning,
    )


async def one_event_written_anew(forger: Forger) -> None:
    """Another user in one stamp, and every hash from there on."""
    rows = await forger.rows()
    rows[1] = {**rows[1], "stamp": str(rows[1]["stamp"]).replace("alice", "mallory")}
    await forger.replace(rehashed(rows[1:], rows[0]["hash"]), after=1)
    await forger.set_head((await forger.rows())[-1])


async def settings_written_anew(forger: Forger) -> None:
    """Another seed, and every hash from the beginning on."""
    await forger.run("UPDATE histories SET seed = 5 WHERE history = $1")
    beginning = chain.genesis(seed=5, settings=SETTINGS, created=CREATED)
    await forger.replace(rehashed(await forger.rows(), beginning), after=0)
    await forger.set_head((await forger.rows())[-1])


async def settings_taken_out(forger: Forger) -> None:
    """The chain of an older redra, which knew no beginning; the settings are free then."""
    await forger.replace(rehashed(await forger.rows(), bytes(32)), after=0)
    await forger.set_head((await forger.rows())[-1])


@draws.in_turn("wrongs")
@pytest.mark.parametrize(
    ("tampering", "words"),
    [
        (cut_with_head, "it was cut short"),
        (emptied_with_head, "it was cut short"),
        (one_event_written_anew, "it was rewritten"),
        (settings_written_anew, "it was rewritten"),
        (settings_taken_out, "it was rewritten"),
    ],
)
async def test_only_a_signed_head_notices(
    url: str, tmp_path: Path, tampering: Tampering, words: str
) -> None:
    signed = await head_of(url, tmp_path)
    async with forger(url) as hand:
        await tampering(hand)
    assert (await verify(url)).agrees, "the chain alone cannot know"
    report = await verify(url, (signed,))
    assert not report.agrees
    assert words in report.chain.problem


async def keep_state(url: str) -> None:
    """Let a server keep the state of the objects at the end of the log."""
    async with (
        stores.open_store(Settings(database_url=url)) as store,
        open_histories(store, Settings(database_url=url)) as histories,
    ):
        runtime = await histories.open("victim")
        await runtime.save_snapshot()


@pytest.mark.parametrize(
    ("state", "agrees"),
    [
        ("state", True),
        ("substring(state FROM 1 FOR length(state) - 1)", False),
        ("state || '\\x00'", False),
        ("decode(replace(encode(state, 'hex'), encode('gpu-0', 'hex'), encode('gpu-1', 'hex')), "
         "'hex')", False),
        ("(SELECT state FROM snapshots AS other WHERE other.history <> snapshots.history)", True),
    ],
    ids=["untouched", "cut", "longer", "another-device", "of-another-log"],
)  # fmt: skip
async def test_state_with_which_a_server_begins_is_what_the_log_gives(
    url: str, state: str, agrees: bool
) -> None:
    await keep_state(url)
    await say(
        url,
        "INSERT INTO snapshots SELECT (SELECT history FROM histories WHERE name = 'other'), "
        "projection, version, revision, state || '\\x01' FROM snapshots;"
        "UPDATE snapshots SET state = set_byte(state, 5, 255 - get_byte(state, 5)) "
        "WHERE history = (SELECT history FROM histories WHERE name = 'other');"
        f"UPDATE snapshots SET state = {state} "
        "WHERE history = (SELECT history FROM histories WHERE name = 'victim')",
    )
    report = await verify(url)
    assert report.agrees == agrees
    assert ("the stored state at revision" in report.chain.problem) != agrees


DAMAGED = (
    "substring(state FROM 1 FOR length(state) - 1)",
    "''",
    "decode(replace(encode(state, 'hex'), encode('gpu-0', 'hex'), encode('gpu-9', 'hex')), 'hex')",
)


@pytest.mark.parametrize("state", DAMAGED, ids=["cut", "empty", "another-device"])
async def test_server_does_not_begin_with_a_damaged_state(url: str, state: str) -> None:
    await keep_state(url)
    await say(url, f"UPDATE snapshots SET state = {state}")
    settings = Settings(database_url=url)
    async with (
        stores.open_store(settings) as store,
        open_histories(store, settings) as histories,
    ):
        runtime = await histories.open("victim")
        served = list(runtime.views.objects.events("resource.k8s.io", "resourceslices"))
        logged = await store.log.read(runtime.info.id, after=Revision(0), limit=10_000)
    assert served
    assert all(event.object == logged[event.revision - 1].object for event in served)


ALTERED_TABLES = (
    ("UPDATE view_claims SET state = 'pending'", "view_claims"),
    ("UPDATE view_claims SET created = 'infinity', requests = '[1]'", "view_claims"),
    ("UPDATE view_claims SET requests = '[1e999]'", "view_claims"),
    ("DELETE FROM view_decisions", "view_decisions"),
    ("DELETE FROM checkpoints WHERE projection = 'claims'", "view_claim_devices"),
    ("INSERT INTO view_counters (history, driver, pool, counter_set, counter, used) "
     "SELECT DISTINCT history, 'd', 'p', 's', 'c', 'NaN'::numeric FROM view_claims",
     "view_counters"),
    ("UPDATE checkpoints SET state_hash = 'sha256:00' WHERE projection = 'timeline'",
     "view_timeline"),
)  # fmt: skip


@draws.in_turn("wrongs")
async def test_altered_tables_are_found_and_mended_by_a_rebuild(url: str) -> None:
    settings = Settings(database_url=url)
    async with stores.open_store(settings) as store:
        await recordings.rebuild(store, settings, "victim", lambda *_: None)
        assert (await verify(url)).agrees
        for statement, table in ALTERED_TABLES:
            await say(url, statement)
            assert table in "\n".join((await verify(url)).chain.problems), statement
            asked = await questions.ask(settings, f"SELECT * FROM {table.upper()}", "victim")
            assert any(table in note and "were altered" in note for note in asked.notes)
            other = await questions.ask(settings, "SELECT * FROM view_objects", "victim")
            assert not any("altered" in note for note in other.notes)
            rows = await recordings.rebuild(store, settings, "victim", lambda *_: None)
            assert not all(row["same"] and row["compared"] for row in rows), statement
            rows = await recordings.rebuild(store, settings, "victim", lambda *_: None)
            assert all(row["same"] for row in rows)


async def test_rows_that_row_security_hides_from_the_reader_have_a_note(url: str) -> None:
    """Verification reads as the owner, who sees them."""
    settings = Settings(database_url=url)
    async with stores.open_store(settings) as store:
        await recordings.rebuild(store, settings, "victim", lambda *_: None)
        statement = "SELECT count(*) FROM view_claims WHERE namespace <> ''"
        before = await questions.ask(settings, statement, "victim")
        assert before.notes == ()
        assert before.rows.rows[0][0]
        await say(url, "ALTER TABLE view_claims ENABLE ROW LEVEL SECURITY")
        after = await questions.ask(settings, statement, "victim")
        assert after.rows.rows == ((0,),)
        assert after.notes == ("row security may hide rows of view_claims from this role",)
        assert (await questions.ask(settings, "SELECT * FROM view_pools", "victim")).notes == ()


async def test_rows_of_another_version_are_said_to_be_that(url: str) -> None:
    """Verification does not compare them either; a rebuild makes them anew."""
    settings = Settings(database_url=url)
    statement = "SELECT name FROM view_claims"
    async with stores.open_store(settings) as store:
        await recordings.rebuild(store, settings, "victim", lambda *_: None)
        before = await questions.ask(settings, statement, "victim")
        assert before.notes == ()
        await say(
            url,
            "UPDATE checkpoints SET version = version + 1 WHERE projection = 'claims';"
            "UPDATE view_claims SET name = name || 'x'",
        )
        altered = await questions.ask(settings, statement, "victim")
        assert altered.rows.rows != before.rows.rows
        assert altered.notes == (
            "view_claims and view_claim_devices of victim are of another version of redra and "
            "were not compared: `redra rebuild victim` makes them again, as `redra up` does",
        )
        await recordings.rebuild(store, settings, "victim", lambda *_: None)
        after = await questions.ask(settings, statement, "victim")
        assert (after.rows.rows, after.notes) == (before.rows.rows, ())


VICTIM, OTHER = (
    f"(SELECT history FROM histories WHERE name = '{name}')" for name in ("victim", "other")
)


def rows_of_another_history(projection: str) -> str:
    """Rows and the hash kept with them, which fit each other, and not the log."""
    parts = []
    for table in stores.view_tables()[projection]:
        name = view_name(table.name)
        columns = ", ".join(f'"{column.name}"' for column in table.columns)
        parts.append(
            f"DELETE FROM {name} WHERE history = {VICTIM};"
            f"INSERT INTO {name} (history, {columns}) "
            f"SELECT {VICTIM}, {columns} FROM {name} WHERE history = {OTHER};"
        )
    return "".join(parts) + (
        "UPDATE checkpoints SET state_hash = (SELECT state_hash FROM checkpoints AS its "
        f"WHERE its.projection = checkpoints.projection AND its.history = {OTHER}) "
        f"WHERE projection = '{projection}' AND history = {VICTIM}"
    )


def another_state(projection: str) -> str:
    """A state with another device, and a digest that fits it (docs/explanation/proof.md)."""
    altered = (
        "decode(replace(encode(substr(state, 72), 'hex'), encode('gpu-0', 'hex'), "
        "encode('gpu-1', 'hex')), 'hex')"
    )
    return (
        "UPDATE snapshots SET state = substr(state, 1, 39) || sha256(convert_to(projection || ' ' "
        f"|| version || ' ', 'UTF8') || substr(state, 8, 32) || {altered}) || {altered} "
        f"WHERE projection = '{projection}' AND history = {VICTIM}"
    )


async def build_views(url: str) -> None:
    settings = Settings(database_url=url)
    async with stores.open_store(settings) as store:
        for name in ("victim", "other"):
            await recordings.rebuild(store, settings, name, lambda *_: None)


@pytest.fixture(scope="module")
def built(server_url: str, untouched: str) -> Iterator[str]:
    """The name of a database with the rows and states of all views."""
    with new_database(server_url, "built", untouched) as url:
        in_thread(lambda: anyio.run(build_views, url))
        yield urlsplit(url).path.removeprefix("/")


def no_rows(projection: str) -> str:
    """No rows, and the hash of another view that has none."""
    tables = [view_name(table.name) for table in stores.view_tables()[projection]]
    return "".join(f"DELETE FROM {name} WHERE history = {VICTIM};" for name in tables) + (
        "UPDATE checkpoints SET state_hash = (SELECT state_hash FROM checkpoints AS its "
        f"WHERE its.projection = 'counters' AND its.history = {VICTIM}) "
        f"WHERE projection = '{projection}' AND history = {VICTIM}"
    )


@draws.in_turn("wrongs")
@pytest.mark.parametrize(
    ("forge", "projection"),
    [
        (no_rows, "inventory"),
        *((rows_of_another_history, name)
          for name in ("objects", "claims", "decisions", "timeline", "activity")),
    ],
)  # fmt: skip
async def test_rows_that_fit_their_checkpoint_are_compared_with_the_log(
    server_url: str, built: str, forge: Callable[[str], str], projection: str
) -> None:
    with new_database(server_url, template=built) as url:
        assert (await verify(url)).agrees
        await say(url, forge(projection))
        report = await verify(url)
        assert report.chain.problems == (
            f"the rows of the view {projection} at revision {report.revision} are not those of the "
            "log; `redra rebuild` makes them again",
        )
        await build_views(url)
        assert (await verify(url)).agrees


ALTERED_VALUES = {
    "BIGINT": 'coalesce("{}", 0) + 1000',
    "INTEGER": '"{}" + 1000',
    "NUMERIC": '"{}" + 1000',
    "TEXT": "\"{}\" || 'x'",
    "TIMESTAMP WITH TIME ZONE": "\"{}\" + interval '1 second'",
    "BYTEA": "\"{}\" || '\\x00'",
    "BOOLEAN": 'NOT "{}"',
    "JSON": "'{{\"altered\": [1]}}'",
}
"""Another value of a column, by the type of the column."""

NOT_NOTICED = {
    "histories.name": "a history may be renamed",
    "histories.parent_revision": "nobody reads it without a parent",
    "log_heads.epoch": "counts the writers that had the log, and says nothing of the log",
    "checkpoints.version": "rows of another version are made anew; `redra sql` has a note",
    "snapshots.projection": "nobody begins with it: it is no view's state",
    "snapshots.version": "nobody begins with it: it is a state of another program",
    "snapshots.revision": "nobody begins with it: the log has another hash there",
} | {
    f"leases.{name}": "who writes at present is no part of the history"
    for name in ("name", "epoch", "holder", "until")
} | {
    f"tombstones.{name}": "the history and its chain are gone"
    for name in ("name", "seed", "settings", "created", "revision", "hash", "time", "deleted",
                 "deleted_by")
}  # fmt: skip
"""Columns outside of the events that verification does not judge, with the reason."""

WITHOUT_ROWS = {"view_counters", "view_taint_rules", "view_taints"}
"""Tables of which the history has no rows."""

BESIDE_THE_EVENTS = [
    table for table in metadata.tables.values()
    if "history" in table.columns and table.name not in {"log_events", *WITHOUT_ROWS}
]  # fmt: skip


async def put_beside(url: str, folder: Path) -> int:
    """Put a row into each table that has none; returns the number of the victim."""
    signed = await head_of(url, folder)
    async with stores.open_store(Settings(database_url=url)) as store:
        info = await stores.find_history(store, "victim")
        await store.log.keep_heads(info.id, [signed])
        await store.leases.acquire(info.id, "writer", "me", seconds=600.0)
        other = await stores.find_history(store, "other")
        await copying.copy_history(store.log, other, "gone", until=Revision(5))
        gone = await stores.find_history(store, "gone")
        await store.log.delete_history(gone.id, at=CREATED, by="alice")
    return info.id


@draws.in_turn("wrongs")
@pytest.mark.parametrize("table", BESIDE_THE_EVENTS, ids=lambda table: table.name)
async def test_what_is_altered_beside_the_events_is_noticed(
    server_url: str, built: str, tmp_path: Path, table: Table
) -> None:
    """One value of one row at a time, in each column."""
    name = table.name
    with new_database(server_url, template=built) as url:
        number = await put_beside(url, tmp_path)
        connection = await asyncpg.connect(url)
        # No guard and no reference is in the way.
        await connection.execute("SET session_replication_role = replica")
        await connection.execute(
            f"ALTER TABLE {name} DISABLE TRIGGER ALL; CREATE TEMP TABLE saved AS TABLE {name}"
        )
        own = "" if name == "tombstones" else f"WHERE history = {number}"
        for column in table.columns:
            if column.name == "history":
                continue
            kind = str(column.type.compile(dialect=postgresql.dialect())).partition("(")[0]
            value = ALTERED_VALUES[kind.partition(" COLLATE")[0]].format(column.name)
            altered = await connection.execute(
                f'UPDATE {name} SET "{column.name}" = {value} '
                f"WHERE ctid = (SELECT max(ctid) FROM {name} {own})"
            )
            assert altered == "UPDATE 1"
            is_noticed = not await agrees(url, connection, number)
            assert is_noticed == (f"{name}.{column.name}" not in NOT_NOTICED), column.name
            await connection.execute(
                f"DELETE FROM {name}; INSERT INTO {name} OVERRIDING SYSTEM VALUE TABLE saved"
            )
        await connection.close()
        assert (await verify(url)).agrees


async def agrees(url: str, connection: asyncpg.Connection, history: int) -> bool:
    """Whether verification finds nothing wrong."""
    name = await connection.fetchval("SELECT name FROM histories WHERE history = $1", history)
    try:
        return (await verify(url, name=name)).agrees
    except LogError:
        return False


@draws.in_turn("rows of wrongs")
@pytest.mark.parametrize("projection", stores.view_tables())
async def test_state_that_fits_its_digest_is_compared_with_the_log(
    server_url: str, built: str, projection: str
) -> None:
    with new_database(server_url, template=built) as url:
        before = await asyncpg.connect(url)
        names = await before.fetchval(
            "SELECT count(*) FROM snapshots WHERE projection = $1 AND "
            "position(convert_to('gpu-0', 'UTF8') IN state) > 0", projection
        )  # fmt: skip
        await before.close()
        await say(url, another_state(projection))
        report = await verify(url)
        # Some views hold no device: of these nothing was altered.
        assert report.chain.problems == (names > 0) * (
            f"the stored state at revision {report.revision} of the view {projection} is not that "
            "of the log; `redra rebuild` makes it again",
        )


async def test_a_chain_without_settings_is_said_to_be_one(url: str) -> None:
    async with forger(url) as hand:
        await settings_taken_out(hand)
    assert (await verify(url)).chain.settings == "unanchored"


async def test_an_older_head_agrees_with_a_log_that_grew(url: str, tmp_path: Path) -> None:
    async with stores.open_store(Settings(database_url=url)) as store:
        info = await stores.find_history(store, "victim")
        event = (await store.log.read(info.id, after=Revision(14), limit=1))[0]
    old = open_head_key(tmp_path).sign(
        "victim", Head(revision=event.revision, hash=event.hash, time=event.stamp.time)
    )
    assert (await verify(url, (old,))).agrees
    wrong = msgspec.structs.replace(old, hash="sha256:" + "00" * 32)
    assert "it was rewritten" in (await verify(url, (wrong,))).chain.problem


FORGED_HEADS = {
    "signature": 'replace(head::text, \'"signature":"\', \'"signature":"A\')',
    "hash": "replace(head::text, 'sha256:', 'sha256:0')",
    "revision": "regexp_replace(head::text, '\"revision\":[0-9]+', '\"revision\":3')",
    "key": "replace(head::text, 'ed25519:', 'ed25519:é')",
    "type": '\'{"revision":"x"}\'',
    "another field": "replace(head::text, '{', '{\"note\":\"checked\",')",
    "a field twice": "replace(head::text, '{', '{\"revision\":3,')",
    "a field less": "replace(head::text, '\"format\":1,', '')",
    "none": "'null'",
}


@draws.in_turn("rows of wrongs")
@pytest.mark.parametrize("head", FORGED_HEADS.values(), ids=FORGED_HEADS)
async def test_head_that_is_kept_with_the_log_keeps_its_signature(
    url: str, tmp_path: Path, head: str
) -> None:
    """Whoever writes the log anew can write its kept heads anew, but not sign them."""
    signed = await head_of(url, tmp_path)
    async with stores.open_store(Settings(database_url=url)) as store:
        info = await stores.find_history(store, "victim")
        await store.log.keep_heads(info.id, [signed])
    assert (await verify(url)).agrees
    await say(url, f"UPDATE signed_heads SET head = ({head})::json")
    assert "the signature of the head kept" in await problems_of(url)
