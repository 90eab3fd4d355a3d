"""Who is let in, as whom, and what the log keeps of it."""

import pytest

from app.api.access.authorization import Authorization
from app.api.identity.authentication import Credentials
from app.api.server.messages import PEER
from app.domain.log import Actor
from tests.api.serving import CONFIG_MAPS, config_map, serving

ANN = Actor(user="ann", groups=("team", "system:authenticated"))
ROOT = Actor(user="root", groups=("system:masters", "system:authenticated"))
KNOWN = Credentials(
    tokens={"ann-token": ANN, "root-token": ROOT}, uids={"ann": "7"}, anonymous=None
)
ROLES = Authorization(is_open=False, by_roles=True)
WHOAMI = "/apis/authentication.k8s.io/v1/selfsubjectreviews"
AS_ANN = {"authorization": "Bearer ann-token"}
AS_ROOT = {"authorization": "Bearer root-token"}


async def who(server, **headers):
    found = await server.post(WHOAMI, {}, **headers)
    return found["status"]["userInfo"]


@pytest.mark.parametrize(
    "authorization", ["Bearer nobody", "Bearer", "Basic YTpi", "ann-token", "Bearer ann-token x"]
)
async def test_unknown_credentials_are_refused(authorization):
    async with serving(credentials=KNOWN) as server:
        found = await server.get("/api/v1/pods", 401, authorization=authorization)
        assert (found["reason"], found["message"]) == ("Unauthorized", "Unauthorized")


async def test_request_without_credentials_is_refused_where_they_are_required():
    async with serving(credentials=KNOWN) as server:
        await server.get("/api/v1/pods", 401)
        await server.get("/redra/v1/histories", 401)
        assert (await server.raw("GET", "/metrics")).status_code == 401
        assert (await server.raw("GET", "/readyz")).status_code == 200


async def test_token_names_user_uid_and_groups():
    async with serving(credentials=KNOWN) as server:
        assert await who(server, **AS_ANN) == {
            "username": "ann", "uid": "7", "groups": ["team", "system:authenticated"],
        }  # fmt: skip


async def test_client_certificate_names_user_and_groups():
    async with serving(credentials=KNOWN) as server:

        async def with_peer(scope, receive, send):
            await inner({**scope, PEER: ("eve", ("dev",))}, receive, send)

        inner = server.client._transport.app
        server.client._transport.app = with_peer
        found = await who(server)
        assert found == {"username": "eve", "groups": ["dev", "system:authenticated"]}


@pytest.mark.parametrize(
    ("headers", "code"),
    [
        ({}, 201),
        ({"origin": "http://redra"}, 201),
        ({"origin": "http://redra", "sec_fetch_site": "same-origin"}, 201),
        ({"sec_fetch_site": "none"}, 201),
        ({"origin": "https://evil.example"}, 403),
        ({"origin": "null"}, 403),
        ({"sec_fetch_site": "cross-site"}, 403),
        ({"sec_fetch_site": "same-site"}, 403),
    ],
)
async def test_web_pages_of_other_sites_cannot_write_with_a_certificate(headers, code):
    async with serving(credentials=KNOWN) as server:

        async def with_peer(scope, receive, send):
            await inner({**scope, PEER: ("eve", ("system:masters",))}, receive, send)

        inner = server.client._transport.app
        server.client._transport.app = with_peer
        headers = {"host": "redra", **headers}
        await server.post(CONFIG_MAPS, config_map("m"), code, **headers)
        await server.post("/redra/v1/histories", {"name": "other"}, code, **headers)
        # What a page reads of another site its browser does not show it.
        await server.get("/api/v1/configmaps", 200, **headers)


async def test_certificate_and_token_of_one_agent_are_not_mixed_up():
    async with serving(credentials=KNOWN) as server:
        await who(server, **AS_ANN)
        assert (await who(server, **AS_ROOT))["username"] == "root"


async def test_token_review_knows_tokens():
    async with serving(credentials=KNOWN) as server:
        path = "/apis/authentication.k8s.io/v1/tokenreviews"
        good = await server.post(path, {"spec": {"token": "ann-token"}}, **AS_ROOT)
        bad = await server.post(path, {"spec": {"token": "x"}}, **AS_ROOT)
        assert good["status"]["authenticated"] is True
        assert good["status"]["user"]["username"] == "ann"
        assert "authenticated" not in bad["status"]


@pytest.mark.parametrize(
    ("headers", "code"),
    [
        ({"host": "localhost:8080"}, 200),
        ({"host": "127.0.0.1:8080"}, 200),
        ({"host": "[::1]:8080"}, 200),
        ({"host": "evil.example"}, 403),
        ({"host": "localhost:8080", "origin": "http://localhost:8080"}, 200),
        ({"host": "localhost:8080", "origin": "https://evil.example"}, 403),
        ({"host": "localhost:8080", "origin": "null"}, 403),
        ({"host": "localhost:8080", "sec_fetch_site": "cross-site"}, 403),
        ({"host": "evil.example", "authorization": "Bearer ann-token"}, 200),
    ],
)
async def test_web_pages_of_other_sites_cannot_act_without_credentials(headers, code):
    credentials = Credentials(tokens={"ann-token": ANN}, loopback_only=True)
    async with serving(credentials=credentials) as server:
        await server.get("/api/v1/pods", code, **headers)


# Impersonation


async def test_impersonated_user_acts_and_the_log_keeps_both_names():
    async with serving(credentials=KNOWN) as server:
        made = await server.post(CONFIG_MAPS, config_map("m"), impersonate_user="bob", **AS_ROOT)
        runtime = await server.histories.open("default")
        revision = int(made["metadata"]["resourceVersion"])
        (event,) = await runtime.log.read(runtime.info.id, after=revision - 1, limit=1)
        actor = event.stamp.actor
        assert (actor.user, actor.impersonated_by) == ("bob", "root")


async def test_impersonated_user_has_the_groups_and_extras_asked_for():
    async with serving(credentials=KNOWN) as server:
        found = await who(
            server,
            impersonate_user="bob",
            impersonate_group="dev",
            impersonate_uid="9",
            **{"impersonate_extra_example.com%2Fkey": "v"},
            **AS_ROOT,
        )
        assert found == {
            "username": "bob",
            "uid": "9",
            "groups": ["dev", "system:authenticated"],
            "extra": {"example.com/key": ["v"]},
        }


async def test_impersonated_service_account_has_its_groups():
    async with serving(credentials=KNOWN) as server:
        found = await who(server, impersonate_user="system:serviceaccount:ns:sa", **AS_ROOT)
        assert found["groups"] == [
            "system:serviceaccounts", "system:serviceaccounts:ns", "system:authenticated",
        ]  # fmt: skip


@pytest.mark.parametrize(
    ("headers", "message"),
    [
        (
            {"impersonate_user": "bob"},
            'users "bob" is forbidden: User "ann" cannot impersonate resource "users" in API group '
            '"" at the cluster scope',
        ),
        (
            {"impersonate_user": "system:serviceaccount:ns:sa"},
            'serviceaccounts "sa" is forbidden: User "ann" cannot impersonate resource '
            '"serviceaccounts" in API group "" in the namespace "ns"',
        ),
    ],
)
async def test_impersonation_needs_the_right_to_it(headers, message):
    async with serving(credentials=KNOWN, authorization=ROLES) as server:
        found = await server.get("/api/v1/pods", 403, **headers, **AS_ANN)
        assert found["message"] == message


async def test_group_is_not_impersonated_with_the_right_to_the_user_only():
    async with serving(credentials=KNOWN, authorization=ROLES) as server:
        rule = {"apiGroups": [""], "resources": ["users"], "verbs": ["impersonate"]}
        await grant(server, "ann", rule)
        await server.post(WHOAMI, {}, impersonate_user="bob", **AS_ANN)
        found = await server.post(
            WHOAMI, {}, 403, impersonate_user="bob", impersonate_group="system:masters", **AS_ANN
        )
        assert found["message"].startswith('groups "system:masters" is forbidden')


async def test_impersonation_of_a_group_without_a_user_is_refused():
    async with serving(credentials=KNOWN) as server:
        await server.get("/api/v1/pods", 400, impersonate_group="dev", **AS_ROOT)


async def grant(server, user, *rules, name="granted"):
    """Give a user rules everywhere."""
    base = "/apis/rbac.authorization.k8s.io/v1"
    meta = {"metadata": {"name": name}}
    await server.post(f"{base}/clusterroles", {**meta, "rules": list(rules)}, **AS_ROOT)
    await server.post(
        f"{base}/clusterrolebindings",
        {
            **meta,
            "roleRef": {
                "apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": name,
            },
            "subjects": [{"kind": "User", "name": user, "apiGroup": "rbac.authorization.k8s.io"}],
        },
        **AS_ROOT,
    )  # fmt: skip
