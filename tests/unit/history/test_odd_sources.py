"""Sources that a machine mixes: nothing is lost without a word, and no traceback comes of it.

Each piece says what must come of it. Pieces are packed and put into folders and archives by chance;
what must come of the whole is what must come of its pieces.
"""

import bz2
import errno
import gzip
import io
import json
import lzma
import os
import random
import tarfile
import zipfile
from dataclasses import dataclass

import pytest
import yaml
import zstandard

from app.adapters.history.opening import open_history
from app.adapters.history.reading import ReadOptions
from app.domain.errors import InputError
from tests import draws
from tests.command_line import redra
from tests.unit.history.worlds import PODS, audit, tree


def pod(name):
    return tree(PODS, name=name, rv=5, spec={"nodeName": "n"}, status={"phase": "Running"})


def as_yaml(name):
    return yaml.safe_dump(pod(name))


@dataclass(frozen=True)
class Piece:
    """A file: its content, the objects in it, and whether it is `lost` or `left` out."""

    content: bytes
    names: tuple[str, ...] = ()
    lost: bool = False
    left: bool = False


MAKERS = {
    "object": lambda name: Piece(json.dumps(pod(name), indent=2).encode(), (name,)),
    "list": lambda name: Piece(
        json.dumps({"kind": "PodList", "apiVersion": "v1", "items": [pod(name)]}).encode(), (name,)
    ),
    "documents": lambda name: Piece(f"---\n{as_yaml(name)}---\n---\n".encode(), (name,)),
    "bom": lambda name: Piece(b"\xef\xbb\xbf" + as_yaml(name).encode(), (name,)),
    "crlf": lambda name: Piece(as_yaml(name).replace("\n", "\r\n").encode(), (name,)),
    "utf-16": lambda name: Piece(as_yaml(name).encode("utf-16"), (name,)),
    "utf-16 without a mark": lambda name: Piece(as_yaml(name).encode("utf-16-le"), (name,)),
    "markdown": lambda name: Piece(f"# a\n\n```yaml\n{as_yaml(name)}```\n".encode(), (name,)),
    "log": lambda name: Piece(
        ("I0101 hello\n" * 30 + json.dumps(pod(name)) + "\nbye\n").encode(), (name,)
    ),
    "watch": lambda name: Piece(
        json.dumps({"type": "ADDED", "object": pod(name)}).encode() + b"\n", (name,)
    ),
    "audit": lambda name: Piece(
        json.dumps(audit("create", pod(name), type_=PODS, name=name)).encode() + b"\n", (name,)
    ),
    "key twice": lambda name: Piece(
        json.dumps(pod(name)).replace('"kind"', '"kind": "Node", "kind"').encode(), (name,), True
    ),
    "tab": lambda name: Piece(as_yaml(name).replace("  name:", "\tname:").encode(), lost=True),
    "cut": lambda name: Piece(json.dumps(pod(name), indent=2).encode()[:-40], lost=True),
    "zeros": lambda name: Piece(as_yaml(name).encode() + bytes(9), lost=True),
    "utf-32": lambda name: Piece(as_yaml(name).encode("utf-32"), lost=True),
    "deep": lambda _: Piece(b'{"kind": "Pod", "a": ' * 500 + b"1" + b"}" * 500, lost=True),
    "cut gzip": lambda name: Piece(gzip.compress(json.dumps(pod(name)).encode())[:-9], lost=True),
    "not the end of gzip": lambda name: Piece(
        gzip.compress(json.dumps(pod(name)).encode()) + b"garbage", lost=True
    ),
    "zip cut behind its files": lambda name: Piece(
        zipped([(name, json.dumps(pod(name)).encode())])[:-9], (name,)
    ),
    "zip cut in a file": lambda name: Piece(
        zipped([(name, json.dumps(pod(name)).encode())])[:90], lost=True
    ),
    "empty": lambda _: Piece(b""),
    "blank": lambda _: Piece(b" \n\n"),
    "null": lambda _: Piece(b"null", left=True),
    "no object": lambda _: Piece(b"{}", left=True),
    "prose": lambda _: Piece(b"nothing to see\n", left=True),
    "picture": lambda _: Piece(b"\x89PNG\r\n\x1a\n" + bytes(range(256)), left=True),
}
ENDS = ("", ".json", ".yaml", ".txt", ".gz", ".zip", ".log")
ODD = ("a\nb", "\t", "-o", "ü 😀", "a:b", "x\x1b[31m", "$(x)'\"", "." * 3 + "x", " ")
PACKED_MAX = 2
PACKERS = (gzip.compress, bz2.compress, lzma.compress, zstandard.compress)


def zipped(files):
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w") as archive:
        for name, content in files:
            archive.writestr(name, content)
    return out.getvalue()


def tarred(files):
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w") as archive:
        for name, content in files:
            entry = tarfile.TarInfo(name)
            entry.size = len(content)
            archive.addfile(entry, io.BytesIO(content))
    return out.getvalue()


class Mixer:
    """Mixes files by chance, and knows what must come of them, by the number of the piece."""

    def __init__(self, seed):
        self.chance = random.Random(seed)
        self.pieces = {}

    def files(self, count, depth):
        """Names and contents; a file may be packed, and may be an archive of further ones."""
        return [self._file(depth) for _ in range(count)]

    def _file(self, depth):
        chance = self.chance
        number = f"n{len(self.pieces):03d}"
        name = f"{number}{chance.choice(ODD) if chance.random() < 0.2 else ''}{chance.choice(ENDS)}"
        if depth and chance.random() < 0.3:
            self.pieces[number] = None
            inner = self.files(chance.randrange(1, 5), depth - 1)
            return name, self._packed(chance.choice((zipped, tarred))(inner))
        piece = MAKERS[chance.choice(sorted(MAKERS))](f"p-{number}")
        self.pieces[number] = piece
        return name, self._packed(piece.content) if piece.content else piece.content

    def _packed(self, content):
        for _ in range(PACKED_MAX):
            if self.chance.random() < 0.25:
                content = self.chance.choice(PACKERS)(content)
        return content


def check(mixer, path):
    """Compares what came of a source with what must come of its pieces."""
    pieces = {number: piece for number, piece in mixer.pieces.items() if piece is not None}
    names = {name for piece in pieces.values() for name in piece.names}
    if not names:
        with pytest.raises(InputError):
            open_history([path], ReadOptions())
        return
    with open_history([path], ReadOptions()) as recorded:
        seen = {record.name for record in recorded.records()}
        lost = " ".join(place for place, _ in recorded.refused_places)
        left = " ".join(place for place, _ in recorded.left_out)
    assert seen == names
    for number, piece in pieces.items():
        assert (number in lost) == piece.lost, (number, piece, lost)
        assert not piece.left or number in left, (number, piece)
        assert not piece.names or number not in left or b"hello" in piece.content or (
            b"```" in piece.content
        )  # fmt: skip
    assert lost.isprintable()


@draws.BY_DAY
@pytest.mark.parametrize("seed", draws.seeds(12))
def test_nothing_of_a_mixed_folder_is_lost_without_a_word(tmp_path, seed):
    mixer = Mixer(seed)
    for name, content in mixer.files(12, 2):
        folder = tmp_path / mixer.chance.choice(("", "a", "a/b.json", "c"))
        folder.mkdir(parents=True, exist_ok=True)
        (folder / name).write_bytes(content)
    check(mixer, tmp_path)


@pytest.mark.parametrize("seed", draws.seeds(6, first=100))
def test_nothing_of_a_mixed_archive_is_lost_without_a_word(tmp_path, seed):
    mixer = Mixer(seed)
    path = tmp_path / "all"
    path.write_bytes(mixer.chance.choice((zipped, tarred))(mixer.files(12, 1)))
    check(mixer, path)


def test_name_of_any_bytes_is_shown_as_text(tmp_path):
    for number, name in enumerate((b"\xff\xfe.json", b"a\nb.json", b"\x1b[31m.json")):
        (tmp_path / os.fsdecode(name)).write_text(json.dumps(pod(f"p{number}")))
    with open_history([tmp_path], ReadOptions()) as recorded:
        sources = {record.source for record in recorded.records()}
        assert {source.name for source in recorded.sources} == sources
    assert sources == {"\\xff\\xfe.json", "a\\x0ab.json", "\\x1b[31m.json"}


@pytest.fixture
def locked_folder(tmp_path, monkeypatch):
    """A folder with a pod beside a folder that the user may not read; root may read all."""
    folder = tmp_path / "dump"
    (folder / "locked").mkdir(parents=True)
    for path in (folder / "pod.yaml", folder / "locked" / "pod.yaml"):
        path.write_text(json.dumps(pod(path.parent.name)))
    scandir = os.scandir

    def guarded(path):
        if str(path) == str(folder / "locked"):
            raise PermissionError(errno.EACCES, "Permission denied", os.fspath(path))
        return scandir(path)

    monkeypatch.setattr(os, "scandir", guarded)
    return folder


def test_folder_that_may_not_be_read_is_a_loss(locked_folder):
    with open_history([locked_folder], ReadOptions()) as recorded:
        assert [record.name for record in recorded.records()] == ["dump"]
        lost = [("dump/locked", "the folder cannot be read: Permission denied")]
        assert recorded.refused_places == lost


def test_folder_that_may_not_be_read_is_no_clean_lint(locked_folder):
    code, out, error = redra("lint", locked_folder)
    assert (code, out) == (2, "")
    text = "the folder cannot be read: Permission denied"
    assert error == f"redra: {locked_folder}/locked: {text}\n"


def test_links_and_hidden_files_of_a_folder_are_named(tmp_path):
    (tmp_path / "pod.json").write_text(json.dumps(pod("p")))
    (tmp_path / ".hidden.json").write_text(json.dumps(pod("h")))
    (tmp_path / ".git").mkdir()
    (tmp_path / ".git" / "x.json").write_text(json.dumps(pod("g")))
    (tmp_path / "link.json").symlink_to("pod.json")
    (tmp_path / "loop").symlink_to(".")
    (tmp_path / "dead").symlink_to("nowhere")
    os.mkfifo(tmp_path / "pipe")
    with open_history([tmp_path], ReadOptions()) as recorded:
        assert [record.name for record in recorded.records()] == ["p"]
        reason = "it is a link, or not a plain file"
        assert recorded.left_out == [
            (name, reason) for name in ("dead", "link.json", "loop", "pipe")
        ]
        assert "files with names that begin with a dot, left out: 2" in recorded.notes


@pytest.mark.parametrize("name", ["pipe", "pipe.yaml", "pipe.jsonl"])
@pytest.mark.parametrize("command", [("verify",), ("lint",), ("import", "--history", "h")])
def test_pipe_that_is_named_is_refused_before_it_is_opened(tmp_path, command, name):
    """Nobody may ever write to it, and what it gave once would be gone."""
    os.mkfifo(tmp_path / name)
    code, out, error = redra(*command, str(tmp_path / name))
    assert (code, out) == (2, "")
    assert error == (
        f"redra: {tmp_path / name}: it is a pipe or a device, and a recording is read several "
        "times; write what it gives to a file, and name that\n"
    )
