"""Private folders: those of processes that were killed are removed, and no others."""

import os
import signal
import tempfile
from pathlib import Path

import pytest

from app.adapters.private_folders import PREFIX, PrivateFolder, held, remove_left


def test_only_the_folder_of_a_process_that_ended_is_removed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    (tmp_path / f"{PREFIX}link").symlink_to(tmp_path)
    (tmp_path / "another").mkdir()
    reading, writing = os.pipe()
    child = os.fork()
    if not child:
        held = PrivateFolder()
        (held.path / "records").write_text("of a recording")
        os.write(writing, held.name.encode())
        signal.pause()
    left = Path(os.read(reading, 1_000).decode())
    with PrivateFolder() as mine:
        assert (left / "records").exists()
        os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)
        with PrivateFolder():
            assert Path(mine).is_dir()
            assert not left.exists()
    assert {each.name for each in tmp_path.iterdir()} == {f"{PREFIX}link", "another"}


def test_folder_that_another_process_holds_outlives_the_one_that_made_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A server reads what the process of a job wrote, after that process has ended."""
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    reading, writing = os.pipe()
    child = os.fork()
    if not child:
        made = PrivateFolder()
        os.write(writing, made.name.encode())
        signal.pause()
    left = Path(os.read(reading, 1_000).decode())
    with held(left):
        os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)
        remove_left()
        assert left.is_dir()
    remove_left()
    assert not left.exists()
