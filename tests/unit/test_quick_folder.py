"""The folders of servers are in memory where there is room, and nothing stays there."""

import os
import subprocess

import pytest

from tests import conftest, in_memory, prepared_data


def test_what_killed_runs_left_in_memory_is_removed(tmp_path, tmp_path_factory, monkeypatch):
    ended = subprocess.Popen(["true"])
    ended.wait()
    monkeypatch.setattr(in_memory, "MEMORY", tmp_path)
    monkeypatch.setattr(in_memory, "BYTES_MIN", 0)
    living = f"redra-tests-{os.getpid()}-a"
    for name in (living, f"redra-tests-{ended.pid}-a", "other"):
        (tmp_path / name / "server").mkdir(parents=True)
    with conftest.quick_folder(tmp_path_factory) as folder:
        assert folder.parent == tmp_path
        assert {path.name for path in tmp_path.iterdir()} == {living, "other", folder.name}
    assert {path.name for path in tmp_path.iterdir()} == {living, "other"}


def test_without_room_or_such_a_folder_it_is_on_the_disk(tmp_path, tmp_path_factory, monkeypatch):
    for memory, room in ((tmp_path, 1 << 60), (tmp_path / "none", 0)):
        monkeypatch.setattr(in_memory, "MEMORY", memory)
        monkeypatch.setattr(in_memory, "BYTES_MIN", room)
        with conftest.quick_folder(tmp_path_factory) as folder:
            assert folder.is_relative_to(tmp_path_factory.getbasetemp())
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("room", [0, 1 << 60])
def test_data_folder_is_a_link_into_memory_where_there_is_room(tmp_path, monkeypatch, room):
    made, memory, data = tmp_path / "made", tmp_path / "memory", tmp_path / "data"
    (made / "postgres").mkdir(parents=True)
    memory.mkdir()
    monkeypatch.setattr(in_memory, "MEMORY", memory)
    monkeypatch.setattr(in_memory, "BYTES_MIN", room)
    monkeypatch.setattr(prepared_data, "_made", lambda: made)
    monkeypatch.setattr(prepared_data, "_COPIES", [])
    prepared_data.prepare(data)
    (data / "kept").touch()
    prepared_data.prepare(data)
    assert {path.name for path in data.iterdir()} == {"postgres", "kept"}
    assert data.is_symlink() is data.resolve().is_relative_to(memory) is (room == 0)
    prepared_data.forget()
    assert not list(memory.iterdir())
    assert data.exists() is (room > 0)
