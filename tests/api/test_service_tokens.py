"""Tokens of service accounts: issued, believed, and no longer believed."""

import base64
import json

import pytest

from app.adapters.memory import MemoryStore
from app.api.access.authorization import Authorization
from app.api.identity.authentication import Credentials
from app.api.identity.service_tokens import AUDIENCE, ServiceTokens
from app.domain.log import Actor
from app.domain.values import timestamps
from tests.api.serving import CONFIG_MAPS, pod, serving

ROOT = Actor(user="root", groups=("system:masters", "system:authenticated"))
KNOWN = Credentials(tokens={"root-token": ROOT}, anonymous=None, token_key=b"k" * 32)
ROLES = Authorization(is_open=False, by_roles=True)
AS_ROOT = {"authorization": "Bearer root-token"}
ACCOUNTS = "/api/v1/namespaces/default/serviceaccounts"
PODS = "/api/v1/namespaces/default/pods"
WHOAMI = "/apis/authentication.k8s.io/v1/selfsubjectreviews"
REVIEWS = "/apis/authentication.k8s.io/v1/tokenreviews"
TEN_MINUTES = 600


def bearer(token):
    return {"authorization": f"Bearer {token}"}


async def account(server):
    return await server.post(ACCOUNTS, {"metadata": {"name": "driver"}}, **AS_ROOT)


async def issued(server, code=201, **spec):
    return await server.post(f"{ACCOUNTS}/driver/token", {"spec": spec}, code, **AS_ROOT)


async def token(server, **spec):
    return (await issued(server, **spec))["status"]["token"]


async def test_token_names_the_account_and_its_groups():
    async with serving(credentials=KNOWN) as server:
        made = await account(server)
        found = await issued(server)
        assert found["kind"] == "TokenRequest"
        assert found["spec"] == {
            "audiences": [AUDIENCE], "boundObjectRef": None, "expirationSeconds": 3600,
        }  # fmt: skip
        seen = await server.post(WHOAMI, {}, **bearer(found["status"]["token"]))
        assert seen["status"]["userInfo"] == {
            "username": "system:serviceaccount:default:driver",
            "uid": made["metadata"]["uid"],
            "groups": [
                "system:serviceaccounts", "system:serviceaccounts:default", "system:authenticated",
            ],
        }  # fmt: skip


async def test_token_has_the_rights_of_its_account_and_no_others():
    async with serving(credentials=KNOWN, authorization=ROLES) as server:
        await account(server)
        made = await token(server)
        await server.get(CONFIG_MAPS, 403, **bearer(made))
        rbac = "/apis/rbac.authorization.k8s.io/v1/namespaces/default"
        rule = {"verbs": ["list"], "apiGroups": [""], "resources": ["configmaps"]}
        await server.post(f"{rbac}/roles", {"metadata": {"name": "r"}, "rules": [rule]}, **AS_ROOT)
        subject = {"kind": "ServiceAccount", "name": "driver", "namespace": "default"}
        reference = {"apiGroup": "rbac.authorization.k8s.io", "kind": "Role", "name": "r"}
        binding = {"metadata": {"name": "b"}, "roleRef": reference, "subjects": [subject]}
        await server.post(f"{rbac}/rolebindings", binding, **AS_ROOT)
        await server.get(CONFIG_MAPS, **bearer(made))
        await server.post(f"{ACCOUNTS}/driver/token", {}, 403, **bearer(made))


async def test_token_ends_by_the_clock(monkeypatch):
    async with serving(credentials=KNOWN) as server:
        await account(server)
        found = await issued(server, expirationSeconds=TEN_MINUTES)
        made = bearer(found["status"]["token"])
        await server.get(CONFIG_MAPS, **made)
        end = timestamps.parse(found["status"]["expirationTimestamp"])
        runtime = await server.histories.open("default")
        runtime.clock.observe(end - timestamps.SECOND)
        await server.get(CONFIG_MAPS, **made)
        runtime.clock.observe(end)
        assert (await server.get(CONFIG_MAPS, 401, **made))["reason"] == "Unauthorized"


async def test_token_ends_with_its_account_and_is_not_that_of_a_namesake():
    async with serving(credentials=KNOWN) as server:
        await account(server)
        made = bearer(await token(server))
        await server.call("DELETE", f"{ACCOUNTS}/driver", None, 200, **AS_ROOT)
        await server.get(CONFIG_MAPS, 401, **made)
        await account(server)
        await server.get(CONFIG_MAPS, 401, **made)


async def test_token_of_a_pod_tells_it_and_ends_with_it():
    async with serving(credentials=KNOWN) as server:
        await account(server)
        uid = (await server.post(PODS, pod("p"), **AS_ROOT))["metadata"]["uid"]
        reference = {"apiVersion": "v1", "kind": "Pod", "name": "p", "uid": uid}
        made = bearer(await token(server, boundObjectRef=reference))
        seen = await server.post(WHOAMI, {}, **made)
        assert seen["status"]["userInfo"]["extra"] == {
            "authentication.kubernetes.io/pod-name": ["p"],
            "authentication.kubernetes.io/pod-uid": [uid],
        }
        await server.call("DELETE", f"{PODS}/p?gracePeriodSeconds=0", None, 200, **AS_ROOT)
        await server.get(CONFIG_MAPS, 401, **made)


async def test_object_that_a_token_is_bound_to_must_be_the_one_that_is_meant():
    async with serving(credentials=KNOWN) as server:
        await account(server)
        reference = {"apiVersion": "v1", "kind": "Pod", "name": "p", "uid": "other"}
        assert (await issued(server, 404, boundObjectRef=reference))["details"]["name"] == "p"
        await server.post(PODS, pod("p"), **AS_ROOT)
        assert (await issued(server, 409, boundObjectRef=reference))["reason"] == "Conflict"
        strange = {"apiVersion": "v1", "kind": "ConfigMap", "name": "p"}
        assert (await issued(server, 422, boundObjectRef=strange))["reason"] == "Invalid"


async def test_token_is_believed_in_its_own_history_only():
    async with serving(credentials=KNOWN) as server:
        await account(server)
        made = bearer(await token(server))
        await server.get(f"/h/default{CONFIG_MAPS}", **made)
        await server.post("/redra/v1/histories", {"name": "other"}, **AS_ROOT)
        await server.get("/h/other/api/v1/namespaces", **AS_ROOT)
        await server.get("/h/other/api/v1/namespaces", 401, **made)


async def test_token_for_others_is_not_believed_here():
    async with serving(credentials=KNOWN) as server:
        await account(server)
        made = await token(server, audiences=["vault"])
        await server.get(CONFIG_MAPS, 401, **bearer(made))


async def test_review_tells_for_whom_a_token_is():
    async with serving(credentials=KNOWN) as server:
        await account(server)
        made = await token(server, audiences=["vault", "queue"])

        async def reviewed(**spec):
            return (await server.post(REVIEWS, {"spec": spec}, **AS_ROOT))["status"]

        found = await reviewed(token=made, audiences=["mail", "vault"])
        assert (found["authenticated"], found["audiences"]) == (True, ["vault"])
        for other in ({}, {"audiences": ["mail"]}):
            assert not (await reviewed(token=made, **other)).get("authenticated")
        assert (await reviewed(token=await token(server)))["audiences"] == [AUDIENCE]
        assert (await reviewed(token="root-token"))["audiences"] == [AUDIENCE]
        assert not (await reviewed(token="root-token", audiences=["mail"])).get("authenticated")


async def test_token_is_known_after_a_restart_and_to_who_has_the_same_key():
    store = MemoryStore()
    async with serving(credentials=KNOWN, store=store) as server:
        await account(server)
        made = bearer(await token(server))
    async with serving(credentials=KNOWN, store=store) as server:
        seen = await server.post(WHOAMI, {}, **made)
        assert seen["status"]["userInfo"]["username"] == "system:serviceaccount:default:driver"
        await server.call("DELETE", f"{ACCOUNTS}/driver", None, 200, **AS_ROOT)
        await server.post(WHOAMI, {}, 401, **made)
    other = Credentials(tokens={"root-token": ROOT}, anonymous=None, token_key=b"o" * 32)
    async with serving(credentials=other, store=store) as server:
        await account(server)
        await server.post(WHOAMI, {}, 401, **made)


async def test_review_knows_tokens_while_they_last():
    async with serving(credentials=KNOWN) as server:
        await account(server)
        review = {"spec": {"token": await token(server)}}
        status = (await server.post(REVIEWS, review, **AS_ROOT))["status"]
        assert status["user"]["username"] == "system:serviceaccount:default:driver"
        await server.call("DELETE", f"{ACCOUNTS}/driver", None, 200, **AS_ROOT)
        assert not (await server.post(REVIEWS, review, **AS_ROOT))["status"].get("authenticated")


def forged(token):
    head, body, signature = token.split(".")
    claims = json.loads(base64.urlsafe_b64decode(body + "=" * (-len(body) % 4)))
    claims["sub"], claims["exp"] = "system:admin", claims["exp"] + 10**6
    other = base64.urlsafe_b64encode(json.dumps(claims).encode()).rstrip(b"=").decode()
    none = base64.urlsafe_b64encode(b'{"alg":"none"}').rstrip(b"=").decode()
    yield f"{head}.{other}.{signature}"
    yield f"{none}.{body}."
    yield f"{head}.{body}.{signature[:-1]}"
    yield f"{head}.{body}"
    yield f"{head}.{body}.{signature}x"
    yield f"{head}.{body}.é"


async def test_token_that_was_changed_is_not_believed():
    async with serving(credentials=KNOWN) as server:
        await account(server)
        made = await token(server)
        tokens = ServiceTokens(key=KNOWN.token_key)
        assert tokens.read(made)
        assert ServiceTokens(key=b"another").read(made) is None
        assert ServiceTokens().read(made) is None
        for wrong in forged(made):
            assert tokens.read(wrong) is None, wrong
            if wrong.isascii():
                await server.get(CONFIG_MAPS, 401, **bearer(wrong))


@pytest.mark.parametrize(
    ("seconds", "reason"),
    [(599, "less than 10 minutes"), (2**32 + 1, "larger than 2^32 seconds")],
)
async def test_time_of_a_token_is_bounded(seconds, reason):
    async with serving(credentials=KNOWN) as server:
        await account(server)
        found = await issued(server, 422, expirationSeconds=seconds)
        assert found["message"] == (
            'TokenRequest.authentication.k8s.io "" is invalid: spec.expirationSeconds: '
            f"Invalid value: {seconds}: may not specify a duration {reason}"
        )


async def test_account_that_is_not_there_gets_none():
    async with serving(credentials=KNOWN) as server:
        found = await issued(server, 404)
        assert found["message"] == 'serviceaccounts "driver" not found'


async def test_log_holds_no_token():
    async with serving(credentials=KNOWN) as server:
        await account(server)
        runtime = await server.histories.open("default")
        before = runtime.head.revision
        await token(server)
        assert runtime.head.revision == before
