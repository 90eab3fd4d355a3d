"""Histories renamed, copied and deleted while they are served, here or by another process."""

from functools import partial

import anyio
import pytest
import yaml

from app.adapters.memory import MemoryLog, MemoryStore
from app.bootstrap.control_planes import ForkPlanes
from app.domain.errors import LogUnavailable
from app.domain.log import Draft, Revision
from app.domain.log.event import GENESIS
from app.domain.values import json_tree
from app.domain.values.timestamps import Instant
from app.settings import Settings
from tests.api.serving import CONFIG_MAPS, config_map, serving
from tests.api.test_authentication import AS_ANN, AS_ROOT, KNOWN, ROLES, grant
from tests.cluster import T0, Cluster
from tests.contracts.building import sealed

ALL = "/redra/v1/histories"
EVERYTHING = {"apiGroups": ["*"], "resources": ["*"], "verbs": ["get", "list", "watch"]}


async def names(server) -> list[str]:
    return [item["name"] for item in (await server.get(ALL))["items"]]


async def night(server, **data) -> None:
    await server.post(ALL, {"name": "night"})
    await server.post(f"/h/night{CONFIG_MAPS}", config_map(**data))


async def test_deleted_history_is_gone_and_leaves_a_tombstone():
    async with serving() as server:
        await night(server)
        head = await server.get(f"{ALL}/night")
        deleted = await server.delete(f"{ALL}/night")
        assert (deleted["name"], deleted["hash"]) == ("night", head["hash"])
        assert (await server.get("/redra/v1/deleted"))["items"] == [deleted]
        assert await names(server) == ["default"]
        await server.get(f"/h/night{CONFIG_MAPS}", 404)
        await server.get(f"{ALL}/night", 404)
        refused = await server.delete(f"{ALL}/night", code=404)
        assert refused["reason"] == "NotFound"
        assert refused["message"] == (
            f'history "night" was deleted at {deleted["deleted"]} by {deleted["deleted_by"]}'
        )
        refused = await server.delete(f"{ALL}/never", code=404)
        assert refused["message"] == 'history "never" not found'


async def test_name_that_is_given_again_shows_nothing_of_the_deleted_history():
    async with serving() as server:
        await night(server, old="yes")
        await server.get(f"/h/night@8{CONFIG_MAPS}")
        revision = (await server.get(f"{ALL}/night"))["revision"]
        await server.delete(f"{ALL}/night")
        await night(server, new="yes")
        for place in ("night", f"night@{revision}"):
            (found,) = (await server.get(f"/h/{place}{CONFIG_MAPS}"))["items"]
            assert found["data"] == {"new": "yes"}


async def test_watch_of_a_deleted_history_is_ended_and_says_so():
    async with serving() as server:
        await night(server)
        async with server.watch(f"/h/night{CONFIG_MAPS}?watch=1") as following:
            assert (await following.line())["type"] == "ADDED"
            await server.delete(f"{ALL}/night")
            last = await following.line()
            assert (last["type"], last["object"]["code"]) == ("ERROR", 410)


async def test_renamed_history_is_found_by_its_new_name_alone():
    async with serving() as server:
        await night(server, a="b")
        renamed = await server.post(f"{ALL}/night/rename", {"name": "day"}, 200)
        assert renamed["name"] == "day"
        assert await names(server) == ["day", "default"]
        await server.get(f"/h/night{CONFIG_MAPS}", 404)
        (found,) = (await server.get(f"/h/day{CONFIG_MAPS}"))["items"]
        assert found["data"] == {"a": "b"}
        await server.post(f"/h/day{CONFIG_MAPS}", config_map("more"))
        taken = await server.post(f"{ALL}/day/rename", {"name": "default"}, 409)
        assert taken["reason"] == "AlreadyExists"


async def test_copy_goes_on_by_itself():
    async with serving() as server:
        await night(server, a="b")
        source = await server.get(f"{ALL}/night")
        copied = await server.post(f"{ALL}/night/copy", {"name": "copy"})
        assert (copied["hash"], copied["revision"]) == (source["hash"], source["revision"])
        await server.post(f"/h/copy{CONFIG_MAPS}", config_map("more"))
        assert (await server.get(f"{ALL}/night"))["revision"] == source["revision"]
        early = await server.post(f"{ALL}/night/copy", {"name": "early", "at": "3"})
        assert early["revision"] == 3
        await server.post(f"{ALL}/night/copy", {"name": "late", "at": "99999"}, 404)
        await server.post(f"{ALL}/night/copy", {"name": "copy"}, 409)
        assert await names(server) == ["copy", "default", "early", "night"]


async def test_fork_goes_on_by_itself_with_its_own_switches():
    async with serving() as server:
        await night(server, a="b")
        source = await server.get(f"{ALL}/night")
        body = {"name": "fork", "profile": "1.35", "quirks": {"Q3": False}}
        forked = await server.post(f"{ALL}/night/fork", body)
        assert (forked["is_fork"], forked["parent_revision"]) == (True, source["revision"])
        assert forked["revision"] == source["revision"] + 1
        assert (forked["profile"], source["profile"]) == ("1.35", "1.37")
        (found,) = (await server.get(f"/h/fork{CONFIG_MAPS}"))["items"]
        assert found["data"] == {"a": "b"}
        more = await server.post(f"/h/fork{CONFIG_MAPS}", config_map("more"))
        assert int(more["metadata"]["resourceVersion"]) == forked["revision"] + 1
        assert (await server.get(f"{ALL}/night"))["revision"] == source["revision"]
        assert len((await server.get(f"/h/night{CONFIG_MAPS}"))["items"]) == 1
        before = f"/h/fork@{source['revision']}{CONFIG_MAPS}"
        assert len((await server.get(before))["items"]) == 1
        assert (await server.get("/h/fork/version"))["minor"] == "35"


async def test_tables_of_the_past_that_a_fork_shares_have_the_switches_of_its_source():
    """A rule without selector taints every device for allocation, unless Q14 is repaired."""
    device = {"driver": "example.com", "pool": {"name": "p", "generation": 1}}
    device["pool"]["resourceSliceCount"] = 1
    published = {"nodeName": "n1", **device, "devices": [{"name": "d"}]}
    taint = {"taint": {"key": "k", "effect": "NoSchedule"}}
    async with serving() as server:
        await server.post(ALL, {"name": "night", "gates": {"DRADeviceTaintRules": True}})
        dra = "/h/night/apis/resource.k8s.io/v1"
        for path, kind, spec in (
            (f"{dra}/resourceslices", "ResourceSlice", published),
            (f"{dra}beta2/devicetaintrules", "DeviceTaintRule", taint),
        ):
            version = path.split("/apis/")[1].rpartition("/")[0]
            named = {"apiVersion": version, "kind": kind, "metadata": {"name": "one"}}
            await server.post(path, {**named, "spec": spec})
        revision = (await server.get(f"{ALL}/night"))["revision"]
        await server.post(f"{ALL}/night/fork", {"name": "fork", "quirks": {"q14": False}})
        for at, count in ((f"?at={revision}", 1), ("", 0), (f"?at={revision}", 1)):
            answer = await server.get(f"{ALL}/fork/views/taints{at}")
            assert len(answer["items"]) == count, at


async def test_inputs_of_a_recording_end_with_it():
    store = MemoryStore()
    log = MemoryLog(store)
    async with serving(store=store) as server:
        await night(server, a="b")
        live = next(each for each in await log.histories() if each.name == "night")
        settings = {**live.settings, "recorded": True}
        tape = await log.create_history("tape", seed=0, settings=settings, created=live.created)
        events = await log.read(live.id, after=Revision(0), limit=1_000)
        head = await log.head(tape.id)
        drafts = [
            Draft(
                type=each.type,
                key=each.key,
                uid=each.uid,
                tree=json_tree.copy(each.object),
                stamp=each.stamp,
            )
            for each in events
        ]
        await log.append(tape.id, expected=head, events=sealed(head, *drafts))
        wish = {"name": "wrong", "at": "3", "inputs": "recorded", "until": "2999-01-01T00:00:00Z"}
        refused = await server.post(f"{ALL}/tape/fork", wish, 404)
        assert refused["message"].startswith("until: history 'tape' ends at ")
        assert await names(server) == ["default", "night", "tape"]


async def test_recorded_inputs_go_on_in_a_fork_with_edits():
    async with serving() as server:
        await night(server, a="b")
        await server.post(f"/h/night{CONFIG_MAPS}", config_map("more"))
        source = await server.get(f"{ALL}/night")
        (first, more) = (await server.get(f"/h/night{CONFIG_MAPS}"))["items"]
        at = first["metadata"]["resourceVersion"]
        name = first["metadata"]["name"]
        body = {"name": "what-if", "at": at, "inputs": "recorded", "delete": [f"configmap/{name}"]}
        forked = await server.post(f"{ALL}/night/fork", body)
        assert forked["report"]["inputs"] == source["revision"] - int(at)
        assert forked["report"]["inputsLeftOut"] == []
        assert forked["report"]["diff"]["outcome"] == "same"
        (left,) = (await server.get(f"/h/what-if{CONFIG_MAPS}"))["items"]
        assert left["metadata"]["uid"] == more["metadata"]["uid"]
        for wrong, code, said in (
            ({"until": at}, 400, "until applies to recorded inputs"),
            ({"inputs": "some"}, 400, "inputs: "),
            ({"inputs": "recorded", "until": "99999"}, 404, "until: "),
            ({"inputs": "recorded", "until": "soon"}, 400, "until: "),
            ({"inputs": "recorded", "until": at}, 400, "let the inputs end at a later one"),
            ({"inputs": "recorded", "delete": ["configmap/none"]}, 400, "configmap/none"),
        ):
            refused = await server.post(
                f"{ALL}/night/fork", {"name": "wrong", "at": at, **wrong}, code
            )
            assert "\n" not in refused["message"]
            assert said in refused["message"]
            assert "--" not in refused["message"]
        assert await names(server) == ["default", "night", "what-if"]
        assert (await server.get(f"{ALL}/night"))["hash"] == source["hash"]


async def test_fork_of_an_earlier_moment_lacks_what_came_later():
    async with serving() as server:
        await night(server, a="b")
        await server.post(f"{ALL}/night/fork", {"name": "early", "at": "3"})
        assert (await server.get(f"/h/early{CONFIG_MAPS}"))["items"] == []
        await server.post(f"{ALL}/night/fork", {"name": "late", "at": "99999"}, 404)
        await server.post(f"{ALL}/night/fork", {"name": "early"}, 409)
        assert await names(server) == ["default", "early", "night"]


async def test_revision_of_a_comparison_with_a_fork_is_the_same_instant_in_both():
    async with serving() as server:
        await night(server, a="b")
        common = (await server.get(f"{ALL}/night"))["revision"]
        await server.post(f"{ALL}/night/fork", {"name": "fork"})
        await server.post(f"/h/fork{CONFIG_MAPS}", config_map("first"))
        second = await server.post(f"/h/fork{CONFIG_MAPS}", config_map("second"))
        last = int(second["metadata"]["resourceVersion"])
        await server.post(f"/h/night{CONFIG_MAPS}", config_map("own"))

        async def compared(a, b, query):
            report = await server.get(f"{ALL}/{a}/diff?with={b}&by=objects&{query}")
            names = [each["subject"].rpartition("/")[2] for each in report["differences"]]
            return report["a"]["revision"], report["b"]["revision"], sorted(names)

        # The fork's revision of that number is the one of its making.
        then = common + 1
        assert await compared("night", "fork", f"at={then}") == (
            then, last, ["first", "own", "second"],
        )  # fmt: skip
        assert await compared("fork", "night", f"at={last}") == (
            last, common, ["first", "second"],
        )  # fmt: skip
        assert await compared("night", "fork", f"at={common}") == (common, common, [])
        assert await compared("night", "fork", f"at={then}&withAt={then}") == (then, then, ["own"])


async def test_fork_is_compared_with_its_parent():
    async with serving() as server:
        await night(server, a="b")
        await server.post(f"{ALL}/night/fork", {"name": "fork", "quirks": {"q3": False}})
        await server.post(f"/h/fork{CONFIG_MAPS}", config_map("more"))
        same = await server.get(f"{ALL}/night/diff?with=fork")
        assert (same["outcome"], same["settings"]) == ("same", ["quirk q3: on → off"])
        other = await server.get(f"{ALL}/night/diff?with=fork&by=objects")
        (found,) = other["differences"]
        assert (found["subject"], found["b"]) == ("configmaps/default/more", "exists")
        for query, code in (
            ("", 400),
            ("with=none", 404),
            ("with=fork&by=all", 400),
            ("with=fork&within=x", 400),
            ("with=fork&within=nan", 400),
            ("with=fork&at=99999", 404),
            ("with=fork&at=yesterday", 400),
        ):
            await server.get(f"{ALL}/night/diff?{query}", code)


async def test_forked_history_stays_until_its_fork_is_gone():
    async with serving() as server:
        await night(server, a="b")
        await server.post(f"{ALL}/night/fork", {"name": "fork"})
        refused = await server.delete(f"{ALL}/night", code=409)
        assert "the events of fork begin with its own" in refused["message"]
        await server.post(f"{ALL}/night/rename", {"name": "day"}, 200)
        (found,) = (await server.get(f"/h/fork{CONFIG_MAPS}"))["items"]
        assert found["data"] == {"a": "b"}
        await server.delete(f"{ALL}/fork")
        await server.delete(f"{ALL}/day")
        assert await names(server) == ["default"]


@pytest.mark.parametrize(
    ("path", "body"),
    [
        ("night/rename", {"name": "Upper"}),
        ("night/rename", {}),
        ("night/rename", {"name": "a", "at": "3"}),
        ("night/copy", {"name": "~x"}),
        ("night/copy", {"name": "a", "at": "yesterday"}),
        ("night/copy", []),
        ("night/fork", {"name": "~x"}),
        ("night/fork", {"name": "a", "at": "0"}),
        ("night/fork", {"name": "a", "profile": "1.2"}),
        ("night/fork", {"name": "a", "gates": {"Nope": True}}),
        ("night/fork", {"name": "a", "quirks": {"q99": True}}),
        ("night/fork", {"name": "a", "delete": ["node/a"]}),
    ],
)
async def test_body_that_cannot_be_meant_is_refused(path, body):
    async with serving() as server:
        await night(server)
        await server.post(f"{ALL}/{path}", body, 400)
        assert await names(server) == ["default", "night"]


async def test_history_at_the_root_stays_while_it_is_served():
    async with serving() as server:
        refused = await server.delete(f"{ALL}/default", code=409)
        assert "is served at /" in refused["message"]
        await server.post(f"{ALL}/default/rename", {"name": "other"}, 409)
        await server.post(f"{ALL}/default/copy", {"name": "other"})
        assert await names(server) == ["default", "other"]


async def test_history_whose_first_objects_cannot_be_stored_is_not_made(monkeypatch):
    store = MemoryStore()
    async with serving(store=store) as server:
        await server.get(ALL)

        async def full(*_, **__):
            raise LogUnavailable("the disk of the database is full")

        with monkeypatch.context() as patched:
            patched.setattr(MemoryLog, "append", full)
            refused = await server.post(ALL, {"name": "night"}, 503)
        assert "is full" in refused["message"]
        assert await names(server) == ["default"]
        await server.post(ALL, {"name": "night"})
        listed = await server.get("/h/night/api/v1/namespaces")
        assert "kube-system" in {each["metadata"]["name"] for each in listed["items"]}


async def test_of_two_processes_that_make_a_history_both_serve_the_same():
    store = MemoryStore()
    async with serving(store=store) as one, serving(store=store) as other:
        async with anyio.create_task_group() as tasks:
            for server in (one, other):
                tasks.start_soon(partial(server.histories.open_or_create, "night", settings={}))
        assert await names(one) == await names(other) == ["default", "night"]
        made = await one.post(f"/h/night{CONFIG_MAPS}", config_map("here"))
        revision = made["metadata"]["resourceVersion"]
        await other.get(f"/h/night{CONFIG_MAPS}/here?resourceVersion={revision}")


async def test_what_another_process_deletes_is_let_go():
    store = MemoryStore()
    async with serving(store=store) as server:
        await night(server)
        info = await server.histories.info("night")
        other = MemoryLog(store)
        await other.delete_history(info.id, at=Instant(0), by="another process")
        refused = await server.raw("POST", f"/h/night{CONFIG_MAPS}", config_map("late"))
        assert refused.status_code in (404, 503)
        await server.histories.look_again()
        assert [each.info.name for each in server.histories.open_runtimes()] == ["default"]
        assert server.histories.broken() == []
        await server.get(f"/h/night{CONFIG_MAPS}", 404)
        await server.post(CONFIG_MAPS, config_map("fine"))


async def test_what_another_process_renames_is_found_by_its_new_name():
    store = MemoryStore()
    async with serving(store=store) as server:
        await night(server, a="b")
        info = await server.histories.info("night")
        await MemoryLog(store).rename_history(info.id, "day")
        await server.histories.look_again()
        await server.get(f"/h/night{CONFIG_MAPS}", 404)
        await server.post(f"/h/day{CONFIG_MAPS}", config_map("more"))


async def test_history_that_is_opened_by_its_new_name_first_stays_open():
    store = MemoryStore()
    async with serving(store=store) as server:
        await night(server, a="b")
        info = await server.histories.info("night")
        await MemoryLog(store).rename_history(info.id, "day")
        # Before this process notices the new name, it finds the history by it.
        runtime = await server.histories.open("day")
        await server.histories.look_again()
        assert [each.info.name for each in server.histories.open_runtimes()] == ["day", "default"]
        await server.post(f"/h/day{CONFIG_MAPS}", config_map("more"))
        assert await server.histories.open("day") is runtime
        await server.histories.close_idle(1e9)
        assert await server.histories.close_idle(0.0, kept=("default",)) == ["day"]


def path_rule(verb: str, path: str) -> dict:
    return {"nonResourceURLs": [path], "verbs": [verb]}


async def test_each_is_judged_by_the_rules_of_its_history():
    async with serving(credentials=KNOWN, authorization=ROLES) as server:
        await server.post(ALL, {"name": "night"}, **AS_ROOT)
        await grant(server, "ann", path_rule("delete", f"{ALL}/*"))
        await server.call("DELETE", f"{ALL}/night", None, 403, **AS_ANN)
        await server.call("DELETE", f"{ALL}/nothing", None, 404, **AS_ANN)
        await server.get("/redra/v1/deleted", 403, **AS_ANN)
        for what in ("rename", "copy", "fork"):
            await server.post(f"{ALL}/night/{what}", {"name": "x"}, 403, **AS_ANN)
        deleted = await server.call("DELETE", f"{ALL}/night", None, 200, **AS_ROOT)
        assert deleted["deleted_by"] == "root"


async def test_copy_needs_the_rights_to_make_a_history_and_to_read_this_one():
    async with serving(credentials=KNOWN, authorization=ROLES) as server:
        path = f"{ALL}/default/copy"
        await grant(server, "ann", path_rule("post", path))
        refused = await server.post(path, {"name": "x"}, 403, **AS_ANN)
        assert f'cannot post path "{ALL}"' in refused["message"]
        await grant(server, "ann", path_rule("post", f"{ALL}*"), name="makes")
        await server.post(path, {"name": "x"}, 403, **AS_ANN)
        # The past may have held objects of other kinds than there are now.
        runtime = await server.histories.open("default")
        rbac = {"roles", "rolebindings", "clusterroles", "clusterrolebindings"}
        present = rbac | {name for _, name in runtime.views.objects.resources()}
        rule = {"apiGroups": ["*"], "resources": sorted(present), "verbs": ["list"]}
        await grant(server, "ann", rule, name="reads-what-there-is")
        for what in (path, path.replace("copy", "fork")):
            await server.post(what, {"name": "x"}, 403, **AS_ANN)
        await grant(server, "ann", EVERYTHING, name="reads")
        await server.post(path, {"name": "x"}, 201, **AS_ANN)


ENDLESS = """
apiVersion: resource.k8s.io/v1
kind: ResourceClaimTemplate
metadata: {name: brief, namespace: default}
spec:
  spec:
    devices:
      requests:
      - name: gpu
        exactly:
          deviceClassName: gpu
          tolerations: [{key: bad, operator: Exists, effect: NoExecute, tolerationSeconds: 0}]
---
apiVersion: resource.k8s.io/v1beta2
kind: DeviceTaintRule
metadata: {name: bad}
spec: {deviceSelector: {}, taint: {key: bad, effect: NoExecute}}
---
apiVersion: apps/v1
kind: ReplicaSet
metadata: {name: endless, namespace: default}
spec:
  replicas: 1
  selector: {matchLabels: {app: endless}}
  template:
    metadata: {labels: {app: endless}}
    spec:
      containers: [{name: c, image: i, resources: {claims: [{name: gpu}]}}]
      resourceClaims: [{name: gpu, resourceClaimTemplateName: brief}]
"""


async def test_fork_that_replaces_pods_without_end_stops_at_its_bound():
    """For an hour nothing else happens: each event counts when it is made, not with an input."""
    cluster = Cluster()
    cluster.device_class()
    cluster.node("n0")
    cluster.slice("n0", 2)
    cluster.template()
    cluster.pod("a", template="gpu")
    cluster.settle().wait(3_600)
    cluster.pod("b", template="gpu")
    events = cluster.settle().line.events
    store = MemoryStore()
    log = MemoryLog(store)
    info = await log.create_history(
        "own", seed=1, settings=cluster.profile.settings(), created=T0, hash=GENESIS
    )
    await log.append(info.id, expected=await log.head(info.id), events=events)
    planes = ForkPlanes(Settings(decide_events_max=200))
    async with serving(store=store, planes=planes) as server:
        at = str(next(each.revision for each in events if each.key.name == "a") - 1)
        edits = list(yaml.safe_load_all(ENDLESS))
        body = {"name": "endless", "at": at, "inputs": "recorded", "apply": edits}
        refused = await server.post(f"{ALL}/own/fork", body, 400)
        before = "by 2026-01-02T03:00:"
        assert refused["message"].startswith(before), "none of the hour is made in vain"
        assert "more than 200 events of its own; end it at an earlier" in refused["message"]
        assert await names(server) == ["own"]
        assert await log.unfinished() == []
