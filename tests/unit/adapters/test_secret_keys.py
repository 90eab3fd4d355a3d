"""The keys of Secrets: who can read what, with which files."""

import base64

import msgspec
import pytest

from app.adapters.secret_keys import SecretKeys
from app.domain.errors import InputError
from app.domain.log import HistoryId, HistoryInfo
from app.domain.objects.kinds.secret_values import key_id
from app.domain.values.timestamps import Instant

PLACE, OTHER = b'["a","b","data","c"]', b'["a","b","data","d"]'


def keys(folder, **options):
    return SecretKeys(folder / "secrets.key", folder / "imported.key", **options)


def history(name="h", created=1):
    return HistoryInfo(id=HistoryId(1), name=name, created=Instant(created))


def test_values_come_back_in_their_place_alone(tmp_path):
    cipher = keys(tmp_path).cipher(history())
    text = cipher.protect(PLACE, b"word")
    assert cipher.reveal(PLACE, text) == b"word"
    assert cipher.reveal(OTHER, text) is None
    flipped = text[:-5] + ("A" if text[-5] != "A" else "B") + text[-4:]
    assert cipher.reveal(PLACE, flipped) is None
    assert cipher.reveal(PLACE, text[:-8]) is None
    assert cipher.reveal(PLACE, text + "!") is None


def test_key_is_private_and_the_same_for_all_processes_of_a_folder(tmp_path):
    text = keys(tmp_path).cipher(history()).protect(PLACE, b"word")
    assert (tmp_path / "secrets.key").stat().st_mode & 0o777 == 0o600
    again = keys(tmp_path).cipher(history())
    assert again.reveal(PLACE, text) == b"word"
    assert again.protect(PLACE, b"word") == text


def test_equal_values_differ_between_places_histories_and_folders(tmp_path):
    here = keys(tmp_path / "one")
    texts = {
        here.cipher(history()).protect(PLACE, b"word"),
        here.cipher(history()).protect(OTHER, b"word"),
        here.cipher(history("other")).protect(PLACE, b"word"),
        here.cipher(history(created=2)).protect(PLACE, b"word"),
        keys(tmp_path / "two").cipher(history()).protect(PLACE, b"word"),
    }
    assert len({text.rpartition(":")[2] for text in texts}) == 5


def test_renamed_history_reads_what_it_wrote_before(tmp_path):
    here = keys(tmp_path)
    text = here.cipher(history()).protect(PLACE, b"word")
    assert here.cipher(history("renamed")).reveal(PLACE, text) == b"word"


def test_without_the_key_nothing_is_revealed(tmp_path):
    text = keys(tmp_path / "one").cipher(history()).protect(PLACE, b"word")
    assert keys(tmp_path / "two").cipher(history()).reveal(PLACE, text) is None
    assert not (tmp_path / "two" / "secrets.key").exists()


def test_key_of_one_history_opens_no_other(tmp_path):
    here, there = keys(tmp_path / "one"), keys(tmp_path / "two")
    text = here.cipher(history()).protect(PLACE, b"word")
    other = here.cipher(history("other")).protect(PLACE, b"else")
    reader = there.cipher(history("new"))
    there.take({key_id(text): here.find(key_id(text))})
    assert reader.reveal(PLACE, text) == b"word"
    assert reader.reveal(PLACE, other) is None
    assert (tmp_path / "two" / "imported.key").stat().st_mode & 0o777 == 0o600
    assert keys(tmp_path / "two").cipher(history()).reveal(PLACE, text) == b"word"


def test_key_that_another_process_takes_is_noticed(tmp_path):
    here, there = keys(tmp_path / "one"), keys(tmp_path / "two")
    text = here.cipher(history()).protect(PLACE, b"word")
    reader = there.cipher(history())
    assert reader.reveal(PLACE, text) is None
    keys(tmp_path / "two").take({key_id(text): here.find(key_id(text))})
    assert reader.reveal(PLACE, text) == b"word"


def test_first_line_encrypts_and_all_decrypt(tmp_path):
    old = keys(tmp_path).cipher(history()).protect(PLACE, b"word")
    file = tmp_path / "secrets.key"
    file.write_bytes(base64.b64encode(bytes(range(32))) + b"\n" + file.read_bytes())
    cipher = keys(tmp_path).cipher(history())
    new = cipher.protect(PLACE, b"word")
    assert key_id(new) != key_id(old)
    assert [cipher.reveal(PLACE, text) for text in (old, new)] == [b"word", b"word"]


def test_digests_are_recognised_and_never_revealed(tmp_path):
    cipher = keys(tmp_path, digests=True).cipher(history())
    text = cipher.protect(PLACE, b"word")
    assert cipher.reveal(PLACE, text) is None
    assert cipher.matches(PLACE, b"word", text)
    assert not cipher.matches(PLACE, b"other", text)
    assert not cipher.matches(OTHER, b"word", text)
    assert not keys(tmp_path / "two").cipher(history()).matches(PLACE, b"word", text)


@pytest.mark.parametrize("content", [b"", b"\n", b"no base64!\n", b"c2hvcnQ=\n"])
def test_file_that_is_no_key_is_refused(tmp_path, content):
    file = tmp_path / "secrets.key"
    file.touch(mode=0o600)
    file.write_bytes(content)
    with pytest.raises(InputError, match="this is no key"):
        keys(tmp_path).open()


def test_key_that_others_may_read_is_refused(tmp_path):
    keys(tmp_path).open()
    (tmp_path / "secrets.key").chmod(0o644)
    with pytest.raises(InputError, match="others than its owner"):
        keys(tmp_path).open()


@pytest.mark.parametrize("name", ["", "a b", "x" * 25, "0" * 8 + "." + "0" * 15, "../x"])
def test_bundle_cannot_bring_keys_of_other_names(tmp_path, name):
    with pytest.raises(InputError, match="does not name a key"):
        keys(tmp_path).take({name: bytes(64)})
    assert not list(tmp_path.iterdir())


def test_keys_of_a_bundle_are_json(tmp_path):
    here = keys(tmp_path)
    text = here.cipher(history()).protect(PLACE, b"word")
    wire = msgspec.json.encode({key_id(text): here.find(key_id(text))})
    assert msgspec.json.decode(wire, type=dict[str, bytes])[key_id(text)] == here.find(key_id(text))
