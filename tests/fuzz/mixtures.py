"""Files of every format, randomly changed, joined and packed, as in a bug report."""

import gzip
import io
import lzma
import tarfile
import zipfile
from pathlib import Path

import zstandard

from tests.fuzz import mutations
from tests.unit.history.formats import dumps, truth
from tests.unit.history.formats.test_every_format import CASES

TEXTS = (
    b"",
    b"error: the server is gone\n",
    b"```\n",
    b"---\n",
    b"==== START logs for container a of pod b/c ====\n",
    b"{\n",
    b'{"apiVersion": "v1", "kind": \n',
    b"NAME   READY   STATUS   RESTARTS   AGE\n",
    b"Name: x\nNamespace: y\n",
    b"\xff\xfe\x00",
    b"kind: [\n",
)
PACKINGS = (gzip.compress, lzma.compress, zstandard.compress, lambda content: content)


def written(rng, folder):
    """Writes the files of a case: one to four formats, some damaged, side by side or nested."""
    names = rng.sample(sorted(CASES), rng.choice((1, 1, 2, 4)))
    files = {}
    for number, name in enumerate(names):
        made = CASES[name].make(_below(folder / "made", str(number)))
        for path in [made] if made.is_file() else sorted(made.rglob("*")):
            if path.is_file():
                files[f"{number}/{path.relative_to(folder / 'made' / str(number))}"] = _changed(
                    rng, path.read_bytes()
                )
    if rng.random() < 0.3:
        files["mutated.json"] = dumps.as_bytes(mutations.mutated(rng, truth.objects()))
    if rng.random() < 0.3:
        joined = b"".join(part + rng.choice(TEXTS) for part in files.values())
        return [_file(folder / "joined.txt", joined)]
    if rng.random() < 0.5:
        return [_file(folder / "packed", rng.choice(PACKINGS)(_archive(rng, files)))]
    target = folder / "files"
    for name, content in files.items():
        _below(target, str(Path(name).parent))
        _file(target / name, content)
    return [target]


def _below(folder, name):
    path = folder / name
    path.mkdir(parents=True, exist_ok=True)
    return path


def _file(path, content):
    path.write_bytes(content)
    return path


def _changed(rng, content):
    draw = rng.random()
    if draw < 0.5 or not content:
        return content
    at = rng.randrange(len(content))
    if draw < 0.6:
        return content[:at]
    if draw < 0.7:
        return content[:at] + bytes([rng.randrange(256)]) + content[at + 1 :]
    if draw < 0.8:
        return content[:at] + rng.choice(TEXTS) + content[at:]
    if draw < 0.9:
        lines = content.splitlines(keepends=True)
        rng.shuffle(lines)
        return b"".join(lines)
    return rng.choice(PACKINGS)(content)


def _archive(rng, files):
    content = io.BytesIO()
    if rng.random() < 0.5:
        with tarfile.open(fileobj=content, mode="w") as archive:
            for name, part in files.items():
                info = tarfile.TarInfo(name)
                info.size = len(part)
                archive.addfile(info, io.BytesIO(part))
    else:
        with zipfile.ZipFile(content, "w") as archive:
            for name, part in files.items():
                archive.writestr(name, part)
    return _changed(rng, content.getvalue()) if rng.random() < 0.3 else content.getvalue()
