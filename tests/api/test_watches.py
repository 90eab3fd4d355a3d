"""Watches: each sentence of the contract (api.md 7)."""

import base64
import json

import pytest

from app.adapters.memory import MemoryStore
from app.api.kubernetes.fanout import framed
from app.api.server.limits import ApiLimits
from tests.api.serving import CLAIMS, CONFIG_MAPS, claim, config_map, pod, serving

PODS = "/api/v1/namespaces/default/pods"
TABLE = "application/json;as=Table;v=v1;g=meta.k8s.io,application/json"
PARTIAL = "application/json;as=PartialObjectMetadata;v=v1;g=meta.k8s.io"
INITIAL = "watch=true&sendInitialEvents=true&resourceVersionMatch=NotOlderThan"


async def label(server, name, value):
    labels = {"metadata": {"labels": {"n": value}}}
    return await server.patch(f"{CONFIG_MAPS}/{name}", labels)


async def test_watch_without_version_begins_with_what_exists():
    async with serving() as server:
        await server.post(CONFIG_MAPS, config_map("b"))
        await server.post(CONFIG_MAPS, config_map("a"))
        async with server.watch(f"{CONFIG_MAPS}?watch=true") as watch:
            assert await watch.changes(2) == [("ADDED", "a"), ("ADDED", "b")]
            await server.post(CONFIG_MAPS, config_map("c"))
            assert await watch.changes(1) == [("ADDED", "c")]


async def test_watch_after_a_version_tells_only_what_came_later():
    async with serving() as server:
        made = await server.post(CONFIG_MAPS, config_map("a"))
        version = made["metadata"]["resourceVersion"]
        await label(server, "a", "1")
        async with server.watch(f"{CONFIG_MAPS}?watch=1&resourceVersion={version}") as watch:
            assert await watch.changes(1) == [("MODIFIED", "a")]
            await server.delete(f"{CONFIG_MAPS}/a")
            assert await watch.changes(1) == [("DELETED", "a")]


async def test_deletion_carries_its_own_version():
    async with serving() as server:
        made = await server.post(CONFIG_MAPS, config_map("a", x="1"))
        async with server.watch(f"{CONFIG_MAPS}?watch=true&resourceVersion=0") as watch:
            await watch.line()
            await server.delete(f"{CONFIG_MAPS}/a")
            line = await watch.line()
            assert line["object"]["data"] == {"x": "1"}
            found = int(line["object"]["metadata"]["resourceVersion"])
            assert found > int(made["metadata"]["resourceVersion"])


async def test_changes_come_once_and_in_the_order_of_versions():
    async with serving() as server, server.watch("/api/v1/configmaps?watch=true") as watch:
        for number in range(20):
            await server.post(CONFIG_MAPS, config_map(f"m{number}"))
            await label(server, f"m{number}", "x")
        found = await watch.lines(40)
        versions = [int(version) for _, _, version in found]
        assert versions == sorted(set(versions))


async def test_watch_resumed_anywhere_misses_nothing_and_repeats_nothing():
    async with serving() as server:
        await server.post(CONFIG_MAPS, config_map("m"))
        for number in range(10):
            await label(server, "m", str(number))
        async with server.watch(f"{CONFIG_MAPS}?watch=true&resourceVersion=1") as watch:
            whole = await watch.lines(11)
        for place, (_, _, version) in enumerate(whole[:-1]):
            path = f"{CONFIG_MAPS}?watch=true&resourceVersion={version}"
            async with server.watch(path) as watch:
                assert await watch.lines(10 - place) == whole[place + 1 :]


async def test_watch_goes_on_after_a_restart_of_the_server():
    store = MemoryStore()
    async with serving(store=store) as server:
        await server.post(CONFIG_MAPS, config_map("a"))
        async with server.watch(f"{CONFIG_MAPS}?watch=true") as watch:
            ((_, _, version),) = await watch.lines(1)
        await label(server, "a", "1")
    async with serving(store=store) as server:
        path = f"{CONFIG_MAPS}?watch=true&resourceVersion={version}"
        async with server.watch(path) as watch:
            await label(server, "a", "2")
            assert await watch.changes(2) == [("MODIFIED", "a"), ("MODIFIED", "a")]


async def test_lines_are_whole_objects_with_kind_and_version():
    async with serving() as server:
        made = await server.post(CLAIMS, claim())
        async with server.watch(f"{CLAIMS}?watch=true") as watch:
            line = await watch.line()
            assert watch.headers["content-type"] == "application/json"
            assert line["object"] == made
            assert line["object"]["kind"] == "ResourceClaim"


async def test_watch_in_another_version_sends_that_version():
    async with serving() as server:
        await server.post(CLAIMS, claim())
        async with server.watch(CLAIMS.replace("/v1/", "/v1beta1/") + "?watch=true") as watch:
            line = await watch.line()
            assert line["object"]["apiVersion"] == "resource.k8s.io/v1beta1"
            assert "deprecated" in watch.headers["warning"]


async def test_object_that_starts_matching_is_added_and_stops_is_deleted():
    async with serving() as server:
        await server.post(CONFIG_MAPS, config_map("m"))
        async with server.watch(f"{CONFIG_MAPS}?watch=true&labelSelector=n%3D1") as watch:
            await label(server, "m", "1")
            assert await watch.changes(1) == [("ADDED", "m")]
            await server.patch(f"{CONFIG_MAPS}/m", {"data": {"a": "b"}})
            assert await watch.changes(1) == [("MODIFIED", "m")]
            last = await label(server, "m", "2")
            line = await watch.line()
            assert line["type"] == "DELETED"
            assert line["object"]["metadata"]["labels"] == {"n": "1"}
            version = line["object"]["metadata"]["resourceVersion"]
            assert version == last["metadata"]["resourceVersion"]


async def test_selector_knows_what_matched_before_the_watch_began():
    async with serving() as server:
        made = await server.post(CONFIG_MAPS, config_map("m", labels={"n": "1"}))
        version = made["metadata"]["resourceVersion"]
        await label(server, "m", "2")
        path = f"{CONFIG_MAPS}?watch=true&labelSelector=n%3D1&resourceVersion={version}"
        async with server.watch(path) as watch:
            assert await watch.changes(1) == [("DELETED", "m")]


async def test_object_that_never_matched_is_not_told_when_it_goes():
    async with serving() as server:
        await server.post(CONFIG_MAPS, config_map("m"))
        async with server.watch(f"{CONFIG_MAPS}?watch=true&labelSelector=n") as watch:
            await server.delete(f"{CONFIG_MAPS}/m")
            await server.post(CONFIG_MAPS, config_map("o", labels={"n": "1"}))
            assert await watch.changes(1) == [("ADDED", "o")]


async def test_pod_enters_the_watch_of_its_node_when_it_is_bound():
    async with serving() as server:
        await server.post(PODS, pod("p"))
        path = "/api/v1/pods?watch=true&fieldSelector=spec.nodeName%3Dn"
        async with server.watch(path) as watch:
            target = {"metadata": {"name": "p"}, "target": {"kind": "Node", "name": "n"}}
            await server.post(f"{PODS}/p/binding", target)
            assert await watch.changes(1) == [("ADDED", "p")]


async def test_watch_by_name_sees_one_object():
    async with serving() as server:
        path = f"{CONFIG_MAPS}?watch=true&fieldSelector=metadata.name%3Db"
        async with server.watch(path) as watch:
            await server.post(CONFIG_MAPS, config_map("a"))
            await server.post(CONFIG_MAPS, config_map("b"))
            assert await watch.changes(1) == [("ADDED", "b")]


async def test_watch_of_one_object_path_sees_that_object():
    async with serving() as server:
        await server.post(CONFIG_MAPS, config_map("a"))
        await server.post(CONFIG_MAPS, config_map("b"))
        path = CONFIG_MAPS.replace("/api/v1/", "/api/v1/watch/")
        async with server.watch(f"{path}/b") as watch:
            assert await watch.changes(1) == [("ADDED", "b")]


async def test_watch_parameter_beside_the_name_of_an_object_means_nothing():
    async with serving() as server:
        await server.post(CONFIG_MAPS, config_map("b"))
        found = await server.get(f"{CONFIG_MAPS}/b?watch=true")
        assert (found["kind"], found["metadata"]["name"]) == ("ConfigMap", "b")


async def test_watch_paths_are_twins_of_the_parameter():
    async with serving() as server:
        await server.post(CONFIG_MAPS, config_map("a"))
        path = CONFIG_MAPS.replace("/api/v1/", "/api/v1/watch/")
        async with server.watch(path) as watch:
            assert await watch.changes(1) == [("ADDED", "a")]


async def test_other_namespaces_are_not_told():
    async with serving() as server, server.watch(f"{CONFIG_MAPS}?watch=true") as watch:
        await server.post(CONFIG_MAPS.replace("default", "kube-system"), config_map("a"))
        await server.post(CONFIG_MAPS, config_map("b"))
        assert await watch.changes(1) == [("ADDED", "b")]


async def test_streaming_list_ends_its_beginning_with_a_bookmark():
    async with serving() as server:
        await server.post(CONFIG_MAPS, config_map("a"))
        async with server.watch(f"{CONFIG_MAPS}?{INITIAL}&allowWatchBookmarks=true") as watch:
            assert await watch.changes(1) == [("ADDED", "a")]
            mark = await watch.line()
            metadata = mark["object"]["metadata"]
            assert mark["type"] == "BOOKMARK"
            assert mark["object"]["kind"] == "ConfigMap"
            assert metadata["annotations"]["k8s.io/initial-events-end"] == "true"
            listed = await server.get(CONFIG_MAPS)
            assert metadata["resourceVersion"] == listed["metadata"]["resourceVersion"]
            await server.post(CONFIG_MAPS, config_map("b"))
            assert await watch.changes(1) == [("ADDED", "b")]


@pytest.mark.parametrize(
    ("accept", "kind", "api_version"),
    [
        ("application/json", "ResourceClaimList", "resource.k8s.io/v1"),
        (
            "application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1",
            "PartialObjectMetadataList",
            "meta.k8s.io/v1",
        ),
    ],
)
async def test_end_of_the_beginning_has_an_empty_list_for_clients_to_fill(
    accept, kind, api_version
):
    path = f"{CLAIMS}?{INITIAL}&allowWatchBookmarks=true"
    async with serving() as server, server.watch(path, accept=accept) as watch:
        marks = (await watch.line())["object"]["metadata"]["annotations"]
        text = marks["kubernetes.io/initial-events-list-blueprint"]
        found = json.loads(base64.b64decode(text))
        assert (found["kind"], found["apiVersion"], found["items"]) == (kind, api_version, [])


async def test_streaming_list_of_nothing_sends_the_bookmark_at_once():
    async with (
        serving() as server,
        server.watch(f"{CLAIMS}?{INITIAL}&allowWatchBookmarks=true") as watch,
    ):
        assert (await watch.line())["type"] == "BOOKMARK"


async def test_bookmarks_come_now_and_then():
    async with (
        serving(limits=ApiLimits(bookmark_seconds=0.01)) as server,
        server.watch(f"{CLAIMS}?watch=true&allowWatchBookmarks=true") as watch,
    ):
        mark = await watch.line()
        assert mark["type"] == "BOOKMARK"
        assert mark["object"]["apiVersion"] == "resource.k8s.io/v1"
        await server.post(CONFIG_MAPS, config_map("a"))
        seen = int(mark["object"]["metadata"]["resourceVersion"])
        while seen < 3:
            seen = int((await watch.line())["object"]["metadata"]["resourceVersion"])


CREATED_LATE = {"creationTimestamp": None}


@pytest.mark.parametrize(
    ("path", "accept", "shown"),
    [
        (
            CLAIMS,
            "application/json",
            {"kind": "ResourceClaim", "apiVersion": "resource.k8s.io/v1", "spec": {}},
        ),
        (CONFIG_MAPS, "application/json", {"kind": "ConfigMap", "apiVersion": "v1"}),
        (CLAIMS, PARTIAL, {"kind": "PartialObjectMetadata", "apiVersion": "meta.k8s.io/v1"}),
        (
            CLAIMS,
            PARTIAL.replace("v=v1;", "v=v1beta1;"),
            {"kind": "PartialObjectMetadata", "apiVersion": "meta.k8s.io/v1beta1"},
        ),
    ],
)
async def test_bookmark_has_the_form_of_the_watch_and_nothing_but_a_version(path, accept, shown):
    async with (
        serving(limits=ApiLimits(bookmark_seconds=0.01)) as server,
        server.watch(f"{path}?watch=true&allowWatchBookmarks=true", accept=accept) as watch,
    ):
        mark = (await watch.line())["object"]
        version = mark["metadata"]["resourceVersion"]
        assert int(version) > 0
        assert mark == shown | {"metadata": {"resourceVersion": version} | CREATED_LATE}


async def test_bookmark_of_a_table_has_a_row_without_cells():
    async with (
        serving(limits=ApiLimits(bookmark_seconds=0.01)) as server,
        server.watch(f"{CLAIMS}?watch=true&allowWatchBookmarks=true", accept=TABLE) as watch,
    ):
        mark = (await watch.line())["object"]
        version = mark["metadata"]["resourceVersion"]
        partial = {
            "kind": "PartialObjectMetadata",
            "apiVersion": "meta.k8s.io/v1",
            "metadata": {"resourceVersion": version} | CREATED_LATE,
        }
        assert mark == {
            "kind": "Table",
            "apiVersion": "meta.k8s.io/v1",
            "metadata": {"resourceVersion": version},
            "columnDefinitions": None,
            "rows": [{"cells": [], "object": partial}],
        }


async def test_object_is_found_by_name_in_every_namespace():
    everywhere = "/api/v1/configmaps?fieldSelector=metadata.name%3Da"
    other = CONFIG_MAPS.replace("default", "kube-system")
    async with serving() as server:
        for path, name in ((CONFIG_MAPS, "a"), (CONFIG_MAPS, "b"), (other, "a")):
            await server.post(path, config_map(name))
        found = await server.get(everywhere)
        assert [each["metadata"]["namespace"] for each in found["items"]] == [
            "default",
            "kube-system",
        ]
        (alone,) = (await server.get(f"{other}?fieldSelector=metadata.name%3Da"))["items"]
        assert alone["metadata"]["namespace"] == "kube-system"
        (space,) = (await server.get("/api/v1/namespaces?fieldSelector=metadata.name%3Ddefault"))[
            "items"
        ]
        assert space["metadata"]["name"] == "default"


@pytest.mark.parametrize(
    ("chunk", "sent"),
    [(b"", b""), (b"abc", b"3\r\nabc\r\n"), (b"x" * 26, b"1a\r\n" + b"x" * 26 + b"\r\n")],
)
def test_chunk_is_sent_with_its_length(chunk, sent):
    """RFC 9112, 7.1. An empty chunk would end the answer."""
    assert framed(chunk) == sent


async def test_bookmark_is_never_ahead_of_what_was_sent():
    async with (
        serving(limits=ApiLimits(bookmark_seconds=0.002)) as server,
        server.watch(f"{CONFIG_MAPS}?watch=true&allowWatchBookmarks=true") as watch,
    ):
        for number in range(30):
            await server.post(CONFIG_MAPS, config_map(f"m{number}"))
        sent = 0
        last = 0
        while sent < 30:
            line = await watch.line()
            version = int(line["object"]["metadata"]["resourceVersion"])
            assert version >= last
            if line["type"] == "ADDED":
                assert version > last
                sent += 1
            last = version


async def test_nobody_gets_bookmarks_without_asking():
    async with (
        serving(limits=ApiLimits(bookmark_seconds=0.001)) as server,
        server.watch(f"{CONFIG_MAPS}?watch=true") as watch,
    ):
        for number in range(5):
            await server.post(CONFIG_MAPS, config_map(f"m{number}"))
        assert {kind for kind, _ in await watch.changes(5)} == {"ADDED"}


async def test_watch_ends_when_its_time_is_up():
    async with serving() as server, server.watch(f"{CLAIMS}?watch=true&timeoutSeconds=1") as watch:
        assert await watch.end() == b""


async def test_watch_without_a_time_ends_by_itself():
    limits = ApiLimits(watch_seconds_min=0.01, watch_seconds_max=0.02)
    async with serving(limits=limits) as server, server.watch(f"{CLAIMS}?watch=true") as watch:
        assert await watch.end() == b""


async def test_watch_of_the_past_shows_what_was_and_waits():
    async with serving() as server:
        made = await server.post(CONFIG_MAPS, config_map("a"))
        version = made["metadata"]["resourceVersion"]
        await server.delete(f"{CONFIG_MAPS}/a")
        path = f"/h/default@{version}{CONFIG_MAPS}?watch=true&timeoutSeconds=1"
        async with server.watch(path) as watch:
            assert await watch.changes(1) == [("ADDED", "a")]
            assert await watch.end() == b""


async def test_watch_of_the_past_replays_up_to_its_moment():
    async with serving() as server:
        await server.post(CONFIG_MAPS, config_map("a"))
        made = await label(server, "a", "1")
        version = made["metadata"]["resourceVersion"]
        await server.delete(f"{CONFIG_MAPS}/a")
        query = "watch=true&resourceVersion=1&timeoutSeconds=1"
        async with server.watch(f"/h/default@{version}{CONFIG_MAPS}?{query}") as watch:
            assert await watch.changes(2) == [("ADDED", "a"), ("MODIFIED", "a")]
            assert await watch.end() == b""


async def test_streaming_list_of_a_version_from_the_future_is_too_large():
    async with serving(limits=ApiLimits(revision_wait_seconds=0.01)) as server:
        query = "watch=true&sendInitialEvents=true&resourceVersionMatch=NotOlderThan"
        told = await server.get(f"{CLAIMS}?{query}&resourceVersion=999", code=504)
        assert told["details"]["causes"][0]["reason"] == "ResourceVersionTooLarge"


@pytest.mark.parametrize("more", ["", "&sendInitialEvents=true&resourceVersionMatch=NotOlderThan"])
async def test_version_that_is_no_number_is_refused_before_the_stream_begins(more):
    async with serving() as server:
        told = await server.get(f"{CLAIMS}?watch=true&resourceVersion=abc{more}", code=400)
        assert told["message"].startswith("resourceVersion: Invalid value: ")


async def test_watch_from_the_future_is_silent_until_it_comes():
    async with serving(limits=ApiLimits(revision_wait_seconds=0.01)) as server:
        made = await server.post(CONFIG_MAPS, config_map("a"))
        version = int(made["metadata"]["resourceVersion"])
        query = f"watch=true&resourceVersion={version + 2}"
        async with server.watch(f"{CONFIG_MAPS}?{query}") as watch:
            for name in ("b", "c", "d"):
                await server.post(CONFIG_MAPS, config_map(name))
            assert await watch.changes(1) == [("ADDED", "d")]
            assert watch.status == 200


async def test_watch_from_the_future_ends_when_its_time_is_up():
    async with serving() as server:
        query = "watch=true&resourceVersion=999&timeoutSeconds=1&allowWatchBookmarks=true"
        async with server.watch(f"{CONFIG_MAPS}?{query}") as watch:
            assert await watch.end() == b""


async def test_watch_from_the_future_ends_with_the_server():
    path = f"{CONFIG_MAPS}?watch=true&resourceVersion=999"
    async with serving() as server, server.watch(path) as watch:
        await server.post(CONFIG_MAPS, config_map("a"))
        server.app.end_watches()
        assert await watch.end() == b""


async def test_compacted_version_gets_one_error_and_the_end():
    async with serving(limits=ApiLimits(retained_revisions=1)) as server:
        for name in ("a", "b", "c"):
            await server.post(CONFIG_MAPS, config_map(name))
        async with server.watch(f"{CONFIG_MAPS}?watch=true&resourceVersion=1") as watch:
            line = await watch.line()
            assert line["type"] == "ERROR"
            assert (line["object"]["code"], line["object"]["reason"]) == (410, "Expired")
            assert line["object"]["message"] == "too old resource version: 1 (4)"
            assert await watch.end() == b""


async def test_watcher_that_falls_behind_is_cut_off_and_told():
    async with serving(queue_max=3) as server, server.watch(f"{CONFIG_MAPS}?watch=true") as watch:
        runtime = await server.histories.open("default")
        await server.post(CONFIG_MAPS, config_map("a"))
        await watch.line()
        (follower,) = runtime.watches._by_resource["", "configmaps"]
        event = runtime.views.objects.event(("", "configmaps", "default", "a"))
        follower.offer([event] * 4)
        line = await watch.line()
        assert (line["type"], line["object"]["code"]) == ("ERROR", 410)
        await watch.end()


async def test_more_watches_than_allowed_are_to_come_back_later():
    async with (
        serving(limits=ApiLimits(watchers_max=1)) as server,
        server.watch(f"{CLAIMS}?{INITIAL}&allowWatchBookmarks=true") as watch,
    ):
        await watch.line()
        answer = await server.raw("GET", f"{CLAIMS}?watch=true")
        assert answer.status_code == 429
        assert answer.headers["retry-after"] == "1"


async def test_watch_that_was_left_frees_its_place():
    async with serving() as server:
        runtime = await server.histories.open("default")
        async with server.watch(f"{CLAIMS}?{INITIAL}&allowWatchBookmarks=true") as watch:
            await watch.line()
            assert runtime.watches.count() == 1
        assert runtime.watches.count() == 0


async def test_table_watch_sends_tables_and_columns_once():
    async with serving() as server:
        await server.post(CLAIMS, claim("a"))
        async with server.watch(f"{CLAIMS}?watch=true", accept=TABLE) as watch:
            first = await watch.line()
            assert first["object"]["kind"] == "Table"
            assert first["object"]["columnDefinitions"][0]["name"] == "Name"
            await server.post(CLAIMS, claim("b"))
            second = await watch.line()
            assert second["object"]["columnDefinitions"] is None
            assert second["object"]["rows"][0]["cells"][:2] == ["b", "pending"]


async def test_metadata_watch_sends_metadata():
    async with serving() as server:
        await server.post(CLAIMS, claim())
        async with server.watch(f"{CLAIMS}?watch=true", accept=PARTIAL) as watch:
            line = await watch.line()
            assert line["object"]["kind"] == "PartialObjectMetadata"
            assert "spec" not in line["object"]


@pytest.mark.parametrize("value", ["true", "1", "True", ""])
async def test_any_value_but_false_and_0_means_true(value):
    async with serving() as server:
        await server.post(CONFIG_MAPS, config_map("a"))
        async with server.watch(f"{CONFIG_MAPS}?watch={value}") as watch:
            assert await watch.changes(1) == [("ADDED", "a")]


@pytest.mark.parametrize("value", ["false", "0", "False"])
async def test_false_and_0_mean_a_plain_list(value):
    async with serving() as server:
        assert (await server.get(f"{CONFIG_MAPS}?watch={value}"))["kind"] == "ConfigMapList"


@pytest.mark.parametrize("query", ["timeoutSeconds=0", "timeoutSeconds=", ""])
async def test_watch_without_a_time_ends_between_the_bounds_for_such(query):
    """Parity: api.md 7; 0 is as good as absent, the server then draws 30 to 60 minutes."""
    limits = ApiLimits(watch_seconds_min=0.01, watch_seconds_max=0.02)
    path = f"{CONFIG_MAPS}?watch=1&{query}"
    async with serving(limits=limits) as server, server.watch(path) as watch:
        await watch.end()
