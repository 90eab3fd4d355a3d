"""Secrets over HTTP: users who may read them see values, which neither log nor views hold."""

import base64
from typing import get_args

import msgspec
import pytest

from app.adapters.memory import MemoryStore
from app.adapters.secret_keys import SecretKeys
from app.api.redra.experiment_models import ExportForm
from tests import draws
from tests.acceptance.secret_marks import Marks, unpacked
from tests.api.serving import pod, serving
from tests.api.test_jobs import DEFAULT, KEEP, start

SECRETS = "/api/v1/namespaces/default/secrets"
EVENTS = "/redra/v1/histories/default/events"
APPLIED = "kubectl.kubernetes.io/last-applied-configuration"


def keys(folder, **options):
    return SecretKeys(folder / "secrets.key", folder / "imported.key", **options)


def coded(text):
    return base64.b64encode(text.encode()).decode()


def secret(name="s", labels=None, annotations=None, **values):
    metadata = {"name": name, "labels": labels or {}, "annotations": annotations or {}}
    data = {key: coded(value) for key, value in values.items()}
    return {"apiVersion": "v1", "kind": "Secret", "metadata": metadata, "data": data}


async def log_text(server):
    return (await server.raw("GET", EVENTS)).text


async def revision(server):
    return (await server.get("/redra/v1/histories/default"))["revision"]


async def test_every_way_to_write_stores_no_value(tmp_path):
    async with serving(secrets=keys(tmp_path)) as server:
        made = await server.post(SECRETS, secret(a="one-mark", annotations={APPLIED: "two-mark"}))
        assert made["data"] == {"a": coded("one-mark")}
        assert made["metadata"]["annotations"] == {APPLIED: "two-mark"}
        assert made["metadata"]["resourceVersion"] == str(await revision(server))
        made["stringData"] = {"b": "three-mark"}
        put = await server.put(f"{SECRETS}/s", made)
        assert put["data"] == {"a": coded("one-mark"), "b": coded("three-mark")}
        assert put["metadata"]["resourceVersion"] == str(await revision(server))
        await server.patch(f"{SECRETS}/s", {"data": {"c": coded("four-mark")}})
        await server.patch(
            f"{SECRETS}/s", {"stringData": {"d": "five-mark"}}, kind="strategic-merge-patch+json"
        )
        test = {"op": "test", "path": "/data/a", "value": coded("one-mark")}
        add = {"op": "add", "path": "/data/e", "value": coded("six-mark")}
        await server.patch(f"{SECRETS}/s", [test, add], kind="json-patch+json")
        applied = secret(f="seven-mark")
        await server.patch(
            f"{SECRETS}/s?fieldManager=me&force=true", applied, kind="apply-patch+yaml"
        )
        found = (await server.get(f"{SECRETS}/s"))["data"]
        assert {key: base64.b64decode(value).decode() for key, value in found.items()} == {
            "a": "one-mark", "b": "three-mark", "c": "four-mark", "d": "five-mark",
            "e": "six-mark", "f": "seven-mark",
        }  # fmt: skip
        text = await log_text(server)
        for number in ("one", "two", "three", "four", "five", "six", "seven"):
            assert f"{number}-mark" not in text
            assert coded(f"{number}-mark") not in text
        assert text.count("redra:enc:aesgcm:v1:") > 7


@pytest.mark.parametrize("digests", [False, True])
async def test_writes_of_what_is_there_change_nothing(tmp_path, digests):
    async with serving(secrets=keys(tmp_path, digests=digests)) as server:
        wanted = secret(a="word", b="other")
        apply = f"{SECRETS}/s?fieldManager=me"
        await server.patch(apply, wanted, code=201, kind="apply-patch+yaml")
        before = await revision(server)
        await server.patch(apply, wanted, kind="apply-patch+yaml")
        await server.patch(f"{SECRETS}/s", {"data": {"a": coded("word")}})
        await server.put(f"{SECRETS}/s", await server.get(f"{SECRETS}/s"))
        await server.put(f"{SECRETS}/s", wanted)
        assert await revision(server) == before
        # Nobody's value changes, so nobody is in conflict with the other applier.
        other = f"{SECRETS}/s?fieldManager=other"
        await server.patch(other, secret(a="word", labels={"x": "y"}), kind="apply-patch+yaml")
        before += 1
        assert await revision(server) == before
        await server.patch(f"{SECRETS}/s", {"data": {"a": coded("new")}})
        assert await revision(server) == before + 1


async def test_lists_watches_tables_and_the_past_show_values(tmp_path):
    async with serving(secrets=keys(tmp_path)) as server:
        await server.post(SECRETS, secret(a="word"))
        at = await revision(server)
        await server.patch(f"{SECRETS}/s", {"data": {"a": coded("new")}})
        (item,) = (await server.get(SECRETS))["items"]
        assert item["data"] == {"a": coded("new")}
        past = await server.get(f"/h/default@{at}{SECRETS}/s")
        assert past["data"] == {"a": coded("word")}
        table = await server.get(
            f"{SECRETS}?includeObject=Object", accept="application/json;as=Table;v=v1;g=meta.k8s.io"
        )
        assert table["rows"][0]["object"]["data"] == {"a": coded("new")}
        assert table["rows"][0]["cells"][:3] == ["s", "Opaque", 1]
        yaml = await server.raw("GET", f"{SECRETS}/s", accept="application/yaml")
        assert coded("new") in yaml.text
        async with server.watch(f"{SECRETS}?watch=1&resourceVersion={at}") as watch:
            assert (await watch.line())["object"]["data"] == {"a": coded("new")}
            await server.delete(f"{SECRETS}/s")
            assert (await watch.line())["object"]["data"] == {"a": coded("new")}


async def test_metadata_alone_shows_its_annotations(tmp_path):
    async with serving(secrets=keys(tmp_path)) as server:
        await server.post(SECRETS, secret(a="word", annotations={APPLIED: "text"}))
        accept = "application/json;as=PartialObjectMetadataList;v=v1;g=meta.k8s.io"
        (item,) = (await server.get(SECRETS, accept=accept))["items"]
        assert item["metadata"]["annotations"] == {APPLIED: "text"}
        assert "data" not in item


async def test_deletion_in_steps_and_together_stores_no_value(tmp_path):
    async with serving(secrets=keys(tmp_path)) as server:
        waiting = secret("waits", a="word-mark")
        waiting["metadata"]["finalizers"] = ["example.com/f"]
        await server.post(SECRETS, waiting)
        await server.post(SECRETS, secret("goes", a="other-mark"))
        ended = await server.delete(SECRETS)
        assert {item["metadata"]["name"] for item in ended["items"]} == {"goes", "waits"}
        assert {item["data"]["a"] for item in ended["items"]} == {
            coded("word-mark"), coded("other-mark"),
        }  # fmt: skip
        last = await server.patch(f"{SECRETS}/waits", {"metadata": {"finalizers": None}})
        assert last["data"] == {"a": coded("word-mark")}
        text = await log_text(server)
        assert coded("word-mark") not in text
        assert coded("other-mark") not in text


async def test_without_the_key_reads_say_so_and_writes_keep_what_is_there(tmp_path):
    store = MemoryStore()
    async with serving(secrets=keys(tmp_path / "one"), store=store) as server:
        config = {"auths": {}}
        tree = secret(**{".dockerconfigjson": msgspec.json.encode(config).decode()})
        await server.post(SECRETS, tree | {"type": "kubernetes.io/dockerconfigjson"})
        before = await server.get(f"{SECRETS}/s")
    async with serving(secrets=keys(tmp_path / "two"), store=store) as server:
        answer = await server.raw("GET", f"{SECRETS}/s")
        assert "data..dockerconfigjson" in answer.headers["warning"]
        shown = base64.b64decode(answer.json()["data"][".dockerconfigjson"])
        assert shown.startswith(b"redra:enc:aesgcm:v1:")
        tree = answer.json()
        tree["metadata"]["labels"] = {"new": "label"}
        tree["data"]["more"] = coded("word")
        await server.put(f"{SECRETS}/s", tree)
    async with serving(secrets=keys(tmp_path / "one"), store=store) as server:
        after = await server.get(f"{SECRETS}/s")
        assert after["data"][".dockerconfigjson"] == before["data"][".dockerconfigjson"]
        assert after["metadata"]["labels"] == {"new": "label"}
        # This one was written with the other folder's key.
        assert base64.b64decode(after["data"]["more"]).startswith(b"redra:enc:")


async def test_digests_cannot_be_read_and_labels_can_still_be_written(tmp_path):
    async with serving(secrets=keys(tmp_path, digests=True)) as server:
        made = await server.post(SECRETS, secret(a="word"))
        assert made["data"] == {"a": coded("word")}
        found = await server.get(f"{SECRETS}/s")
        assert base64.b64decode(found["data"]["a"]).startswith(b"redra:digest:")
        labelled = await server.patch(f"{SECRETS}/s", {"metadata": {"labels": {"x": "y"}}})
        assert labelled["data"] == found["data"]
        refused = await server.raw(
            "PATCH",
            f"{SECRETS}/s",
            {"immutable": True},
            content_type="application/merge-patch+json",
        )
        assert refused.status_code == 200
        same = {"data": {"a": coded("word")}, "metadata": {"labels": {"x": "z"}}}
        assert (await server.patch(f"{SECRETS}/s", same))["metadata"]["labels"] == {"x": "z"}
        other = {"data": {"a": coded("new")}}
        await server.call(
            "PATCH", f"{SECRETS}/s", other, 422, content_type="application/merge-patch+json"
        )


async def test_old_log_with_plain_values_is_read_as_before(tmp_path):
    store = MemoryStore()
    async with serving(store=store) as server:
        await server.post(SECRETS, secret(a="word"))
    async with serving(secrets=keys(tmp_path), store=store) as server:
        assert (await server.get(f"{SECRETS}/s"))["data"] == {"a": coded("word")}
        await server.put(f"{SECRETS}/s", secret(a="word"))
        await server.patch(f"{SECRETS}/s", {"metadata": {"labels": {"x": "y"}}})
        assert (await server.get(f"{SECRETS}/s"))["data"] == {"a": coded("word")}
        last = (await log_text(server)).splitlines()[-1]
        assert coded("word") not in last


OF_JOBS = {
    **{form: (f"{DEFAULT}/export", {"form": form}) for form in get_args(ExportForm)},
    "redacted": (f"{DEFAULT}/export", {"redact": True}),
    "minimise": (f"{DEFAULT}/minimise", KEEP),
    "rehearse": (f"{DEFAULT}/rehearse", {"to": "1.36"}),
    "sweep": ("/redra/v1/sweep", {"plan": {"histories": ["default"], "profiles": ["1.36"]}}),
}
WITHOUT_POD = ("redacted", "minimise", "rehearse", "sweep")
"""Jobs whose results do not hold the pod's annotation."""
del OF_JOBS["go-allocator-case"]  # It holds devices and claims only.


@draws.in_turn("results of jobs")
@pytest.mark.parametrize("name", OF_JOBS)
async def test_results_of_jobs_hold_no_value(tmp_path, name):
    marks = Marks(seed=3)
    path, wish = OF_JOBS[name]
    async with serving(secrets=keys(tmp_path)) as server:
        annotations = {APPLIED: marks.new("annotation")}
        made = await server.post(SECRETS, secret(a=marks.new("created"), annotations=annotations))
        await server.put(f"{SECRETS}/s", {**made, "stringData": {"b": marks.new("updated")}})
        await server.delete(f"{SECRETS}/s")
        await server.post(SECRETS, secret("kept", a=marks.new("kept")))
        waits = pod("waits")
        waits["metadata"]["annotations"] = {"control": marks.new("control")}
        await server.post("/api/v1/namespaces/default/pods", waits)
        job = await server.get(f"{await start(server, path, wish)}?wait=30")
        assert job["state"] == "done", job
        contents = [msgspec.json.encode(job)]
        for file in job["files"]:
            contents += unpacked((await server.raw("GET", file["path"])).content)
    assert marks.within(b"\n".join(contents)) == (set() if name in WITHOUT_POD else {"control"})


QUESTIONS = {
    "trace": ("GET", "/redra/v1/histories/default/trace", None, "default/waits"),
    "deletion": ("POST", f"{DEFAULT}/blast", {"delete": ["secret/s"]}, "changes no devices"),
    "change": ("POST", f"{DEFAULT}/blast", {"objects": [secret(b="other")]}, "changes no devices"),
}


@pytest.mark.parametrize("name", QUESTIONS)
async def test_answers_about_changes_and_courses_hold_no_value(tmp_path, name):
    marks = Marks(seed=4)
    method, path, body, shown = QUESTIONS[name]
    async with serving(secrets=keys(tmp_path)) as server:
        annotations = {APPLIED: marks.new("annotation")}
        await server.post(SECRETS, secret(a=marks.new("created"), annotations=annotations))
        await server.post("/api/v1/namespaces/default/pods", pod("waits"))
        answer = await server.raw(method, path, body, content_type="application/json")
    assert shown in answer.text
    assert marks.within(answer.content) == set()
