"""The identity of the sender of a request, and the API that returns it."""

from app.api.access.authorization import Authorization
from app.api.identity.authentication import ADMIN, Credentials
from app.domain.log import Actor
from tests.api.serving import CONFIG_MAPS, config_map, serving

REVIEWS = "/apis/authentication.k8s.io/v1"
ACCESS = "/apis/authorization.k8s.io/v1"
CLOSED = Credentials(
    tokens={"secret": ADMIN, "small": Actor(user="small", groups=("g",))}, anonymous=None
)


async def test_anonymous_is_let_in_by_default():
    async with serving() as server:
        found = await server.post(f"{REVIEWS}/selfsubjectreviews", {})
        assert found["status"]["userInfo"]["username"] == "system:anonymous"


async def test_nobody_is_let_in_without_a_token_when_it_is_required():
    async with serving(credentials=CLOSED) as server:
        status = await server.get("/api/v1/namespaces", code=401)
        assert (status["reason"], status["message"]) == ("Unauthorized", "Unauthorized")


async def test_unknown_token_is_refused():
    async with serving() as server:
        await server.get("/api/v1/namespaces", code=401, authorization="Bearer other")


async def test_known_token_names_its_user():
    async with serving(credentials=CLOSED) as server:
        found = await server.post(
            f"{REVIEWS}/selfsubjectreviews", {}, authorization="Bearer secret"
        )
        assert found["status"]["userInfo"]["username"] == ADMIN.user


async def test_health_needs_no_token():
    async with serving(credentials=CLOSED) as server:
        assert (await server.raw("GET", "/readyz")).status_code == 200


async def test_token_review_knows_the_tokens():
    async with serving(credentials=CLOSED) as server:
        path = f"{REVIEWS}/tokenreviews"
        for token, known in (("small", True), ("other", False)):
            found = await server.post(
                path, {"spec": {"token": token}}, authorization="Bearer secret"
            )
            assert found["status"].get("authenticated", False) is known


async def test_administrator_may_act_as_somebody_else():
    async with serving(credentials=CLOSED) as server:
        found = await server.post(
            f"{REVIEWS}/selfsubjectreviews",
            {},
            authorization="Bearer secret",
            impersonate_user="joe",
            impersonate_group="crew",
        )
        assert found["status"]["userInfo"] == {
            "username": "joe",
            "groups": ["crew", "system:authenticated"],
        }


async def test_ordinary_user_may_not():
    by_roles = Authorization(is_open=False, by_roles=True)
    async with serving(credentials=CLOSED, authorization=by_roles) as server:
        status = await server.get(
            "/api/v1/namespaces", code=403, authorization="Bearer small", impersonate_user="joe"
        )
        assert status["reason"] == "Forbidden"


async def test_log_says_who_wrote_and_for_whom():
    async with serving(credentials=CLOSED) as server:
        await server.post(
            CONFIG_MAPS, config_map(), authorization="Bearer secret", impersonate_user="joe"
        )
        runtime = await server.histories.open("default")
        event = runtime.views.objects.event(("", "configmaps", "default", "m"))
        assert event.stamp.actor.user == "joe"
        assert event.stamp.actor.impersonated_by == ADMIN.user
        assert event.stamp.verb == "create"


async def test_access_is_always_granted():
    async with serving() as server:
        spec = {"resourceAttributes": {"verb": "create", "resource": "pods"}}
        found = await server.post(f"{ACCESS}/selfsubjectaccessreviews", {"spec": spec})
        assert found["status"]["allowed"] is True
        rules = await server.post(
            f"{ACCESS}/selfsubjectrulesreviews", {"spec": {"namespace": "default"}}
        )
        assert rules["status"]["incomplete"] is False


async def test_local_review_is_below_its_namespace():
    async with serving() as server:
        path = f"{ACCESS}/namespaces/default/localsubjectaccessreviews"
        spec = {"user": "joe", "resourceAttributes": {"namespace": "default", "verb": "get"}}
        found = await server.post(path, {"spec": spec})
        assert found["kind"] == "LocalSubjectAccessReview"
