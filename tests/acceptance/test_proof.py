"""Signed heads at the command line: made, compared, refused."""

import json
from collections.abc import Iterator
from pathlib import Path

import msgspec
import pytest

from app.adapters.head_keys import open_head_key, parse_heads
from app.domain.log import Head, Revision
from tests.command_line import database_running, redra
from tests.shared_data import shared_path

pytestmark = [pytest.mark.slow]


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """A data folder with the history `h`, its head in `head.json` and its bundle in `h.redra`."""
    folder = tmp_path_factory.mktemp("proof") / "data"
    source = shared_path("histories", "c-multihost-tpu")
    with database_running(folder):
        assert redra("import", source, "--history", "h", data=folder)[0] == 0
        assert redra("head", "h", "-o", folder / "head.json", data=folder)[0] == 0
        assert redra("export", "h", "-o", folder / "h.redra", data=folder)[0] == 0
        yield folder


def chain_of(out: str) -> dict:
    return json.loads(out)["chain"]


def test_head_that_agrees_is_said_to(data: Path) -> None:
    code, out, err = redra("verify", "h", "--head", data / "head.json", "-o", "json", data=data)
    assert code == 0, err
    assert [head["verdict"] for head in chain_of(out)["signedHeads"]] == ["agrees"]
    assert chain_of(out)["settings"] == "anchored"


def test_bundle_carries_its_head_and_agrees_with_the_one_sent_apart(
    data: Path, tmp_path: Path
) -> None:
    key = redra("head", "--public-key", data=data)[1]
    (tmp_path / "signer.pem").write_text(key)
    arguments = ("replay", data / "h.redra", "--mode", "verify", "-o", "json")
    given = ("--head", data / "head.json", "--head-key", tmp_path / "signer.pem")
    code, out, err = redra(*arguments, *given, data=tmp_path / "elsewhere")
    assert code == 0, err
    assert [head["verdict"] for head in chain_of(out)["signedHeads"]] == ["agrees", "agrees"]
    code, out, err = redra(*arguments, *given[:2], data=tmp_path / "elsewhere")
    assert (code, out) == (2, "")
    assert "which is not the key of this data folder" in err


def test_head_of_an_unknown_key_proves_nothing(data: Path, tmp_path: Path) -> None:
    """Whoever changes a bundle can sign it anew."""
    arguments = ("verify", data / "h.redra")
    code, out, err = redra(*arguments, data=tmp_path / "elsewhere")
    assert code == 0, err
    assert "proves nothing, because the key is not trusted" in out
    assert (
        "signed head: none given, so a log that was cut together with its head is not detected"
        in out
    )
    (tmp_path / "signer.pem").write_text(redra("head", "--public-key", data=data)[1])
    code, out, err = redra(
        *arguments, "--head-key", tmp_path / "signer.pem", data=tmp_path / "elsewhere"
    )
    assert code == 0, err
    assert "proves nothing" not in out
    assert ": agrees" in out


@pytest.mark.parametrize("moment", ["0", "1999-01-01T00:00:00Z"])
@pytest.mark.parametrize("command", ["head", "verify"])
def test_moment_before_the_first_event_is_refused(data: Path, command: str, moment: str) -> None:
    code, out, err = redra(command, "h", "--to", moment, data=data)
    assert (code, out) == (2, "")
    assert f"has no event up to {moment}" in err


def test_log_that_is_shorter_than_its_head_fails(data: Path, tmp_path: Path) -> None:
    signed = parse_heads((data / "head.json").read_bytes(), place="")[0]
    longer = Head(revision=Revision(signed.revision + 1), hash=b"x" * 32)
    file = tmp_path / "longer.json"
    file.write_bytes(msgspec.json.encode(open_head_key(data).sign("h", longer).to_json()))
    code, out, _ = redra("verify", "h", "--head", file, data=data)
    assert code == 1
    assert f"a signed head is at revision {signed.revision + 1}" in out
    assert "it was cut short" in out
    assert "FAILED: it does not agree" in out


def test_changed_head_is_refused(data: Path, tmp_path: Path) -> None:
    tree = json.loads((data / "head.json").read_text())
    file = tmp_path / "changed.json"
    file.write_text(json.dumps({**tree, "revision": tree["revision"] - 1}))
    code, _, err = redra("verify", "h", "--head", file, data=data)
    assert code == 2
    assert "the signature of the head is wrong" in err


def test_head_of_an_earlier_revision_is_of_the_event_there(data: Path) -> None:
    code, out, _ = redra("head", "h", "--to", "5", data=data)
    assert code == 0
    assert json.loads(out)["revision"] == 5
    (event,) = redra("log", "h", "--after", "4", "--limit", "1", data=data)[1].splitlines()
    assert json.loads(out)["hash"] == json.loads(event)["hash"]


def test_option_without_verification_is_refused(data: Path) -> None:
    code, _, err = redra("replay", "h", "--head", data / "head.json", data=data)
    assert code == 2
    assert "--head: it applies to verify replays" in err
