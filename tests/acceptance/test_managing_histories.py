"""Histories as wholes at the command line; a server that serves what is deleted goes on."""

import json
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from app.adapters.running import notice
from app.bootstrap import managing
from app.bootstrap.histories import open_histories
from app.bootstrap.stores import memory_store
from app.domain.errors import InputError
from app.settings import Settings
from tests import draws
from tests.acceptance.server_process import ServerProcess, wait_for_own_objects
from tests.command_line import EXAMPLES, database_running, redra

pytestmark = [pytest.mark.slow]


@pytest.fixture
def data(tmp_path: Path) -> Iterator[Path]:
    """A data folder whose database runs."""
    with database_running(tmp_path / "data"):
        yield tmp_path / "data"


def names(data: Path) -> list[str]:
    code, out, error = redra("histories", "-o", "json", data=data)
    assert code == 0, error
    return [row["name"] for row in json.loads(out)]


@draws.in_turn("ways")
def test_histories_are_made_renamed_copied_and_deleted(data: Path) -> None:
    assert redra("histories", "create", "one", "--profile", "1.36", data=data)[0] == 0
    code, _, error = redra("histories", "create", "one", data=data)
    assert (code, "already exists" in error) == (2, True)
    assert redra("histories", "rename", "one", "two", data=data)[0] == 0
    assert redra("histories", "copy", "two", "three", "--to", "4", data=data)[0] == 0
    code, out, error = redra("histories", "-o", "json", data=data)
    rows = {row["name"]: row for row in json.loads(out)}
    assert sorted(rows) == ["three", "two"]
    assert (rows["three"]["revision"], rows["three"]["profile"]) == (4, "1.36")
    code, out, _ = redra("verify", "three", "-o", "json", data=data)
    assert (code, json.loads(out)["chain"]["settings"]) == (0, "anchored")
    code, _, error = redra("histories", "delete", "two", data=data)
    assert code == 2
    assert "delete two for good? there is no terminal to ask for confirmation; add --yes" in error
    assert names(data) == ["three", "two"]
    assert redra("histories", "delete", "two", "--yes", data=data)[0] == 0
    code, _, error = redra("histories", "delete", "two", "--yes", data=data)
    assert (code, "there is no history 'two'" in error) == (2, True)
    code, out, _ = redra("histories", "--deleted", "-o", "json", data=data)
    (tombstone,) = json.loads(out)
    assert (tombstone["name"], tombstone["hash"]) == ("two", rows["two"]["head"])
    assert names(data) == ["three"]


@draws.in_turn("ways")
def test_everything_is_deleted_only_when_that_is_said(data: Path) -> None:
    assert redra("import", EXAMPLES, "--history", "kept", data=data)[0] == 0
    code, out, error = redra("migrate", "base", data=data)
    assert (code, out) == (2, "")
    assert (
        "delete all 1 histories (kept) for good? there is no terminal to ask for confirmation"
        in error
    )
    assert "--yes-delete-all-histories" in error
    assert names(data) == ["kept"]
    code, out, _ = redra("migrate", "base", "--yes-delete-all-histories", data=data)
    assert (code, out) == (0, "the schema is at base\n")
    assert names(data) == []
    assert redra("migrate", "base", data=data)[0] == 0, "nothing is lost"


@draws.in_turn("ways")
def test_controllers_are_switched_and_the_switch_stands_in_the_log(data: Path) -> None:
    assert redra("histories", "create", "one", data=data)[0] == 0

    def states(*switches: str) -> dict[str, str]:
        code, out, error = redra("controllers", "one", *switches, "-o", "json", data=data)
        assert code == 0, error
        return json.loads(out)["controllers"]

    assert (states()["scheduling"], states()["claims"]) == ("on", "on")
    assert states("scheduling=off", "claims=off")["scheduling"] == "off"
    assert states("claims=on")["claims"] == "on"
    assert states()["scheduling"] == "off"
    code, out, _ = redra("log", "one", data=data)
    assert code == 0
    assert sum("redra controllers" in line for line in out.splitlines()) == 2
    assert redra("verify", "one", data=data)[0] == 0
    code, _, error = redra("controllers", "one", "scheduler=off", data=data)
    assert (code, "there is no controller 'scheduler'" in error) == (2, True)
    both = ("scheduling=on", "claims=off", "scheduling=off")
    code, _, error = redra("controllers", "one", *both, data=data)
    assert (code, "scheduling is to be both on and off" in error) == (2, True)
    code, _, error = redra("controllers", "one", "scheduling", data=data)
    assert (code, "is not NAME=on or NAME=off" in error) == (2, True)
    assert redra("import", EXAMPLES, "--history", "kept", data=data)[0] == 0
    code, _, error = redra("controllers", "kept", "scheduling=off", data=data)
    assert (code, "which is a recording" in error) == (2, True)


@draws.in_turn("ways")
def test_controller_that_a_server_leaves_out_is_run_by_none(tmp_path: Path) -> None:
    server = ServerProcess(tmp_path, "--without", "scheduling")
    try:
        server.start()
        with server.client() as client:
            client.post("/api/v1/namespaces", json={"metadata": {"name": "default"}})
            wait_for_own_objects(client, "default")
        code, out, error = redra("controllers", "default", "-o", "json", data=server.data)
        assert code == 0, error
        found = json.loads(out)
        assert found["controllers"]["scheduling"] == "on"
        assert "scheduling" not in found["runBy"]
        assert len(set(found["runBy"].values())) == 1
        code, out, _ = redra("controllers", "default", data=server.data)
        rows = {line.split()[0]: line.split()[1:] for line in out.splitlines()}
        assert rows["scheduling"] == ["on", "-"]
        assert any(rows[name] == ["on", holder] for name, holder in found["runBy"].items())
        for words in (("rename", "default", "other"), ("delete", "default", "--yes")):
            code, _, error = redra("histories", *words, data=server.data)
            assert (code, "is served at / and stays while a server runs" in error) == (2, True)
        with server.client() as client:
            assert client.get("/api/v1/namespaces/default").status_code == 200
    finally:
        server.end()
    code, out, _ = redra("controllers", "default", "-o", "json", data=server.data)
    assert json.loads(out)["runBy"] == {}, "no process runs"
    assert redra("histories", "rename", "default", "other", data=server.data)[0] == 0


@pytest.mark.parametrize("served", ["noticed", "led elsewhere"])
async def test_history_at_the_root_stays_while_a_process_serves_it(
    tmp_path: Path, served: str
) -> None:
    store, settings = memory_store(), Settings(data=tmp_path)
    async with open_histories(store, settings) as histories:
        info = (await histories.create_cluster("default", settings={})).info
        await histories.create_cluster("night", settings={})
    with ExitStack() as stack:
        if served == "noticed":
            sign = notice.Notice(url="http://127.0.0.1:1", kubeconfig=tmp_path / "kubeconfig")
            stack.enter_context(notice.claimed(tmp_path)).post(sign, database="")
        else:
            await store.leases.acquire(info.id, "claims", "far-away-1", seconds=600)
        with pytest.raises(InputError, match="stays while a server runs"):
            await managing.rename(store, settings, "default", "other")
        with pytest.raises(InputError, match="stays while a server runs"):
            await managing.find(store, settings, ("default",), unfinished=False)
        await managing.rename(store, settings, "night", "day")
    assert [one.name for one in await store.log.histories()] == ["day", "default"]
