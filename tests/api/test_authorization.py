"""What is allowed by roles that are objects, and the reviews that tell it in advance."""

import pytest

from app.api.access.authorization import Authorization
from app.domain.objects.access.rules import AccessRule, Binding
from app.domain.objects.profile import Profile
from tests.api.serving import CLAIMS, CONFIG_MAPS, claim, config_map, serving
from tests.api.test_authentication import AS_ANN, AS_ROOT, KNOWN, ROLES, grant

REVIEWS = "/apis/authorization.k8s.io/v1"
READ = {"apiGroups": [""], "resources": ["configmaps"], "verbs": ["get", "list", "watch"]}
CLAIM_STATUS = {
    "apiGroups": ["resource.k8s.io"],
    "resources": ["resourceclaims", "resourceclaims/status"],
    "verbs": ["*"],
}


async def test_nothing_is_allowed_without_a_role_and_the_text_is_the_real_one():
    async with serving(credentials=KNOWN, authorization=ROLES) as server:
        found = await server.get(f"{CLAIMS}/x", 403, **AS_ANN)
        assert found["message"] == (
            'resourceclaims.resource.k8s.io "x" is forbidden: User "ann" cannot get resource '
            '"resourceclaims" in API group "resource.k8s.io" in the namespace "default"'
        )
        assert found["reason"] == "Forbidden"
        assert found["details"] == {
            "name": "x", "group": "resource.k8s.io", "kind": "resourceclaims",
        }  # fmt: skip
        listed = await server.get("/api/v1/nodes", 403, **AS_ANN)
        assert listed["message"] == (
            'nodes is forbidden: User "ann" cannot list resource "nodes" in API group "" at the '
            "cluster scope"
        )
        page = await server.get("/metrics", 403, **AS_ANN)
        assert page["message"] == 'forbidden: User "ann" cannot get path "/metrics"'
        own = await server.get("/redra/v1/histories", 403, **AS_ANN)
        assert own["message"] == 'forbidden: User "ann" cannot get path "/redra/v1/histories"'


async def test_discovery_is_open_to_whoever_is_known():
    async with serving(credentials=KNOWN, authorization=ROLES) as server:
        for path in ("/api", "/apis", "/apis/resource.k8s.io/v1", "/version", "/openapi/v3"):
            await server.get(path, **AS_ANN)


async def test_role_opens_what_it_names_and_closes_again_when_it_goes():
    async with serving(credentials=KNOWN, authorization=ROLES) as server:
        await grant(server, "ann", READ)
        await server.get(CONFIG_MAPS, **AS_ANN)
        await server.post(CONFIG_MAPS, config_map("m"), 403, **AS_ANN)
        path = "/apis/rbac.authorization.k8s.io/v1/clusterrolebindings/granted"
        await server.call("DELETE", path, None, 200, **AS_ROOT)
        await server.get(CONFIG_MAPS, 403, **AS_ANN)


async def test_rule_for_one_name_allows_the_list_that_selects_it():
    async with serving(credentials=KNOWN, authorization=ROLES) as server:
        await grant(server, "ann", READ | {"resourceNames": ["m"]})
        await server.get(f"{CONFIG_MAPS}?fieldSelector=metadata.name%3Dm", **AS_ANN)
        await server.get(f"{CONFIG_MAPS}?fieldSelector=metadata.name%3Do", 403, **AS_ANN)
        await server.get(f"{CONFIG_MAPS}?fieldSelector=metadata.name!%3Dm", 403, **AS_ANN)
        await server.get(CONFIG_MAPS, 403, **AS_ANN)


async def test_apply_that_creates_needs_the_right_to_create():
    async with serving(credentials=KNOWN, authorization=ROLES) as server:
        await grant(server, "ann", READ | {"verbs": ["patch"]})
        path = f"{CONFIG_MAPS}/m?fieldManager=t"
        kind = {"content_type": "application/apply-patch+yaml"}
        found = await server.call("PATCH", path, config_map("m"), 403, **AS_ANN, **kind)
        assert 'User "ann" cannot create resource "configmaps"' in found["message"]
        await server.post(CONFIG_MAPS, config_map("m"), **AS_ROOT)
        await server.call("PATCH", path, config_map("m", a="1"), 200, **AS_ANN, **kind)


async def test_past_of_a_history_is_judged_by_its_present_rules():
    async with serving(credentials=KNOWN, authorization=ROLES) as server:
        await server.get("/h/default@1/api/v1/namespaces", 403, **AS_ANN)
        await server.get("/h/default@1/api/v1/namespaces", 200, **AS_ROOT)


async def test_each_history_has_its_own_rules():
    async with serving(credentials=KNOWN, authorization=ROLES) as server:
        await grant(server, "ann", READ)
        await server.post("/redra/v1/histories", {"name": "second"}, **AS_ROOT)
        await server.get(CONFIG_MAPS, 200, **AS_ANN)
        await server.get(f"/h/second{CONFIG_MAPS}", 403, **AS_ANN)


async def test_policy_allows_without_objects():
    reading = AccessRule(
        verbs=frozenset(("list",)), groups=frozenset(("",)), resources=frozenset(("configmaps",))
    )

    def policy(history):
        return (Binding(groups=frozenset(("team",)), rules=(reading,), label="policy"),)

    setting = Authorization(is_open=False, policy=policy)
    async with serving(credentials=KNOWN, authorization=setting) as server:
        await server.get(CONFIG_MAPS, 200, **AS_ANN)
        await server.post(CONFIG_MAPS, config_map("m"), 403, **AS_ANN)


# Reviews


async def allowed(server, verb, resource, headers=AS_ANN, **more):
    spec = {"resourceAttributes": {"verb": verb, "resource": resource, **more}}
    found = await server.post(f"{REVIEWS}/selfsubjectaccessreviews", {"spec": spec}, **headers)
    return found["status"]


async def test_access_review_answers_from_the_same_rules():
    async with serving(credentials=KNOWN, authorization=ROLES) as server:
        await grant(server, "ann", READ)
        assert await allowed(server, "list", "configmaps", namespace="x") == {
            "allowed": True,
            "reason": 'RBAC: allowed by ClusterRoleBinding "granted" of ClusterRole "granted" '
            'to User "ann"',
        }
        assert await allowed(server, "create", "configmaps") == {"allowed": False}
        assert (await allowed(server, "*", "*", AS_ROOT, group="*"))["allowed"] is True


async def test_long_questions_are_answered_and_not_remembered():
    async with serving(credentials=KNOWN, authorization=ROLES) as server:
        await grant(server, "ann", READ)
        long = "x" * 100_000
        assert (await allowed(server, "get", "configmaps", name=long))["allowed"] is True
        kept = server.app._authorizer._rights.values()
        assert all(question.size < 2_000 for rights in kept for _, _, question in rights.decisions)


async def test_review_about_somebody_else_needs_a_right_of_its_own():
    async with serving(credentials=KNOWN, authorization=ROLES) as server:
        await grant(server, "ann", READ)
        spec = {
            "user": "ann",
            "resourceAttributes": {"verb": "get", "resource": "configmaps"},
        }
        path = f"{REVIEWS}/subjectaccessreviews"
        await server.post(path, {"spec": spec}, 403, **AS_ANN)
        found = await server.post(path, {"spec": spec}, **AS_ROOT)
        assert found["status"]["allowed"] is True
        by_group = {**spec, "user": "", "groups": ["system:masters"]}
        assert (await server.post(path, {"spec": by_group}, **AS_ROOT))["status"]["allowed"]


async def test_review_must_ask_exactly_one_thing_about_somebody():
    async with serving(credentials=KNOWN) as server:
        path = f"{REVIEWS}/subjectaccessreviews"
        both = {"user": "a", "resourceAttributes": {}, "nonResourceAttributes": {}}
        for spec in (both, {"user": "a"}, {"nonResourceAttributes": {"path": "/x"}}):
            await server.post(path, {"spec": spec}, 422, **AS_ROOT)


async def test_local_review_is_about_its_own_namespace():
    async with serving(credentials=KNOWN, authorization=ROLES) as server:
        path = f"{REVIEWS}/namespaces/default/localsubjectaccessreviews"
        attributes = {"verb": "get", "resource": "configmaps", "namespace": "default"}
        found = await server.post(
            path, {"spec": {"user": "ann", "resourceAttributes": attributes}}, **AS_ROOT
        )
        assert found["status"] == {"allowed": False}
        attributes["namespace"] = "other"
        await server.post(
            path, {"spec": {"user": "ann", "resourceAttributes": attributes}}, 422, **AS_ROOT
        )


async def test_rules_review_lists_what_is_held_in_a_namespace():
    async with serving(credentials=KNOWN, authorization=ROLES) as server:
        await grant(server, "ann", READ)
        path = f"{REVIEWS}/selfsubjectrulesreviews"
        found = await server.post(path, {"spec": {"namespace": "default"}}, **AS_ANN)
        assert READ in found["status"]["resourceRules"]
        assert found["status"]["incomplete"] is False
        paths = {
            path for rule in found["status"]["nonResourceRules"] for path in rule["nonResourceURLs"]
        }
        assert "/api/*" in paths


# Parts of a claim's status

STATUS = f"{CLAIMS}/c/status"
NODE = "node-1"


def allocated():
    result = {"request": "gpu", "driver": "gpu.example.com", "pool": "p", "device": "d"}
    terms = [{"matchFields": [{"key": "metadata.name", "operator": "In", "values": [NODE]}]}]
    return {
        "allocation": {
            "devices": {"results": [result]},
            "nodeSelector": {"nodeSelectorTerms": terms},
        }
    }


async def test_allocation_is_written_only_with_the_right_to_bind():
    async with serving(credentials=KNOWN, authorization=ROLES) as server:
        await server.post(CLAIMS, claim("c"), **AS_ROOT)
        await grant(server, "ann", CLAIM_STATUS)
        body = {"status": allocated()}
        kind = {"content_type": "application/merge-patch+json"}
        found = await server.call("PATCH", STATUS, body, 422, **AS_ANN, **kind)
        (cause,) = found["details"]["causes"]
        assert (cause["reason"], cause["field"]) == ("FieldValueForbidden", "status")
        assert 'resource="resourceclaims/binding", verb="patch"' in cause["message"]
        binding = CLAIM_STATUS | {"resources": ["resourceclaims/binding"], "verbs": ["patch"]}
        await grant(server, "ann", binding, name="binder")
        await server.call("PATCH", STATUS, body, 200, **AS_ANN, **kind)


async def test_driver_on_the_node_of_a_claim_reports_its_own_devices_only():
    account = "system:serviceaccount:kube-system:driver"
    node_key = "impersonate-extra-authentication.kubernetes.io%2Fnode-name"
    async with serving(credentials=KNOWN, authorization=ROLES) as server:
        await server.post(CLAIMS, claim("c"), **AS_ROOT)
        kind = {"content_type": "application/merge-patch+json"}
        await server.call("PATCH", STATUS, {"status": allocated()}, 200, **AS_ROOT, **kind)
        report = CLAIM_STATUS | {
            "resources": ["resourceclaims/driver"],
            "resourceNames": ["gpu.example.com"],
            "verbs": ["associated-node:patch"],
        }
        await grant(server, account, CLAIM_STATUS, report)
        device = {"driver": "gpu.example.com", "pool": "p", "device": "d"}
        body = {"status": {"devices": [device]}}

        async def write(node, code):
            headers = {"impersonate_user": account, node_key: node, **AS_ROOT, **kind}
            return await server.call("PATCH", STATUS, body, code, **headers)

        await write("node-2", 422)
        found = await write(NODE, 200)
        assert found["status"]["devices"] == [{"conditions": None, **device}]


@pytest.mark.parametrize(
    "profile",
    [
        Profile(version="1.35"),
        Profile(gates={"DRAResourceClaimGranularStatusAuthorization": False}),
    ],
    ids=["release", "gate"],
)
async def test_parts_of_a_status_are_judged_only_with_their_gate(profile):
    async with serving(credentials=KNOWN, authorization=ROLES, profile=profile) as server:
        await server.post(CLAIMS, claim("c"), **AS_ROOT)
        await grant(server, "ann", CLAIM_STATUS)
        kind = {"content_type": "application/merge-patch+json"}
        await server.call("PATCH", STATUS, {"status": allocated()}, 200, **AS_ANN, **kind)


# Giving rights away

RBAC = "/apis/rbac.authorization.k8s.io/v1"
WRITE_ROLES = {
    "apiGroups": ["rbac.authorization.k8s.io"],
    "resources": ["roles", "rolebindings", "clusterroles", "clusterrolebindings"],
    "verbs": ["create", "update", "patch", "get"],
}
SECRETS = {"apiGroups": [""], "resources": ["secrets"], "verbs": ["get"]}


def role(*rules, name="r", **more):
    return {"metadata": {"name": name}, "rules": list(rules), **more}


def binding(to, name="b", kind="ClusterRole"):
    return {
        "metadata": {"name": name},
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": kind, "name": to},
        "subjects": [{"kind": "User", "name": "ann", "apiGroup": "rbac.authorization.k8s.io"}],
    }


async def test_role_writer_gives_only_what_they_hold():
    async with serving(credentials=KNOWN, authorization=ROLES) as server:
        await grant(server, "ann", WRITE_ROLES, READ)
        roles = f"{RBAC}/clusterroles"
        await server.post(roles, role(READ, name="mine"), **AS_ANN)
        found = await server.post(roles, role(SECRETS), 403, **AS_ANN)
        assert found["message"] == (
            'clusterroles.rbac.authorization.k8s.io "r" is forbidden: user "ann" (groups=["team" '
            '"system:authenticated"]) is attempting to grant RBAC permissions not currently held:\n'
            '{APIGroups:[""], Resources:["secrets"], Verbs:["get"]}'
        )
        kind = {"content_type": "application/merge-patch+json"}
        grown = {"rules": [READ, SECRETS]}
        await server.call("PATCH", f"{roles}/mine", grown, 403, **AS_ANN, **kind)
        await server.call("PATCH", f"{roles}/granted", grown, 403, **AS_ANN, **kind)
        selecting = role(aggregationRule={"clusterRoleSelectors": [{"matchLabels": {"a": "b"}}]})
        await server.post(roles, selecting, 403, **AS_ANN)
        label = {"metadata": {"labels": {"a": "b"}}}
        await server.call("PATCH", f"{roles}/mine", label, 200, **AS_ANN, **kind)


async def test_binding_writer_gives_only_what_they_hold():
    async with serving(credentials=KNOWN, authorization=ROLES) as server:
        await grant(server, "ann", WRITE_ROLES, READ)
        bindings = f"{RBAC}/clusterrolebindings"
        await server.post(bindings, binding("cluster-admin"), 403, **AS_ANN)
        await server.post(bindings, binding("missing"), 403, **AS_ANN)
        await server.post(bindings, binding("granted"), 201, **AS_ANN)
        local = f"{RBAC}/namespaces/default/rolebindings"
        await server.post(local, binding("cluster-admin"), 403, **AS_ANN)


async def test_bind_and_escalate_are_rights_to_give_more():
    async with serving(credentials=KNOWN, authorization=ROLES) as server:
        more = WRITE_ROLES | {"verbs": ["bind", "escalate"]}
        await grant(server, "ann", WRITE_ROLES, more)
        await server.post(f"{RBAC}/clusterroles", role(SECRETS), **AS_ANN)
        await server.post(f"{RBAC}/clusterrolebindings", binding("cluster-admin"), **AS_ANN)
