"""Values of Secrets come in by every door and are found in nothing that lies on disk or goes out.

Each value is random and its own; beside each goes one in a ConfigMap, which must be found, so that
a search that finds nothing has looked in the right place.
"""

import asyncio
import base64
import json
import sqlite3
from pathlib import Path

import asyncpg
import pytest
import yaml

from app.adapters.postgres.server import running_url
from tests import command_line, draws
from tests.acceptance.secret_marks import Marks, unpacked
from tests.acceptance.server_process import server_process

pytestmark = [pytest.mark.slow]

SECRETS = "/api/v1/namespaces/default/secrets"
CONFIG_MAPS = "/api/v1/namespaces/default/configmaps"
APPLIED = "kubectl.kubernetes.io/last-applied-configuration"
CONTROL = "a value of a ConfigMap"


def redra(*arguments, data, code=0):
    """What a command says, on both channels. In this process: there are many."""
    ended, out, error = command_line.redra(*arguments, data=data)
    assert ended == code, out + error
    return f"{out}{error}".encode()


def write_by_every_verb(client, marks):
    """Secrets made and changed in every way that the API has."""
    kinds = {
        "merge": ("application/merge-patch+json", {"data": {"m": marks.coded("merge patch")}}),
        "strategic": (
            "application/strategic-merge-patch+json",
            {"stringData": {"s": marks.new("strategic patch")}},
        ),
        "json": (
            "application/json-patch+json",
            [{"op": "add", "path": "/data/j", "value": marks.coded("json patch")}],
        ),
    }
    applied = {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "s"},
               "data": {"a": marks.coded("last applied")}}  # fmt: skip
    body = {
        "metadata": {"name": "s", "annotations": {APPLIED: json.dumps(applied)}},
        "data": {"c": marks.coded("create")},
        "stringData": {"d": marks.new("create with stringData")},
    }
    made = client.post(SECRETS, json=body)
    assert made.status_code == 201, made.text
    tree = made.json()
    tree["data"]["u"] = marks.coded("update")
    assert client.put(f"{SECRETS}/s", json=tree).status_code == 200
    for content_type, patch in kinds.values():
        done = client.patch(
            f"{SECRETS}/s", content=json.dumps(patch), headers={"content-type": content_type}
        )
        assert done.status_code == 200, done.text
    for name, field in (("apply", "data"), ("apply stringData", "stringData")):
        value = marks.coded(name) if field == "data" else marks.new(name)
        config = applied | {"metadata": {"name": "applied"}, "data": {}, field: {"k": value}}
        done = client.patch(
            f"{SECRETS}/applied?fieldManager={field}&force=true",
            content=json.dumps(config),
            headers={"content-type": "application/apply-patch+yaml"},
        )
        assert done.status_code in (200, 201), done.text
    typed = [
        ("bootstrap.kubernetes.io/token", {"token-secret": marks.coded("bootstrap token")}),
        ("kubernetes.io/basic-auth", {"password": marks.coded("basic auth")}),
        ("kubernetes.io/ssh-auth", {"ssh-privatekey": marks.coded("ssh key")}),
        ("kubernetes.io/tls", {"tls.crt": "", "tls.key": marks.coded("tls key")}),
    ]
    for number, (kind, data) in enumerate(typed):
        body = {"metadata": {"name": f"typed-{number}"}, "type": kind, "data": data}
        assert client.post(SECRETS, json=body).status_code == 201
    account = {"kubernetes.io/service-account.name": "default"}
    body = {
        "metadata": {"name": "account", "annotations": account},
        "type": "kubernetes.io/service-account-token",
        "data": {"token": marks.coded("account token")},
    }
    assert client.post(SECRETS, json=body).status_code == 201
    # Refused and dry: nothing of them is stored, and the words of the refusal name no value.
    wrong = {"metadata": {"name": "wrong"}, "type": "kubernetes.io/dockerconfigjson",
             "stringData": {".dockerconfigjson": marks.new("refused")}}  # fmt: skip
    refused = client.post(SECRETS, json=wrong)
    assert refused.status_code == 422
    assert not marks.within(refused.content)
    bad = {"metadata": {"name": "bad"}, "data": {"x": marks.new("bad base64") + "!"}}
    refused = client.post(SECRETS, json=bad)
    assert refused.status_code == 400
    assert not marks.within(refused.content)
    dry = {"metadata": {"name": "dry"}, "data": {"x": marks.coded("dry run")}}
    assert client.post(f"{SECRETS}?dryRun=All", json=dry).status_code == 201
    gone = {"metadata": {"name": "gone", "finalizers": ["example.com/f"]},
            "data": {"x": marks.coded("deleted in steps")}}  # fmt: skip
    assert client.post(SECRETS, json=gone).status_code == 201
    assert client.delete(f"{SECRETS}/gone").status_code == 200
    done = client.patch(
        f"{SECRETS}/gone",
        content=json.dumps({"metadata": {"finalizers": None}}),
        headers={"content-type": "application/merge-patch+json"},
    )
    assert done.status_code == 200
    control = {"metadata": {"name": "c"}, "data": {"x": marks.new(CONTROL)}}
    assert client.post(CONFIG_MAPS, json=control).status_code == 201


def secret(name, marks, where, **more):
    return {
        "apiVersion": "v1",
        "kind": "Secret",
        "metadata": {"name": name, "namespace": "default", "uid": f"uid-{name}",
                     "resourceVersion": "5", **more},
        "data": {"x": marks.coded(where)},
    }  # fmt: skip


def audit(verb, number, *, request=None, response=None, name="s", code=200, **more):
    time = f"2026-01-01T00:00:{number:02d}.000000Z"
    line = {
        "kind": "Event", "apiVersion": "audit.k8s.io/v1", "level": "RequestResponse",
        "auditID": f"a-{number}", "stage": "ResponseComplete", "verb": verb,
        "requestURI": f"{SECRETS}/{name}", "user": {"username": "alice"},
        "userAgent": "kubectl/v1.37.1",
        "objectRef": {"resource": "secrets", "namespace": "default", "name": name,
                      "apiVersion": "v1"},
        "responseStatus": {"metadata": {}, "code": code},
        "requestReceivedTimestamp": time, "stageTimestamp": time, **more,
    }  # fmt: skip
    if request is not None:
        line["requestObject"] = request
    if response is not None:
        line["responseObject"] = response
    return line


def recordings(folder: Path, marks: Marks) -> dict[str, Path]:
    """A recording of each form that holds Secrets."""
    folder.mkdir()
    lines = [
        audit("create", 1, request=secret("s", marks, "audit request"),
              response=secret("s", marks, "audit response", resourceVersion="2")),
        audit("patch", 2, request={"data": {"y": marks.coded("audit patch")},
                                   "stringData": {"z": marks.new("audit patch of stringData")}}),
        audit("patch", 3, request=[{"op": "add", "path": "/data/w",
                                    "value": marks.coded("audit json patch")}]),
        audit("patch", 4, request={"data": marks.new("audit patch that fits nothing")}),
        audit("update", 5, request=secret("s", marks, "refused update"), code=409),
        audit("list", 6, name="", response={
            "kind": "SecretList", "apiVersion": "v1", "metadata": {"resourceVersion": "9"},
            "items": [secret("listed", marks, "audit list")]}),
        audit("delete", 7, response=secret("s", marks, "audit delete", resourceVersion="12")),
        audit("create", 8, name="driver", response={
            "kind": "TokenRequest", "apiVersion": "authentication.k8s.io/v1",
            "status": {"token": marks.new("token request")}},
            objectRef={"resource": "serviceaccounts", "namespace": "default", "name": "driver",
                       "apiVersion": "v1", "subresource": "token"}),
        audit("create", 9, name="", request={
            "kind": "TokenReview", "apiVersion": "authentication.k8s.io/v1",
            "spec": {"token": marks.new("token review")}},
            objectRef={"resource": "tokenreviews", "apiGroup": "authentication.k8s.io",
                       "apiVersion": "v1"}),
    ]  # fmt: skip
    found = {"audit": folder / "audit.log"}
    found["audit"].write_text("".join(json.dumps(line) + "\n" for line in lines))
    events = [
        {"type": "ADDED", "object": secret("w", marks, "watch")},
        {"type": "MODIFIED", "object": secret("w", marks, "watch again", resourceVersion="6")},
        {"type": "DELETED", "object": secret("w", marks, "watch end", resourceVersion="7")},
    ]
    found["watch"] = folder / "watch.jsonl"
    found["watch"].write_text("".join(json.dumps(event) + "\n" for event in events))
    odd = secret("odd", marks, "dump") | {"stringData": {"s": marks.new("dump with stringData")}}
    odd["metadata"]["annotations"] = {APPLIED: json.dumps(secret("odd", marks, "dump annotation"))}
    odd["unknown"] = {"deep": [marks.new("unknown field of a dump")]}
    control = {"apiVersion": "v1", "kind": "ConfigMap",
               "metadata": {"name": "c", "namespace": "default"},
               "data": {"x": marks.made[CONTROL]}}  # fmt: skip
    found["dump"] = folder / "dump.json"
    found["dump"].write_text(
        json.dumps({"apiVersion": "v1", "kind": "List", "items": [odd, control]})
    )
    found["kwok"] = folder / "kwok.yaml"
    patch = {
        "apiVersion": "action.kwok.x-k8s.io/v1alpha1",
        "kind": "ResourcePatch",
        "resource": {"version": "v1", "resource": "secrets"},
        "target": {"name": "k", "namespace": "default"},
        "durationNanosecond": 1_000_000_000,
        "method": "patch",
        "template": {"data": {"p": marks.coded("kwok patch")}},
    }
    found["kwok"].write_text(yaml.safe_dump_all([secret("k", marks, "kwok"), patch]))
    found["kine"] = folder / "kine.db"
    with sqlite3.connect(found["kine"]) as database:
        database.execute(
            "CREATE TABLE kine (id INTEGER PRIMARY KEY, name TEXT, created INT, deleted INT,"
            " create_revision INT, prev_revision INT, lease INT, value BLOB, old_value BLOB)"
        )
        stored = json.dumps(secret("e", marks, "kine")).encode()
        database.execute(
            "INSERT INTO kine (id, name, created, deleted, prev_revision, value)"
            " VALUES (2, '/registry/secrets/default/e', 1, 0, 0, ?)", (stored,),
        )  # fmt: skip
    database.close()
    return found


async def database_text(url: str) -> bytes:
    """Every table as text, whatever PostgreSQL has packed in its files."""
    connection = await asyncpg.connect(url)
    parts: list[bytes] = []
    try:
        names = await connection.fetch(
            "SELECT schemaname, tablename FROM pg_tables WHERE schemaname NOT IN "
            "('pg_catalog', 'information_schema')"
        )
        assert len(names) > 10
        for schema, name in names:
            for row in await connection.fetch(f'SELECT * FROM "{schema}"."{name}"'):
                for value in row.values():
                    parts.append(value if isinstance(value, bytes) else str(value).encode())
    finally:
        await connection.close()
    return b"\n".join(parts)


def files_of(folder: Path) -> bytes:
    return b"\n".join(path.read_bytes() for path in folder.rglob("*") if path.is_file())


def everything_in(bundle: Path) -> bytes:
    """The bytes of an archive, and of the files in it."""
    content = bundle.read_bytes()
    return b"\n".join([content, *unpacked(content)])


def shown_values(client, prefix, name):
    data = client.get(f"{prefix}{SECRETS}/{name}").json()["data"]
    return {base64.b64decode(value).decode() for value in data.values()}


@draws.in_turn("ways")
def test_values_of_secrets_are_found_in_nothing_stored_or_shown(tmp_path):
    marks = Marks(seed=20)
    with server_process(tmp_path) as server, server.client() as client:
        write_by_every_verb(client, marks)
        data = server.data
        said: dict[str, bytes] = {}
        histories = ["default"]
        for name, path in recordings(tmp_path / "given", marks).items():
            said[f"import of {name}"] = redra(
                "import", path, "--history", name, "--secrets", "-o", "json", data=data
            )
            histories.append(name)
        for name in histories:
            said[f"rebuild {name}"] = redra("rebuild", name, data=data)
            said[f"log {name}"] = redra("log", name, data=data)
            said[f"timeline {name}"] = redra("timeline", name, "--decisions", data=data)
            said[f"replay {name}"] = redra("replay", name, "-o", "json", data=data)
            bundle = tmp_path / f"{name}.redra"
            said[f"export {name}"] = redra("export", name, "-o", bundle, data=data)
            said[f"bundle {name}"] = everything_in(bundle)
            for form in ("audit", "watch", "objects", "k8shark"):
                left = tmp_path / f"{name}.{form}"
                words = ("export", name, "--as", form, "-o", left)
                said[f"{form} {name}"] = redra(*words, data=data)
                files = sorted(left.iterdir()) if left.is_dir() else [left]
                said[f"files {form} {name}"] = b"".join(file.read_bytes() for file in files)
                if form == "k8shark":
                    said[f"files {form} {name}"] = everything_in(left)
            for page in ("", "/events", "/decisions", "/views", "/views/timeline", "/views/claims"):
                place = f"/redra/v1/histories/{name}{page}"
                answer = client.get(place)
                assert answer.status_code == 200, answer.text
                said[place] = answer.content
        for place in ("/metrics", "/redra/v1/workers", "/redra/v1/histories", "/livez?verbose"):
            said[place] = client.get(place).content
        for place in ("events", "pods", "serviceaccounts", "namespaces"):
            said[place] = client.get(f"/api/v1/{place}").content
        rows = redra("sql", "SELECT * FROM view_objects", "-o", "json", data=data)
        said["sql"] = rows
        # As the database's owner: the role of `redra sql` does not see all tables.
        said["database"] = asyncio.run(database_text(running_url(data / "postgres")))
        # Whoever may read Secrets reads them, and the key goes with a bundle when asked for.
        made = marks.made
        assert shown_values(client, "", "s") == {
            made[name] for name in (
                "create", "create with stringData", "update", "merge patch", "strategic patch",
                "json patch",
            )
        }  # fmt: skip
        assert shown_values(client, "/h/dump", "odd") == {made["dump"]}
        assert shown_values(client, "/h/kwok", "k") == {made["kwok"], made["kwok patch"]}
        keyed = tmp_path / "keyed.redra"
        redra("export", "dump", "-o", keyed, "--with-secrets", data=data)
        assert not marks.within(everything_in(keyed)) - {CONTROL}
    said["log of the server"] = server.log.read_bytes()
    found = {place: marks.within(content) - {CONTROL} for place, content in said.items()}
    assert {place: marks for place, marks in found.items() if marks} == {}
    exported = [f"files {form} default" for form in ("audit", "watch", "objects", "k8shark")]
    for place in ("log default", "log dump", "bundle dump", "sql", "database", *exported):
        assert marks.within(said[place]) == {CONTROL}, place


@draws.in_turn("ways")
def test_folders_hold_no_value_and_keys_travel_only_when_asked_for(tmp_path):
    marks = Marks(seed=21)
    with server_process(tmp_path) as server, server.client() as client:
        body = {"metadata": {"name": "s"}, "data": {"x": marks.coded("create")}}
        assert client.post(SECRETS, json=body).status_code == 201
        control = {"metadata": {"name": "c"}, "data": {"x": marks.new(CONTROL)}}
        assert client.post(CONFIG_MAPS, json=control).status_code == 201
        bare, keyed = tmp_path / "bare.redra", tmp_path / "keyed.redra"
        redra("export", "default", "-o", bare, data=server.data)
        redra("export", "default", "-o", keyed, "--with-secrets", data=server.data)
        # What PostgreSQL writes at its end (checkpoint, snapshots) is looked at too.
        server.end()
        assert marks.within(files_of(server.data)) == {CONTROL}
        key = server.data / "secrets.key"
        assert key.stat().st_mode & 0o777 == 0o600
    (tmp_path / "other").mkdir()
    with server_process(tmp_path / "other") as server, server.client() as client:
        redra("import", bare, "--history", "bare", data=server.data)
        answer = client.get(f"/h/bare{SECRETS}/s")
        assert "data.x" in answer.headers["warning"]
        assert marks.within(answer.content) == set()
        said = redra("import", keyed, "--history", "keyed", data=server.data)
        assert b"secrets-imported.key" in said
        assert shown_values(client, "/h/keyed", "s") == {marks.made["create"]}
        assert marks.within(files_of(server.data)) <= {CONTROL}
        # Nothing was encrypted here yet, and the keys of what was imported are kept: no loss.
        (server.data / "secrets.key").unlink()
        server.restart()
        assert "was missing" not in server.log.read_text()
        assert shown_values(client, "/h/keyed", "s") == {marks.made["create"]}
        # Without its key a server says at once what cannot be read.
        assert client.post(SECRETS, json=body).status_code == 201
        (server.data / "secrets.key").unlink()
        server.restart()
        said = server.log.read_text()
        assert "was missing and has been created; values of Secrets in default can be read" in said
