"""What is costly is made once for all processes of a run."""

import os
from concurrent.futures import ThreadPoolExecutor

from tests import run_folder


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


def test_process_that_was_forked_leaves_the_folder(tmp_path):
    (tmp_path / "kept").mkdir()
    run_folder._remove(str(tmp_path / "kept"), os.getpid() + 1)
    assert (tmp_path / "kept").exists()
    run_folder._remove(str(tmp_path / "kept"), os.getpid())
    assert not (tmp_path / "kept").exists()
