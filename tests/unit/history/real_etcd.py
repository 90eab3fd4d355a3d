"""Snapshots of a real etcd, made from drawn writes; `test_real_etcd.py` reads them.

    python -m tests.unit.history.real_etcd --programs FOLDER --name 3.5.1 [--seed 4]

starts `etcd` of FOLDER on the loopback, writes, deletes and compacts, and keeps what `etcdctl
snapshot save` and `etcdctl get --prefix` answer in `etcd/NAME.*.gz`, with the writes themselves. No
part of redra takes part.
"""

import argparse
import base64
import gzip
import json
import os
import random
import subprocess
import tempfile
import time
import urllib.error
import urllib.request
from pathlib import Path

FOLDER = Path(__file__).parent / "etcd"
CLIENTS, PEERS = "http://127.0.0.1:23790", "http://127.0.0.1:23800"
WRITES, NAMES = 240, 14
SIZES = (1, 10, 200, 200, 9_000)
"""Lengths of a field: within a page, and over several pages."""


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--programs", type=Path, required=True, help="folder with etcd and etcdctl")
    parser.add_argument("--name", required=True, help="name of the files: the version of etcd")
    parser.add_argument("--seed", type=int, default=1)
    chosen = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        _make(chosen.programs, Path(folder), chosen.name, random.Random(chosen.seed))


def _make(programs, folder, name, random_):
    command = [programs / "etcd", "--data-dir", folder / "data", "--log-level", "error"]
    for option in ("--listen-client-urls", "--advertise-client-urls"):
        command += [option, CLIENTS]
    for option in ("--listen-peer-urls", "--initial-advertise-peer-urls"):
        command += [option, PEERS]
    server = subprocess.Popen([*command, "--initial-cluster", f"default={PEERS}"])
    try:
        _wait()
        writes, compacted = _write(random_)
        keep = {"compacted": compacted, "writes": writes}
        _control(programs, "snapshot", "save", folder / "snapshot.db")
        _save(f"{name}.db", (folder / "snapshot.db").read_bytes())
        for form in ("json", "fields"):
            printed = _control(programs, "get", "--prefix", "/registry/", "-w", form)
            _save(f"{name}.get.{form}", printed)
        _save(f"{name}.writes.json", json.dumps(keep).encode())
    finally:
        server.terminate()
        server.wait()


def _write(random_):
    """The writes as (revision, operation, name, object), and the last revision compacted away."""
    live, writes, compacted = {}, [], 0
    for number in range(WRITES):
        name = f"p{random_.randrange(NAMES):02}"
        key = _text(f"/registry/pods/d/{name}")
        if name in live and random_.random() < 0.25:
            answer = _call("kv/deleterange", {"key": key})
            operation, pod = "DELETED", None
            del live[name]
        else:
            operation = "MODIFIED" if name in live else "ADDED"
            uid = live.get(name, f"u-{name}-{number}")
            metadata = {"name": name, "namespace": "d", "uid": uid, "labels": {"n": str(number)}}
            spec = {"nodeName": "x" * random_.choice(SIZES)}
            pod = {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": spec}
            answer = _call("kv/put", {"key": key, "value": _text(json.dumps(pod))})
            live[name] = uid
        revision = int(answer["header"]["revision"])
        writes.append((revision, operation, name, pod))
        if number in (WRITES // 4, WRITES // 2):
            compacted = revision - 9
            _call("kv/compaction", {"revision": compacted, "physical": True})
    return writes, compacted


def _wait():
    for _ in range(100):
        try:
            _call("kv/range", {"key": _text("x")})
        except urllib.error.URLError:
            time.sleep(0.1)  # waits: etcd has to listen
        else:
            return
    raise TimeoutError("etcd does not listen")


def _call(path, body):
    request = urllib.request.Request(
        f"{CLIENTS}/v3/{path}", json.dumps(body).encode(), {"Content-Type": "application/json"}
    )
    with urllib.request.urlopen(request) as answer:
        return json.load(answer)


def _control(programs, *arguments):
    return subprocess.run(
        [programs / "etcdctl", "--endpoints", CLIENTS, *arguments],
        env={**os.environ, "ETCDCTL_API": "3"},
        check=True,
        capture_output=True,
    ).stdout


def _text(content):
    return base64.b64encode(content.encode()).decode()


def _save(name, content):
    FOLDER.mkdir(exist_ok=True)
    (FOLDER / f"{name}.gz").write_bytes(gzip.compress(content, mtime=0))


if __name__ == "__main__":
    main()
