"""What is costly is made once for all processes of a run."""

import os
import tempfile
from concurrent.futures import ThreadPoolExecutor
from types import SimpleNamespace

import pytest

from tests import in_memory, run_folder


def test_what_a_run_shares_is_made_once_and_whole(tmp_path, monkeypatch):
    monkeypatch.setenv("REDRA_TESTS_FOLDER", str(tmp_path))
    calls = []

    def make(path):
        calls.append(path)
        path.mkdir()
        (path / "part").write_text("whole")

    with ThreadPoolExecutor(4) as beside:
        made = list(beside.map(lambda _: run_folder.made_once("costly", make), range(4)))
    assert len(calls) == 1
    assert {(each / "part").read_text() for each in made} == {"whole"}


def test_what_could_not_be_made_is_made_by_the_next(tmp_path, monkeypatch):
    monkeypatch.setenv("REDRA_TESTS_FOLDER", str(tmp_path))

    def fail(path):
        path.mkdir()
        raise OSError("the disk is full")

    for _ in range(2):
        try:
            run_folder.made_once("costly", fail)
        except OSError:
            assert not (tmp_path / "costly").exists()
    assert run_folder.made_once("costly", lambda path: path.write_text("x")).read_text() == "x"


@pytest.mark.parametrize(
    ("flags", "room", "is_in_memory"),
    [(0, 0, True), (os.ST_NOEXEC, 0, False), (0, 1 << 60, False)],
    ids=["room", "no programs", "no room"],
)
def test_temporary_files_of_a_run_are_in_its_folder(
    tmp_path, monkeypatch, flags, room, is_in_memory
):
    memory, disk = tmp_path / "memory", tmp_path / "disk"
    memory.mkdir()
    disk.mkdir()
    monkeypatch.setattr(in_memory, "MEMORY", memory)
    monkeypatch.setattr(in_memory, "BYTES_MIN", room)
    blocks = dict.fromkeys(("f_blocks", "f_bfree", "f_bavail"), 1 << 50)
    system = SimpleNamespace(f_flag=flags, f_frsize=1, **blocks)
    monkeypatch.setattr(os, "statvfs", lambda _: system)
    monkeypatch.setattr(tempfile, "tempdir", None)
    monkeypatch.setattr(run_folder, "Finalize", lambda *_, **__: None)
    monkeypatch.setenv("TMPDIR", str(disk))
    monkeypatch.delenv("REDRA_TESTS_FOLDER")
    folder = run_folder.run_folder()
    assert folder.parent == (memory if is_in_memory else disk)
    assert (
        tempfile.gettempdir() == os.environ["TMPDIR"] == str(folder) == str(run_folder.run_folder())
    )


def test_process_that_was_forked_leaves_the_folder(tmp_path):
    (tmp_path / "kept").mkdir()
    run_folder._remove(str(tmp_path / "kept"), os.getpid() + 1)
    assert (tmp_path / "kept").exists()
    run_folder._remove(str(tmp_path / "kept"), os.getpid())
    assert not (tmp_path / "kept").exists()
