"""Jobs over HTTP: started, looked at, fetched, cancelled, and who may do so.

Most of these tests do the work of a job themselves, so that it ends when they say so.
"""

import asyncio
import io
import zipfile
from pathlib import Path
from tempfile import gettempdir

import anyio
import msgspec
import pytest

from app.adapters.memory import MemoryStore
from app.adapters.memory.store import History
from app.adapters.private_folders import PREFIX
from app.api.server.limits import ApiLimits
from app.domain.errors import InputError
from app.service.answering.jobs import JobBounds, JobOutcome
from tests import draws
from tests.api.serving import pod, serving
from tests.api.test_authentication import ROLES
from tests.api.test_readers import ALL, ONE, PATHS, bind, filled, headers, known
from tests.contracts.restoring import restore_older
from tests.patience import PATIENCE_SECONDS

DEFAULT = "/redra/v1/histories/default"
RUN = "/redra/v1/incidents/run"
JOBS = "/redra/v1/jobs"
KEEP = {"keep": "unschedulable"}
JSON = {"content_type": "application/json"}


class Worker:
    """A worker whose jobs end when a test says so; `running` counts those that have not."""

    def __init__(self):
        self.wishes = []
        self.running = 0
        self.tells = []
        self._answers = asyncio.Queue()
        self._begun = asyncio.Queue()

    async def __call__(self, log, wish, tell):
        self.wishes.append(wish)
        self.tells.append(tell)
        self.running += 1
        try:
            self._begun.put_nowait(wish)
            answer = await self._answers.get()
        finally:
            self.running -= 1
        if isinstance(answer, Exception):
            raise answer
        return answer

    def end(self, answer=JobOutcome(result=[])):
        self._answers.put_nowait(answer)

    async def wait_begun(self, count=1):
        """Wait until this many more jobs have begun."""
        with anyio.fail_after(PATIENCE_SECONDS):
            for _ in range(count):
                await self._begun.get()


async def start(server, path, body, **more):
    """The path of a job that was started; it is the one in the header, too."""
    answer = await server.raw("POST", path, body, **JSON, **more)
    assert answer.status_code == 202, answer.text
    assert answer.headers["location"] == answer.json()["path"]
    return answer.json()["path"]


async def test_job_is_started_looked_at_and_fetched():
    worker = Worker()
    async with serving(worker=worker) as server:
        path = await start(server, f"{DEFAULT}/minimise", KEEP)
        await worker.wait_begun()
        worker.tells[0]({"events": 2, "objects": 1})
        state = await server.get(path)
        assert (state["state"], state["progress"]) == ("running", {"events": 2, "objects": 1})
        assert (await server.get(f"{path}/files/small.zip", 409))["reason"] == "Conflict"
        worker.end(JobOutcome(result={"events": 1}, files={"small.zip": b"PK"}))
        done = await server.get(f"{path}?wait=60")
        assert (done["state"], done["result"], done["problem"]) == ("done", {"events": 1}, None)
        (file,) = done["files"]
        assert (file["bytes"], (await server.raw("GET", file["path"])).content) == (2, b"PK")
        await server.get(f"{path}/files/other", 404)
        listed = (await server.get(f"{DEFAULT}/jobs"))["items"]
        assert [(each["id"], each["result"]) for each in listed] == [(done["id"], None)]
        assert (await server.get(JOBS))["items"] == []
        await server.delete(path)
        await server.get(path, 404)


async def test_job_that_fails_tells_place_problem_and_cure():
    worker = Worker()
    async with serving(worker=worker) as server:
        path = await start(server, RUN, {})
        worker.end(InputError("it is not so", place="--keep", cure="look"))
        failed = await server.get(f"{path}?wait=60")
        assert failed["state"] == "failed"
        assert failed["problem"] == {"message": "it is not so", "place": "keep", "cure": "look"}
        unexpected = await start(server, RUN, {})
        worker.end(KeyError("a mistake of redra"))
        failed = await server.get(f"{unexpected}?wait=60")
        assert failed["problem"]["message"] == "an unexpected error, see the log of the server"


async def test_jobs_wait_for_their_turn_and_are_bounded():
    worker = Worker()
    bounds = JobBounds(at_once_max=1, unfinished_max=2, kept_max=1)
    async with serving(worker=worker, limits=ApiLimits(jobs=bounds)) as server:
        first, second = [await start(server, RUN, {}) for _ in range(2)]
        await worker.wait_begun()
        assert (await server.get(second))["state"] == "waiting"
        refused = await server.raw("POST", RUN, {}, **JSON)
        assert (refused.status_code, refused.headers["retry-after"]) == (429, "10")
        # One that waits is cancelled before it has begun, and its place is free.
        assert (await server.delete(second))["state"] == "cancelled"
        third = await start(server, RUN, {})
        worker.end()
        worker.end()
        assert (await server.get(f"{third}?wait=60"))["state"] == "done"
        assert (await server.get(f"{first}?wait=60", 404))["reason"] == "NotFound"
        assert len(worker.wishes) == 2


async def test_running_job_is_cancelled_and_its_work_has_ended_then():
    worker = Worker()
    async with serving(worker=worker) as server:
        path = await start(server, RUN, {})
        await worker.wait_begun()
        assert (await server.delete(path))["state"] == "cancelled"
        assert worker.running == 0
        # The next one has its turn.
        await start(server, RUN, {})
        await worker.wait_begun()


async def test_jobs_of_a_deleted_history_end_and_are_forgotten():
    worker = Worker()
    async with serving(worker=worker, limits=ApiLimits(jobs=JobBounds(at_once_max=3))) as server:
        await server.post("/redra/v1/histories", {"name": "night"})
        below = await start(server, "/redra/v1/histories/night/minimise", KEEP)
        plan = {"plan": {"histories": ["default", "night"]}}
        sweep = await start(server, "/redra/v1/sweep", plan)
        other = await start(server, RUN, {})
        await worker.wait_begun(3)
        await server.delete("/redra/v1/histories/night")
        assert worker.running == 1
        await server.get(sweep, 404)
        assert (await server.get(other))["state"] == "running"
        await server.post("/redra/v1/histories", {"name": "night"})
        await server.get(below, 404)


async def test_two_clients_have_their_own_jobs():
    worker = Worker()
    async with serving(worker=worker, credentials=known(), authorization=ROLES) as server:
        for user in ("gus", "dan"):
            await bind(server, "", user, [PATHS, ALL])
        path = await start(server, f"{DEFAULT}/minimise", KEEP, **headers("gus"))
        for user, code, count in (("gus", 200, 1), ("root", 200, 1), ("dan", 404, 0)):
            await server.get(path, code, **headers(user))
            jobs = await server.get(f"{DEFAULT}/jobs", **headers(user))
            assert len(jobs["items"]) == count, user
        await server.call("DELETE", path, None, 403, **headers("gus"))


STARTS = {
    "minimise": (f"{ONE}/minimise", KEEP),
    "rehearse": (f"{ONE}/rehearse", {"to": "1.37"}),
    "export": (f"{ONE}/export", {"form": "pytest"}),
    "sweep": ("/redra/v1/sweep", {"plan": {"histories": ["one"]}}),
    "sweep of two": ("/redra/v1/sweep", {"plan": {"histories": ["default", "one"]}}),
}


@draws.in_turn("rows of refusals")
@pytest.mark.parametrize("name", STARTS)
@pytest.mark.parametrize("reader", ["bob", "cat", "fay", "gus"])
async def test_who_may_not_read_everything_starts_nothing(name, reader):
    worker = Worker()
    async with filled(worker=worker) as server:
        path, body = STARTS[name]
        # `gus` may read all of `one`, and nothing of the history whose rules guard other paths.
        code = 202 if reader == "gus" and "sweep" not in name else 403
        answer = await server.raw("POST", path, body, **JSON, **headers(reader))
        assert answer.status_code == code, answer.text
        await anyio.lowlevel.checkpoint()
        assert (await server.get(JOBS, **headers("root")))["items"] == []


async def test_result_is_not_seen_by_who_has_lost_the_right_to_read():
    worker = Worker()
    async with filled(worker=worker) as server:
        path = await start(server, f"{ONE}/minimise", KEEP, **headers("gus"))
        worker.end(JobOutcome(result="all of it"))
        assert (await server.get(f"{path}?wait=60", **headers("gus")))["result"] == "all of it"
        role = "/h/one/apis/rbac.authorization.k8s.io/v1/clusterroles/gus-clusterrole"
        tree = await server.get(role, **headers("root"))
        await server.put(role, {**tree, "rules": [PATHS]}, **headers("root"))
        await server.get(path, 403, **headers("gus"))
        assert (await server.get(f"{ONE}/jobs", **headers("gus")))["items"] == []


def namespace(name):
    return {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}}


def go_back(store, history):
    """Restore the log of a history without its last event."""
    stored = store.history(history)
    restore_older(stored, stored.head.revision - 1)
    return stored.info.name


def give_number_again(store, history):
    """Restore a copy of the database in which a history that was made then has the number."""
    lost = store.by_id[history]
    del store.by_name[lost.info.name]
    info = msgspec.structs.replace(lost.info, name="night", created=lost.info.created + 1)
    store.by_id[history] = store.by_name["night"] = History(info=info)
    return info.name


@pytest.mark.parametrize("restore", [go_back, give_number_again])
@pytest.mark.parametrize("kind", ["minimise", "rehearse", "sweep"])
async def test_job_is_not_seen_after_the_log_that_it_read_was_replaced(kind, restore):
    worker, store = Worker(), MemoryStore()
    async with serving(worker=worker, store=store) as server:
        runtime = await server.histories.create_cluster("dawn")
        number = runtime.info.id
        for name in ("a", "b"):
            await server.post("/h/dawn/api/v1/namespaces", namespace(name))
        path, body = {
            "minimise": ("/redra/v1/histories/dawn/minimise", KEEP),
            "rehearse": ("/redra/v1/histories/dawn/rehearse", {"to": "1.37"}),
            "sweep": ("/redra/v1/sweep", {"plan": {"histories": ["dawn"]}}),
        }[kind]
        path = await start(server, path, body)
        worker.end(JobOutcome(result="all of it"))
        assert (await server.get(f"{path}?wait=60"))["result"] == "all of it"
        present = restore(store, number)
        await server.raw("POST", f"/h/{present}/api/v1/namespaces", namespace("other"))
        with anyio.fail_after(PATIENCE_SECONDS):
            while await server.histories.open(present) is runtime:
                await anyio.lowlevel.checkpoint()
        for name in ("c", "d", "e"):
            await server.post(f"/h/{present}/api/v1/namespaces", namespace(name))
        path = path.replace("/dawn/", f"/{present}/")
        await server.get(path, 404)
        jobs = await server.get(path.rpartition("/")[0])
        assert jobs["items"] == []


MISTAKES = {
    "no predicate": (f"{DEFAULT}/minimise", {"keep": "rubbish"}, 400, "is not a predicate"),
    "command": (f"{DEFAULT}/minimise", {"keep": "command touch x"}, 400,
                "keep: a server runs no commands; use `redra minimise` where the data is"),
    "path as name": (f"{DEFAULT}/minimise", {**KEEP, "name": "../x"}, 400, "name: "),
    "no keep": (f"{DEFAULT}/minimise", {}, 400, "keep: Field required"),
    "unknown key": (f"{DEFAULT}/minimise", {**KEEP, "workers": 3}, 400, "workers: "),
    "no moment": (f"{DEFAULT}/minimise", {**KEEP, "at": "9999"}, 404, "has no revision 9999"),
    "no release": (f"{DEFAULT}/minimise", {**KEEP, "profile": "0.9"}, 400, "'0.9'"),
    "no quirk": (f"{DEFAULT}/minimise", {**KEEP, "quirks": {"x": True}}, 400, "no quirk 'x'"),
    "no rehearsed release": (f"{DEFAULT}/rehearse", {"to": "0.9"}, 400, "'0.9'"),
    "no release at all": (f"{DEFAULT}/rehearse", {}, 400, "to: Field required"),
    "no gate": (f"{DEFAULT}/rehearse", {"to": "1.37", "gates": {"x": True}}, 400, "x"),
    "rehearsal of no moment": (f"{DEFAULT}/rehearse", {"to": "1.37", "at": "9999"}, 404,
                               "has no revision 9999"),
    "no form": (f"{DEFAULT}/export", {"form": "rubbish"}, 400, "form: "),
    "secrets": (f"{DEFAULT}/export", {"with_secrets": True}, 400, "with_secrets: "),
    "never in a bundle": (f"{DEFAULT}/export", {"never": ["evicted"]}, 400,
                          "never cannot be combined with the form bundle"),
    "never a command": (f"{DEFAULT}/export", {"form": "pytest", "never": ["command true"]}, 400,
                        "never: a server runs no commands"),
    "path of an export": (f"{DEFAULT}/export", {"name": "../x"}, 400, "name: "),
    "export of no moment": (f"{DEFAULT}/export", {"at": "9999"}, 404, "has no revision 9999"),
    "no history": ("/redra/v1/histories/nope/minimise", KEEP, 404, 'history "nope" not found'),
    "mark without a moment": ("/redra/v1/sweep", {"plan": {"histories": ["prod@"]}}, 400,
                              "there is no moment behind the @ of 'prod@'"),
    "empty plan": ("/redra/v1/sweep", {"plan": {}}, 400, "plan: it names no histories and no"),
    "key of a plan": ("/redra/v1/sweep", {"plan": {"histories": ["default"], "seed": 3}}, 400,
                      "plan: there is no 'seed'; do you mean seeds?"),
    "history of a plan": ("/redra/v1/sweep", {"plan": {"histories": ["nope"]}}, 404, '"nope"'),
    "moment of a plan": ("/redra/v1/sweep", {"plan": {"histories": ["default@9999"]}}, 404,
                         "default@9999: history 'default' has no revision 9999"),
    "file of a plan": ("/redra/v1/sweep", {"plan": {"histories": ["/etc/passwd"]}}, 400,
                       "plan: a plan for a server names histories and no files, not '/etc/passwd'"),
    "profile of a plan": ("/redra/v1/sweep", {"plan": {"fleets": [
        {"name": "a", "profile": "/etc/passwd"}]}}, 400, "plan: there is no profile '/etc/passwd'"),
    "manifests of a plan": ("/redra/v1/sweep", {"plan": {"fleets": [
        {"name": "a", "profile": "cpu", "apply": ["/etc/passwd"]}]}}, 400,
        "plan: a server reads no files: give the objects of '/etc/passwd' in manifests"),
    "large plan": ("/redra/v1/sweep", {"plan": {"histories": ["default"], "seeds": 20}}, 413,
                   "plan: 20 runs are more than 9: use redra sweep"),
    "no incident": (RUN, {"names": ["nope"]}, 400, "there is no incident 'nope'"),
}  # fmt: skip


@pytest.mark.parametrize("name", MISTAKES)
async def test_mistake_is_told_in_one_sentence_and_starts_nothing(name):
    path, body, code, text = MISTAKES[name]
    worker = Worker()
    bounds = ApiLimits(jobs=JobBounds(cells_max=9))
    async with serving(worker=worker, limits=bounds) as server:
        answer = await server.post(path, body, code, **JSON)
        assert text in answer["message"]
        assert "\n" not in answer["message"]
        for jobs in (JOBS, f"{DEFAULT}/jobs"):
            assert (await server.get(jobs))["items"] == []


async def test_body_that_is_no_json_or_too_large_is_refused():
    bounds = ApiLimits(body_bytes_max=50, jobs=JobBounds(events_max=1))
    async with serving(worker=Worker(), limits=bounds) as server:
        for kind in ("text/plain", "application/x-www-form-urlencoded"):
            answer = await server.post(RUN, {}, 415, content_type=kind)
            assert answer["message"] == f'the body must be application/json, not "{kind}"'
        assert "no content-type" in (await server.post(RUN, {}, 415))["message"]
        await server.post(RUN, b"{", 400, **JSON)
        await server.post(RUN, {"names": ["x" * 50]}, 413, **JSON)
        answer = await server.post(f"{DEFAULT}/minimise", KEEP, 413, **JSON)
        assert answer["message"] == "2 events are more than 1: use redra minimise"
        path = await start(server, RUN, {})
        await server.get(f"{path}?wait=x", 400)
        assert (await server.raw("PUT", path, {})).status_code == 404


def folders():
    return sorted(Path(gettempdir()).glob(f"{PREFIX}*"))


@draws.in_turn("ways")
async def test_process_of_a_job_makes_the_smallest_history():
    async with serving() as server:
        await server.post("/api/v1/namespaces/default/pods", pod("waits"))
        path = await start(server, f"{DEFAULT}/minimise", KEEP | {"name": "no-node"})
        done = await server.get(f"{path}?wait=30")
        assert done["state"] == "done", done
        # The pod, and its namespace.
        assert (done["result"]["minimal"], done["result"]["inputs"]) == (True, 2)
        (file,) = done["files"]
        content = (await server.raw("GET", file["path"])).content
        assert file["name"] == "no-node.zip"
        assert "events.jsonl" in zipfile.ZipFile(io.BytesIO(content)).namelist()
        # A fact that the history does not show is the problem of the job.
        path = await start(server, f"{DEFAULT}/minimise", {"keep": "evicted"})
        failed = await server.get(f"{path}?wait=30")
        assert failed["state"] == "failed"
        assert failed["problem"]["message"] == "history 'default' does not show it: evicted"


async def test_secret_that_no_key_protects_leaves_in_no_bundle():
    async with serving() as server:
        secret = {"metadata": {"name": "s"}, "stringData": {"key": "value-of-the-secret"}}
        await server.post("/api/v1/namespaces/default/secrets", secret)
        for what, wish in (("minimise", KEEP), ("export", {"form": "audit"}), ("export", {})):
            path = await start(server, f"{DEFAULT}/{what}", wish)
            failed = await server.get(f"{path}?wait=30")
            assert "secrets/default/s in plain text" in failed["problem"]["message"], failed


async def test_server_that_stops_leaves_no_process_and_no_folder(monkeypatch, tmp_path):
    # Other processes of the machine have such folders, too.
    monkeypatch.setattr("tempfile.tempdir", None)
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    async with serving() as server:
        path = await start(server, RUN, {})
        with anyio.fail_after(PATIENCE_SECONDS):
            while not folders():  # noqa: ASYNC110
                await anyio.sleep(0.01)  # waits: a folder tells nobody of itself
        assert (await server.get(path))["state"] == "running"
    assert not folders()
