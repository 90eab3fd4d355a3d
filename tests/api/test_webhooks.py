"""Admission webhooks over real TLS: who is asked, what they change, what their failures mean."""

from contextlib import asynccontextmanager

import anyio
import pytest

from tests.api.hooking import (
    MUTATING,
    VALIDATING,
    configuration,
    hooks_running,
    label,
    patching,
    said,
)
from tests.api.serving import CONFIG_MAPS, serving
from tests.unit.review.clusters import binding, config_map, policy, rule

POLICIES = "/apis/admissionregistration.k8s.io/v1/validatingadmissionpolicies"
BINDINGS = "/apis/admissionregistration.k8s.io/v1/validatingadmissionpolicybindings"


@asynccontextmanager
async def both(folder, **options):
    """A server that may call the webhooks of another one, and that one."""
    async with hooks_running(folder) as hooks, serving(webhooks=hooks.allowed, **options) as server:
        yield server, hooks


async def install(server, hooks, kind, *paths, **more):
    """A configuration with a webhook at each path."""
    webhooks = [hooks.webhook(path, **more) for path in paths]
    place = MUTATING if kind == "Mutating" else VALIDATING
    return await server.raw("POST", place, configuration(kind, *webhooks))


async def test_webhook_is_asked_about_the_object_as_it_will_be(tmp_path):
    async with both(tmp_path) as (server, hooks):
        hooks.answers["/check"] = said
        answer = await install(server, hooks, "Validating", "/check")
        assert answer.headers.get_list("warning") == []
        made = await server.post(f"{CONFIG_MAPS}?fieldManager=me", config_map(data={"a": "b"}))
        ((path, review),) = hooks.requests
        assert (path, review["apiVersion"], review["kind"]) == (
            "/check",
            "admission.k8s.io/v1",
            "AdmissionReview",
        )
        request = dict(review["request"])
        shown = request.pop("object")
        assert shown["metadata"]["uid"] == made["metadata"]["uid"]
        assert shown["data"] == {"a": "b"}
        assert len(request.pop("uid")) == 36
        kind = {"group": "", "version": "v1", "kind": "ConfigMap"}
        resource = {"group": "", "version": "v1", "resource": "configmaps"}
        user = request.pop("userInfo")
        assert user["username"]
        assert request == {
            "kind": kind,
            "requestKind": kind,
            "resource": resource,
            "requestResource": resource,
            "name": "c",
            "namespace": "default",
            "operation": "CREATE",
            "oldObject": None,
            "dryRun": False,
            "options": {
                "kind": "CreateOptions",
                "apiVersion": "meta.k8s.io/v1",
                "fieldManager": "me",
            },
        }
        assert hooks.lines == ["POST /check?timeout=5s HTTP/1.1"]


async def test_denial_is_that_of_the_webhook(tmp_path):
    async with both(tmp_path) as (server, hooks):
        status = {"code": 403, "reason": "Forbidden", "message": "not on a Sunday"}
        hooks.answers["/check"] = lambda asked: said(asked, allowed=False, status=status)
        await install(server, hooks, "Validating", "/check")
        answer = await server.post(CONFIG_MAPS, config_map(), 403)
        assert answer == {
            "kind": "Status",
            "apiVersion": "v1",
            "metadata": {},
            "status": "Failure",
            "message": 'admission webhook "check.example.com" denied the request: not on a Sunday',
            "reason": "Forbidden",
            "code": 403,
        }
        await server.get(f"{CONFIG_MAPS}/c", 404)


@pytest.mark.parametrize(
    ("more", "code", "end"),
    [
        ({}, 400, " without explanation"),
        ({"status": {"message": "no"}}, 400, ": no"),
        ({"status": {"reason": "Gone", "code": 410}}, 410, ": Gone"),
        ({"status": {"message": "odd", "code": 200}}, 400, ": odd"),
    ],
)
async def test_denial_without_words_or_code_gets_upstreams(tmp_path, more, code, end):
    async with both(tmp_path) as (server, hooks):
        hooks.answers["/check"] = lambda asked: said(asked, allowed=False, **more)
        await install(server, hooks, "Validating", "/check")
        answer = await server.post(CONFIG_MAPS, config_map(), code)
        assert answer["message"] == f'admission webhook "check.example.com" denied the request{end}'


async def test_warnings_reach_the_client_also_of_a_refusal(tmp_path):
    async with both(tmp_path) as (server, hooks):
        hooks.answers["/check"] = lambda asked: said(
            asked, allowed=asked["request"]["name"] == "c", warnings=["careful"]
        )
        await install(server, hooks, "Validating", "/check")
        for name, code in (("c", 201), ("d", 400)):
            answer = await server.raw("POST", CONFIG_MAPS, config_map(name))
            assert answer.status_code == code
            assert answer.headers.get_list("warning") == ['299 - "careful"']


async def test_patches_reach_the_log_and_later_webhooks(tmp_path):
    async with both(tmp_path) as (server, hooks):
        hooks.answers["/one"] = patching(label("a", "b"))
        hooks.answers["/two"] = patching({"op": "add", "path": "/data/x", "value": "y"})
        hooks.answers["/check"] = said
        await install(server, hooks, "Mutating", "/one", "/two")
        await install(server, hooks, "Validating", "/check")
        made = await server.post(CONFIG_MAPS, config_map(data={"z": "1"}))
        assert made["metadata"]["labels"] == {"a": "b"}
        assert made["data"] == {"x": "y", "z": "1"}
        assert await server.get(f"{CONFIG_MAPS}/c") == made
        assert [path for path, _ in hooks.requests] == ["/one", "/two", "/check"]
        first, second, last = (review["request"]["object"] for _, review in hooks.requests)
        assert "labels" not in first["metadata"]
        assert "uid" not in first["metadata"]
        assert second["metadata"]["labels"] == {"a": "b"}
        assert last["data"] == made["data"]
        fields = made["metadata"]["managedFields"][0]["fieldsV1"]
        assert fields == {"f:data": {".": {}, "f:z": {}}}


async def test_update_patch_and_apply_are_asked_about_with_both_objects(tmp_path):
    async with both(tmp_path) as (server, hooks):
        made = await server.post(CONFIG_MAPS, config_map(data={"a": "1"}))
        hooks.answers["/one"] = patching(label("seen", "yes"))
        await install(server, hooks, "Mutating", "/one")
        place = f"{CONFIG_MAPS}/c"
        changed = await server.put(place, {**made, "data": {"a": "2"}})
        assert changed["metadata"]["labels"] == {"seen": "yes"}
        changed = await server.patch(place, {"data": {"a": "3"}, "metadata": {"labels": None}})
        assert changed["metadata"]["labels"] == {"seen": "yes"}
        applied = {
            "apiVersion": "v1",
            "kind": "ConfigMap",
            "metadata": {"name": "c"},
            "data": {"b": "1"},
        }
        await server.call(
            "PATCH", f"{place}?fieldManager=me&force=true", applied, 200,
            content_type="application/apply-patch+yaml",
        )  # fmt: skip
        fresh = {**applied, "metadata": {"name": "n"}}
        made = await server.call(
            "PATCH", f"{CONFIG_MAPS}/n?fieldManager=me", fresh, 201,
            content_type="application/apply-patch+yaml",
        )  # fmt: skip
        assert made["metadata"]["labels"] == {"seen": "yes"}
        asked = [review["request"] for _, review in hooks.requests]
        assert [each["operation"] for each in asked] == ["UPDATE", "UPDATE", "UPDATE", "CREATE"]
        values = [(each["oldObject"] or {}).get("data", {}).get("a") for each in asked]
        assert values == ["1", "2", "3", None]
        assert asked[2]["object"]["data"] == {"a": "3", "b": "1"}


async def test_delete_is_asked_about_with_the_object_that_goes(tmp_path):
    async with both(tmp_path) as (server, hooks):
        await server.post(CONFIG_MAPS, config_map())
        hooks.answers["/check"] = lambda asked: said(asked, allowed=False)
        await install(server, hooks, "Validating", "/check")
        await server.delete(f"{CONFIG_MAPS}/c", code=400)
        ((_, review),) = hooks.requests
        assert review["request"]["object"] is None
        assert review["request"]["oldObject"]["metadata"]["name"] == "c"
        await server.get(f"{CONFIG_MAPS}/c")


async def test_webhook_behind_a_service_is_reached_where_the_setting_says(tmp_path):
    async with both(tmp_path) as (server, hooks):
        hooks.answers["/check"] = lambda asked: said(asked, allowed=False)
        await install(server, hooks, "Validating", "/check", by_service=True)
        await server.post(CONFIG_MAPS, config_map(), 400)
        assert hooks.names("/check") == ["c"]


async def test_what_is_not_allowed_is_stored_and_never_called(tmp_path):
    async with hooks_running(tmp_path) as hooks, serving() as server:
        answer = await install(server, hooks, "Validating", "/check")
        assert answer.status_code == 201
        assert answer.headers.get_list("warning") == [
            '299 - "webhooks[0].clientConfig: the field is stored and has no effect here: no '
            'setting allows that the webhook is called (REDRA_WEBHOOKS_ALLOWED)"'
        ]
        await server.post(CONFIG_MAPS, config_map())
        assert hooks.requests == []
    other = f"https://127.0.0.1:{hooks.port}/elsewhere"
    async with hooks_running(tmp_path) as hooks, serving(webhooks=other) as server:
        answer = await install(server, hooks, "Validating", "/check")
        assert len(answer.headers.get_list("warning")) == 1
        await server.post(CONFIG_MAPS, config_map())
        assert hooks.requests == []


@pytest.mark.parametrize("policy_of_failures", ["Fail", "Ignore"])
async def test_failure_to_call_refuses_the_write_unless_it_is_ignored(tmp_path, policy_of_failures):
    async with both(tmp_path) as (server, hooks):
        hooks.answers["/check"] = lambda asked: (503, "down")
        await install(server, hooks, "Validating", "/check", failurePolicy=policy_of_failures)
        if policy_of_failures == "Ignore":
            await server.post(CONFIG_MAPS, config_map())
            return
        answer = await server.post(CONFIG_MAPS, config_map(), 500)
        text = (
            'failed calling webhook "check.example.com": failed to call webhook: an error on the '
            'server ("down") has prevented the request from succeeding'
        )
        assert answer["message"] == f"Internal error occurred: {text}"
        assert answer["reason"] == "InternalError"
        assert answer["details"] == {"causes": [{"message": text}]}


async def test_server_that_is_not_there_is_told(tmp_path):
    async with both(tmp_path) as (server, hooks):
        webhook = hooks.webhook("/check")
    async with serving(webhooks=hooks.allowed) as server:
        await server.post(VALIDATING, configuration("Validating", webhook))
        answer = await server.post(CONFIG_MAPS, config_map(), 500)
        assert answer["message"] == (
            'Internal error occurred: failed calling webhook "check.example.com": failed to call '
            f'webhook: Post "https://127.0.0.1:{hooks.port}/check?timeout=5s": dial tcp '
            f"127.0.0.1:{hooks.port}: connect: connection refused"
        )


async def test_certificate_must_be_of_the_authority_that_is_named(tmp_path):
    async with both(tmp_path / "one") as (server, hooks), hooks_running(tmp_path / "two") as other:
        hooks.answers["/check"] = said
        webhook = hooks.webhook("/check")
        webhook["clientConfig"]["caBundle"] = other.authority
        await server.post(VALIDATING, configuration("Validating", webhook))
        answer = await server.post(CONFIG_MAPS, config_map(), 500)
        assert "tls: failed to verify certificate" in answer["message"]
        assert hooks.requests == []


async def test_slow_webhook_is_given_up(tmp_path):
    async with both(tmp_path) as (server, hooks):

        async def never(asked):
            await anyio.sleep_forever()

        hooks.answers["/check"] = never
        await install(server, hooks, "Validating", "/check", timeoutSeconds=1)
        answer = await server.post(CONFIG_MAPS, config_map(), 500)
        assert answer["message"].endswith('/check?timeout=1s": context deadline exceeded')


@pytest.mark.parametrize(
    ("answer", "text"),
    [
        ("no json", "received invalid webhook response: "),
        ("{}", "expected webhook response of admission.k8s.io/v1, Kind=AdmissionReview, got /"),
        (
            '{"apiVersion":"admission.k8s.io/v1","kind":"AdmissionReview"}',
            "webhook response was absent",
        ),
        (
            '{"apiVersion":"admission.k8s.io/v1","kind":"AdmissionReview","response":{"uid":"x"}}',
            'expected response.uid="',
        ),
    ],
)
async def test_answer_that_means_nothing_is_a_failure(tmp_path, answer, text):
    async with both(tmp_path) as (server, hooks):
        hooks.answers["/check"] = lambda asked: (200, answer)
        await install(server, hooks, "Validating", "/check")
        said_ = (await server.post(CONFIG_MAPS, config_map(), 500))["message"]
        assert "received invalid webhook response: " in said_
        assert text in said_


async def test_patch_of_a_validating_webhook_or_of_a_delete_is_a_failure(tmp_path):
    async with both(tmp_path) as (server, hooks):
        await server.post(CONFIG_MAPS, config_map())
        hooks.answers["/check"] = hooks.answers["/one"] = patching(label("a", "b"))
        await install(server, hooks, "Validating", "/check")
        answer = await server.post(CONFIG_MAPS, config_map("d"), 500)
        assert "validating webhook may not return response.patch" in answer["message"]
        await server.delete(f"{VALIDATING}/a")
        await install(server, hooks, "Mutating", "/one")
        answer = await server.delete(f"{CONFIG_MAPS}/c", code=500)
        assert answer["message"].endswith(
            'admission webhook "one.example.com" attempted to modify the object, which is not '
            "supported for this operation"
        )


@pytest.mark.parametrize(
    "operations",
    [
        [{"op": "remove", "path": "/nothing"}],
        [{"op": "replace", "path": "/kind", "value": "Secret"}],
        [{"op": "replace", "path": "/metadata", "value": 7}],
        [{"op": "jump"}],
    ],
)
async def test_patch_that_cannot_be_applied_is_a_failure_and_nothing_is_written(
    tmp_path, operations
):
    async with both(tmp_path) as (server, hooks):
        hooks.answers["/one"] = patching(*operations)
        await install(server, hooks, "Mutating", "/one")
        answer = await server.post(CONFIG_MAPS, config_map(), 500)
        assert answer["reason"] == "InternalError"
        await server.get(f"{CONFIG_MAPS}/c", 404)


async def test_what_a_webhook_makes_is_validated_and_judged(tmp_path):
    async with both(tmp_path) as (server, hooks):
        hooks.answers["/one"] = patching({"op": "add", "path": "/data", "value": {"a/b": "c"}})
        hooks.answers["/check"] = said
        await install(server, hooks, "Mutating", "/one")
        await install(server, hooks, "Validating", "/check")
        answer = await server.post(CONFIG_MAPS, config_map(), 422)
        assert "data[a/b]: Invalid value" in answer["message"]
        hooks.answers["/one"] = patching(label("a", "b"))
        tree = policy("!has(object.metadata.labels)", rules=[rule("configmaps")])
        await server.post(POLICIES, tree)
        await server.post(BINDINGS, binding())
        answer = await server.post(CONFIG_MAPS, config_map(), 422)
        assert "denied request: failed expression" in answer["message"]
        assert hooks.names("/check") == []


async def test_webhook_may_fill_in_what_validation_wants(tmp_path):
    async with both(tmp_path) as (server, hooks):
        about = {**rule("pods", "CREATE")}
        hooks.answers["/one"] = patching(
            {"op": "add", "path": "/spec/containers/0/image", "value": "filled"},
            {"op": "add", "path": "/spec/containers/-", "value": {"name": "d", "image": "added"}},
        )
        webhook = hooks.webhook("/one", rules=[about])
        await server.post(MUTATING, configuration("Mutating", webhook))
        pod = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "p"},
               "spec": {"containers": [{"name": "c"}]}}  # fmt: skip
        made = await server.post("/api/v1/namespaces/default/pods", pod)
        assert made["spec"]["containers"][0]["image"] == "filled"
        assert made["spec"]["containers"][1]["imagePullPolicy"] == "Always"


async def test_webhooks_that_want_it_are_asked_again(tmp_path):
    async with both(tmp_path) as (server, hooks):
        hooks.answers["/one"] = said
        hooks.answers["/two"] = said
        hooks.answers["/three"] = patching(label("a", "b"))
        webhooks = [
            hooks.webhook("/one", reinvocationPolicy="IfNeeded"),
            hooks.webhook("/two"),
            hooks.webhook("/three", reinvocationPolicy="IfNeeded"),
        ]
        await server.post(MUTATING, configuration("Mutating", *webhooks))
        await server.post(CONFIG_MAPS, config_map())
        assert [path for path, _ in hooks.requests] == ["/one", "/two", "/three", "/one"]
        labels = hooks.requests[-1][1]["request"]["object"]["metadata"]["labels"]
        assert labels == {"a": "b"}


async def test_order_is_that_of_names_of_configurations(tmp_path):
    async with both(tmp_path) as (server, hooks):
        for name in ("b", "a"):
            hooks.answers[f"/{name}"] = said
            webhook = hooks.webhook(f"/{name}")
            await server.post(MUTATING, configuration("Mutating", webhook, name=name))
        await server.post(CONFIG_MAPS, config_map())
        assert [path for path, _ in hooks.requests] == ["/a", "/b"]


async def test_conditions_and_selectors_keep_webhooks_out(tmp_path):
    async with both(tmp_path) as (server, hooks):
        hooks.answers["/check"] = said
        conditions = [{"name": "n", "expression": "object.metadata.name != 'c'"}]
        await install(server, hooks, "Validating", "/check", matchConditions=conditions)
        await server.post(CONFIG_MAPS, config_map("c"))
        await server.post(CONFIG_MAPS, config_map("d"))
        assert hooks.names("/check") == ["d"]
        await server.delete(f"{VALIDATING}/a")
        broken = [{"name": "n", "expression": "object.data.x == 'y'"}]
        await install(server, hooks, "Validating", "/check", matchConditions=broken)
        answer = await server.post(CONFIG_MAPS, config_map("e"), 403)
        assert answer["message"] == (
            "configmaps \"e\" is forbidden: expression 'object.data.x == 'y'' resulted in error: "
            "no such key: data"
        )
        await server.delete(f"{VALIDATING}/a")
        chosen = {"matchLabels": {"checked": "yes"}}
        await install(server, hooks, "Validating", "/check", objectSelector=chosen)
        await server.post(CONFIG_MAPS, config_map("f"))
        await server.post(CONFIG_MAPS, config_map("g", labels={"checked": "yes"}))
        assert hooks.names("/check") == ["d", "g"]


async def test_dry_run_is_told_and_nothing_is_written(tmp_path):
    async with both(tmp_path) as (server, hooks):
        hooks.answers["/one"] = patching(label("a", "b"))
        await install(server, hooks, "Mutating", "/one", sideEffects="NoneOnDryRun")
        made = await server.post(f"{CONFIG_MAPS}?dryRun=All", config_map())
        assert made["metadata"]["labels"] == {"a": "b"}
        assert hooks.requests[0][1]["request"]["dryRun"] is True
        await server.get(f"{CONFIG_MAPS}/c", 404)


async def test_generated_name_is_the_one_that_was_checked(tmp_path):
    async with both(tmp_path) as (server, hooks):
        hooks.answers["/one"] = hooks.answers["/check"] = said
        await install(server, hooks, "Mutating", "/one")
        await install(server, hooks, "Validating", "/check")
        tree = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"generateName": "g-"}}
        made = await server.post(CONFIG_MAPS, tree)
        assert hooks.names("/one") == [""]
        assert hooks.names("/check") == [made["metadata"]["name"]]
        checked = hooks.requests[-1][1]["request"]["object"]["metadata"]
        assert checked["uid"] == made["metadata"]["uid"]


async def test_object_that_changes_meanwhile_is_shown_again(tmp_path):
    async with both(tmp_path) as (server, hooks):
        await server.post(CONFIG_MAPS, config_map(data={"a": "1"}))
        place = f"{CONFIG_MAPS}/c"
        times = []

        async def interfere(asked):
            request = asked["request"]
            if "labels" not in request["object"]["metadata"] or times:
                return said(asked)
            times.append(request["oldObject"]["data"])
            await server.patch(place, {"data": {"b": "2"}})
            return said(asked)

        hooks.answers["/check"] = interfere
        await install(server, hooks, "Validating", "/check")
        changed = await server.patch(place, {"metadata": {"labels": {"x": "y"}}})
        assert times == [{"a": "1"}]
        assert changed["data"] == {"a": "1", "b": "2"}
        last = hooks.requests[-1][1]["request"]
        assert last["oldObject"]["data"] == {"a": "1", "b": "2"}
        assert last["object"]["metadata"]["labels"] == {"x": "y"}


async def test_replacement_of_an_old_version_is_a_conflict_whatever_webhooks_say(tmp_path):
    async with both(tmp_path) as (server, hooks):
        made = await server.post(CONFIG_MAPS, config_map(data={"a": "1"}))
        await server.patch(f"{CONFIG_MAPS}/c", {"data": {"a": "2"}})
        hooks.answers["/check"] = said
        await install(server, hooks, "Validating", "/check")
        answer = await server.put(f"{CONFIG_MAPS}/c", made, 409)
        assert answer["reason"] == "Conflict"
        assert hooks.requests == []


async def test_configurations_are_not_shown_to_webhooks(tmp_path):
    async with both(tmp_path) as (server, hooks):
        everything = {
            "apiGroups": ["*"],
            "apiVersions": ["*"],
            "operations": ["*"],
            "resources": ["*"],
        }
        hooks.answers["/check"] = lambda asked: said(asked, allowed=False)
        await install(server, hooks, "Validating", "/check", rules=[everything])
        await server.post(POLICIES, policy("true"))
        await server.delete(f"{VALIDATING}/a")
        assert hooks.requests == []


async def test_large_answer_is_refused(tmp_path):
    async with both(tmp_path) as (server, hooks):
        hooks.answers["/check"] = lambda asked: (200, " " * 200_000)
        await install(server, hooks, "Validating", "/check")
        answer = await server.post(CONFIG_MAPS, config_map(), 500)
        assert answer["message"].endswith("failed to call webhook: the response is too large")


async def test_older_version_of_the_review_is_spoken(tmp_path):
    async with both(tmp_path) as (server, hooks):
        hooks.answers["/check"] = lambda asked: {"response": {"allowed": False}}
        await install(server, hooks, "Validating", "/check", admissionReviewVersions=["v1beta1"])
        await server.post(CONFIG_MAPS, config_map(), 400)
        assert hooks.requests[0][1]["apiVersion"] == "admission.k8s.io/v1beta1"


async def test_eviction_and_scale_are_shown_as_what_they_are_and_stay_so(tmp_path):
    async with both(tmp_path) as (server, hooks):
        pods = "/api/v1/namespaces/default/pods"
        spec = {"containers": [{"name": "c", "image": "i"}]}
        pod = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "p"}, "spec": spec}
        await server.post(pods, pod)
        labels = {"app": "a"}
        template = {"metadata": {"labels": labels}, "spec": spec}
        deployments = "/apis/apps/v1/namespaces/default/deployments"
        wanted = {"selector": {"matchLabels": labels}, "template": template}
        tree = {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "d"}}
        await server.post(deployments, {**tree, "spec": wanted})
        about = [rule("pods/eviction", "CREATE"), rule("deployments/scale", group="apps")]
        hooks.answers["/check"] = lambda asked: said(asked, allowed=False)
        await install(server, hooks, "Validating", "/check", rules=about)
        eviction = {"apiVersion": "policy/v1", "kind": "Eviction", "metadata": {"name": "p"}}
        await server.post(f"{pods}/p/eviction", eviction, 400)
        await server.get(f"{pods}/p")
        await server.patch(f"{deployments}/d/scale", {"spec": {"replicas": 3}}, 400)
        assert (await server.get(f"{deployments}/d/scale"))["spec"] == {"replicas": 1}
        kinds = [review["request"]["kind"]["kind"] for _, review in hooks.requests]
        assert kinds == ["Eviction", "Scale"]
        assert hooks.requests[1][1]["request"]["object"]["spec"] == {"replicas": 3}
        await server.delete(f"{VALIDATING}/a")
        hooks.answers["/one"] = patching(label("a", "b"))
        await install(server, hooks, "Mutating", "/one", rules=about)
        answer = await server.post(f"{pods}/p/eviction", eviction, 500)
        assert "attempted to modify the object" in answer["message"]
        answer = await server.patch(f"{deployments}/d/scale", {"spec": {"replicas": 3}}, 500)
        assert "attempted to modify the object" in answer["message"]
        await server.delete(f"{MUTATING}/a")
        await server.post(f"{pods}/p/eviction", eviction)
        await server.get(f"{pods}/p", 404)
