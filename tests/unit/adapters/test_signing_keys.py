"""The key of service accounts' tokens: one for a folder, and nobody else's."""

import threading

import pytest

from app.adapters import signing_keys
from app.domain.errors import InputError


def test_key_is_made_once_and_private(tmp_path):
    path = tmp_path / "data" / "a.key"
    key = signing_keys.open_key(path)
    assert len(key) == signing_keys.KEY_BYTES
    assert path.stat().st_mode & 0o777 == 0o600
    assert signing_keys.open_key(path) == key
    assert signing_keys.open_key(tmp_path / "b.key") != key
    assert [found.name for found in path.parent.iterdir()] == ["a.key"]


def test_makers_at_once_end_with_one_key(tmp_path, monkeypatch):
    path = tmp_path / "a.key"
    meeting = threading.Barrier(2, timeout=20)
    numbers = iter(range(100, 200))
    monkeypatch.setattr(signing_keys.os, "getpid", lambda: next(numbers))
    link = signing_keys.os.link

    def link_together(*places):
        meeting.wait()
        link(*places)

    monkeypatch.setattr(signing_keys.os, "link", link_together)
    found = []
    makers = [
        threading.Thread(target=lambda: found.append(signing_keys.open_key(path))) for _ in range(2)
    ]
    for maker in makers:
        maker.start()
    for maker in makers:
        maker.join()
    assert len(found) == 2
    assert found[0] == found[1]


@pytest.mark.parametrize("mode", [0o640, 0o604, 0o660])
def test_key_that_others_may_read_is_refused(tmp_path, mode):
    path = tmp_path / "a.key"
    signing_keys.open_key(path)
    path.chmod(mode)
    with pytest.raises(InputError, match="others than its owner may read this key"):
        signing_keys.open_key(path)


@pytest.mark.parametrize("text", [b"", b"no base64!", b"c2hvcnQ=\n"])
def test_file_that_is_no_key_is_refused(tmp_path, text):
    path = tmp_path / "a.key"
    path.touch(mode=0o600)
    path.write_bytes(text)
    with pytest.raises(InputError, match="this is no key"):
        signing_keys.open_key(path)


def test_folder_in_place_of_a_key_is_refused(tmp_path):
    with pytest.raises(InputError, match="cannot be read"):
        signing_keys.open_key(tmp_path)
