"""Snapshots of a real etcd, made from drawn writes; `test_real_etcd.py` reads them.

    python -m tests.unit.history.real_etcd --programs FOLDER --name 3.5.1 [--seed 4]

starts `etcd` of FOLDER on the loopback, writes, deletes and compacts, and keeps what `etcdctl
snapshot save` and `etcdctl get --prefix` answer in `etcd/NAME.*.gz`, with the writes themselves. It
then starts another one that keeps its database behind its log, and keeps both as they lie on the
disk (`NAME.behind.db`, `NAME.behind.wal`) before the snapshot (`NAME.after.db`). No part of redra
takes part.
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
from contextlib import contextmanager
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
    with tempfile.TemporaryDirectory() as folder:
        _make_log(chosen.programs, Path(folder), chosen.name, random.Random(chosen.seed))


def _make(programs, folder, name, random_):
    with _served(programs, folder):
        writes, compacted = _write(random_)
        keep = {"compacted": compacted, "writes": writes}
        _control(programs, "snapshot", "save", folder / "snapshot.db")
        _save(f"{name}.db", (folder / "snapshot.db").read_bytes())
        for form in ("json", "fields"):
            printed = _control(programs, "get", "--prefix", "/registry/", "-w", form)
            _save(f"{name}.get.{form}", printed)
        _save(f"{name}.writes.json", json.dumps(keep).encode())


def _make_log(programs, folder, name, random_):
    # Only a compaction writes the database before its time.
    late = ("--backend-batch-interval", "1h", "--backend-batch-limit", "1000000")
    with _served(programs, folder, *late):
        _ask(random_)
        member = folder / "data" / "member"
        _save(f"{name}.behind.db", (member / "snap" / "db").read_bytes())
        (log,) = (member / "wal").glob("*.wal")
        _save(f"{name}.behind.wal", log.read_bytes().rstrip(b"\0"))
        _control(programs, "snapshot", "save", folder / "snapshot.db")
        _save(f"{name}.after.db", (folder / "snapshot.db").read_bytes())


def _ask(random_):
    """Requests of each kind that changes keys, of which some are refused."""
    known, leases = {}, []
    for number in range(WRITES):
        name = f"p{random_.randrange(NAMES):02}"
        key = _text(f"/registry/pods/d/{name}")
        metadata = {"name": name, "namespace": "d", "uid": f"u-{name}-{number}"}
        pod = {"apiVersion": "v1", "kind": "Pod", "metadata": metadata}
        put = {"key": key, "value": _text(json.dumps(pod))}
        way = random_.randrange(8)
        if way == 0:
            _call("kv/deleterange", {"key": key})
        elif way == 1:
            end = _text(f"/registry/pods/d/p{random_.randrange(NAMES):02}")
            _call("kv/deleterange", {"key": key, "range_end": end})
        elif way == 2:
            lease = _call("lease/grant", {"TTL": 3600})["ID"]
            leases.append(lease)
            _call("kv/put", {**put, "lease": lease})
        elif way == 3 and leases:
            lease = leases.pop(random_.randrange(len(leases)))
            _call("lease/revoke", {"ID": lease})
        elif way == 4:
            others = [{"requestDeleteRange": {"key": _text(f"/registry/pods/d/p{each:02}")}}
                      for each in random_.sample(range(NAMES), 2)
                      if f"p{each:02}" != name]  # fmt: skip
            _call("kv/txn", {"success": [{"requestPut": put}, *others]})
        else:
            # As an API server writes: if nobody else has written in between.
            revision = known.get(name, 0)
            compare = {"key": key, "target": "MOD", "result": "EQUAL", "mod_revision": revision}
            write = {"requestDeleteRange": {"key": key}} if way == 5 else {"requestPut": put}
            read = {"requestRange": {"key": key}}
            _call("kv/txn", {"compare": [compare], "success": [write], "failure": [read]})
        kept = _call("kv/range", {"key": key}).get("kvs")
        if random_.random() < 0.8:
            known[name] = int(kept[0]["mod_revision"]) if kept else 0
        if number == WRITES // 3:
            revision = int(_call("kv/range", {"key": key})["header"]["revision"])
            _call("kv/compaction", {"revision": revision - 9, "physical": True})


@contextmanager
def _served(programs, folder, *options):
    command = [programs / "etcd", "--data-dir", folder / "data", "--log-level", "error", *options]
    for option in ("--listen-client-urls", "--advertise-client-urls"):
        command += [option, CLIENTS]
    for option in ("--listen-peer-urls", "--initial-advertise-peer-urls"):
        command += [option, PEERS]
    server = subprocess.Popen([*command, "--initial-cluster", f"default={PEERS}"])
    try:
        _wait()
        yield
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
