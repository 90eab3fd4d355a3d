"""The shared server's folder is in memory where there is room, and nothing stays there."""

import os
import subprocess

from tests import conftest


def test_what_killed_runs_left_in_memory_is_removed(tmp_path, tmp_path_factory, monkeypatch):
    ended = subprocess.Popen(["true"])
    ended.wait()
    monkeypatch.setattr(conftest, "_MEMORY", tmp_path)
    monkeypatch.setattr(conftest, "_MEMORY_BYTES_MIN", 0)
    living = f"redra-tests-{os.getpid()}-a"
    for name in (living, f"redra-tests-{ended.pid}-a", "other"):
        (tmp_path / name / "server").mkdir(parents=True)
    with conftest.quick_folder(tmp_path_factory) as folder:
        assert folder.parent == tmp_path
        assert {path.name for path in tmp_path.iterdir()} == {living, "other", folder.name}
    assert {path.name for path in tmp_path.iterdir()} == {living, "other"}


def test_without_room_or_such_a_folder_it_is_on_the_disk(tmp_path, tmp_path_factory, monkeypatch):
    for memory, room in ((tmp_path, 1 << 60), (tmp_path / "none", 0)):
        monkeypatch.setattr(conftest, "_MEMORY", memory)
        monkeypatch.setattr(conftest, "_MEMORY_BYTES_MIN", room)
        with conftest.quick_folder(tmp_path_factory) as folder:
            assert folder.is_relative_to(tmp_path_factory.getbasetemp())
    assert not list(tmp_path.iterdir())
