"""Admission policies over HTTP: refusals, warnings, evictions, kinds that a history defines."""

from tests.api.custom import CRDS, WIDGETS, definition, widget
from tests.api.serving import CONFIG_MAPS, serving
from tests.unit.review.clusters import binding, config_map, policy, rule

GROUP = "/apis/admissionregistration.k8s.io/v1"
POLICIES = f"{GROUP}/validatingadmissionpolicies"
BINDINGS = f"{GROUP}/validatingadmissionpolicybindings"
PODS = "/api/v1/namespaces/default/pods"


async def bind(server, tree, *actions):
    """Store a policy and bind it."""
    name = tree["metadata"]["name"]
    await server.post(POLICIES, tree)
    await server.post(BINDINGS, binding(*actions, name=name, to=name))


async def test_refusal_is_upstreams_status():
    async with serving() as server:
        tree = policy("object.metadata.name != 'c'", rules=[rule("configmaps")])
        await bind(server, tree)
        answer = await server.post(CONFIG_MAPS, config_map(), 422)
        text = (
            "ValidatingAdmissionPolicy 'p' with binding 'p' denied request: failed expression: "
            "object.metadata.name != 'c'"
        )
        assert answer == {
            "kind": "Status",
            "apiVersion": "v1",
            "metadata": {},
            "status": "Failure",
            "message": f'configmaps "c" is forbidden: {text}',
            "reason": "Invalid",
            "details": {"name": "c", "kind": "configmaps", "causes": [{"message": text}]},
            "code": 422,
        }
        await server.post(CONFIG_MAPS, config_map("d"))


async def test_reason_of_a_validation_is_the_code():
    async with serving() as server:
        for code, reason in (
            (401, "Unauthorized"),
            (403, "Forbidden"),
            (413, "RequestEntityTooLarge"),
        ):
            tree = policy(name=reason.lower(), rules=[rule("configmaps")])
            tree["spec"]["validations"] = [{"expression": "false", "reason": reason}]
            await bind(server, tree)
            answer = await server.post(CONFIG_MAPS, config_map(), code)
            assert answer["reason"] == reason
            await server.delete(f"{BINDINGS}/{reason.lower()}")


async def test_warnings_are_told_with_the_answer_and_with_a_refusal():
    async with serving() as server:
        await bind(server, policy("false", rules=[rule("configmaps")]), "Warn")
        answer = await server.raw("POST", CONFIG_MAPS, config_map())
        assert answer.status_code == 201
        said = (
            "299 - \"Validation failed for ValidatingAdmissionPolicy 'p' with binding 'p': failed "
            'expression: false"'
        )
        assert answer.headers.get_list("warning") == [said]
        await bind(server, policy("false", name="q", rules=[rule("configmaps")]))
        answer = await server.raw("POST", CONFIG_MAPS, config_map("d"))
        assert answer.status_code == 422
        assert answer.headers.get_list("warning") == [said]


async def test_eviction_is_asked_about_as_one():
    async with serving() as server:
        pod = {
            "apiVersion": "v1",
            "kind": "Pod",
            "metadata": {"name": "p"},
            "spec": {"containers": [{"name": "c", "image": "i"}]},
        }
        await server.post(PODS, pod)
        about = [rule("pods", "DELETE"), rule("pods/status", "UPDATE")]
        await bind(server, policy("false", name="deletes", rules=about))
        await bind(
            server,
            policy("object.metadata.name != 'p'", name="evicts", rules=[rule("pods/eviction")]),
        )
        eviction = {"apiVersion": "policy/v1", "kind": "Eviction", "metadata": {"name": "p"}}
        answer = await server.post(f"{PODS}/p/eviction", eviction, 422)
        assert "'evicts' with binding 'evicts' denied request" in answer["message"]
        conditions = (await server.get(f"{PODS}/p"))["status"].get("conditions", [])
        assert "DisruptionTarget" not in [found["type"] for found in conditions]
        await server.delete(f"{BINDINGS}/evicts")
        await server.post(f"{PODS}/p/eviction", eviction)
        await server.get(f"{PODS}/p", 404)


async def test_custom_objects_are_judged_and_are_parameters():
    async with serving() as server:
        await server.post(CRDS, definition())
        tree = policy(
            "object.metadata.name != params.metadata.name",
            paramKind={"apiVersion": "example.com/v1", "kind": "Widget"},
            rules=[rule("configmaps"), rule("widgets", group="example.com")],
        )
        await server.post(POLICIES, tree)
        reference = {"selector": {}, "parameterNotFoundAction": "Allow"}
        await server.post(BINDINGS, binding(name="p", paramRef=reference))
        await server.post(WIDGETS, widget("w"))
        await server.post(CONFIG_MAPS, config_map("w"), 422)
        await server.post(CONFIG_MAPS, config_map("v"))
        answer = await server.patch(f"{WIDGETS}/w", {"metadata": {"labels": {"a": "b"}}}, 422)
        assert answer["message"].startswith('widgets.example.com "w" is forbidden: ')


async def test_policy_that_cannot_be_used_is_refused_with_its_place():
    async with serving() as server:
        answer = await server.post(POLICIES, policy("object."), 422)
        (cause,) = answer["details"]["causes"]
        assert cause["field"] == "spec.validations[0].expression"
        assert "compilation failed: ERROR: <input>:1:8: Syntax error" in cause["message"]


async def test_collection_is_deleted_as_far_as_policies_allow():
    async with serving() as server:
        for name in ("a", "b"):
            await server.post(CONFIG_MAPS, config_map(name))
        about = [rule("configmaps", "DELETE")]
        await bind(server, policy("oldObject.metadata.name != 'b'", rules=about))
        await server.delete(CONFIG_MAPS, code=422)
        left = (await server.get(CONFIG_MAPS))["items"]
        assert [item["metadata"]["name"] for item in left if item["metadata"]["name"] in "ab"] == [
            "b"
        ]


NODE = "request.userInfo.extra[?'authentication.kubernetes.io/node-name'][0].orValue('')"
DRIVERS = {
    "matchConditions": [
        {
            "name": "is-the-driver",
            "expression": "request.userInfo.username == 'system:serviceaccount:d:driver'",
        }
    ],
    "variables": [
        {"name": "mine", "expression": NODE},
        {
            "name": "its",
            "expression": "(request.operation == 'DELETE' ? oldObject : object)"
            ".spec.?nodeName.orValue('')",
        },
    ],
}


async def test_drivers_may_be_kept_to_the_slices_of_their_node():
    async with serving() as server:
        slices = "/apis/resource.k8s.io/v1/resourceslices"
        about = [rule("resourceslices", group="resource.k8s.io")]
        tree = policy("variables.mine == variables.its", rules=about, **DRIVERS)
        tree["spec"]["validations"][0]["messageExpression"] = (
            "'from ' + variables.mine + ' to ' + variables.its"
        )
        await bind(server, tree)

        def found(node):
            pool = {"name": node, "generation": 1, "resourceSliceCount": 1}
            spec = {"driver": "d.example.com", "nodeName": node, "pool": pool}
            return {
                "apiVersion": "resource.k8s.io/v1",
                "kind": "ResourceSlice",
                "metadata": {"name": f"slice-{node}"},
                "spec": spec,
            }

        driver = {
            "impersonate-user": "system:serviceaccount:d:driver",
            "impersonate-uid": "u",
            "impersonate-extra-authentication.kubernetes.io%2fnode-name": "one",
        }
        await server.post(slices, found("one"), 201, **driver)
        answer = await server.post(slices, found("two"), 422, **driver)
        assert answer["message"].endswith("denied request: from one to two")
        await server.post(slices, found("two"), 201)
        answer = await server.call("DELETE", f"{slices}/slice-two", None, 422, **driver)
        assert answer["message"].endswith("denied request: from one to two")
        await server.call("DELETE", f"{slices}/slice-one", None, 200, **driver)


async def test_uid_and_extras_of_who_asks_are_seen():
    async with serving() as server:
        expressions = (
            "request.userInfo.uid == 'u'",
            "request.userInfo.extra['scopes'] == ['a']",
            "'g' in request.userInfo.groups",
        )
        await bind(server, policy(*expressions, rules=[rule("configmaps")]))
        asks = {
            "impersonate-user": "ann",
            "impersonate-group": "g",
            "impersonate-uid": "u",
            "impersonate-extra-scopes": "a",
        }
        await server.post(CONFIG_MAPS, config_map(), 201, **asks)
        answer = await server.post(
            CONFIG_MAPS, config_map("d"), 422, **(asks | {"impersonate-uid": "v"})
        )
        assert answer["message"].endswith(f"failed expression: {expressions[0]}")
