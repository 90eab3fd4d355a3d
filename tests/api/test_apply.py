"""Server-side apply, in the words that clients look for. Parity: api.md 9."""

import pytest

from tests.api.serving import CLAIMS, CONFIG_MAPS, claim, config_map, serving

POD_SPEC = {"containers": [{"name": "c", "image": "i:1"}]}

APPLY = "apply-patch+yaml"
DEPLOYMENTS = "/apis/apps/v1/namespaces/default/deployments"


def deployment(**container):
    labels = {"app": "d"}
    return {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": "d"},
        "spec": {
            "selector": {"matchLabels": labels},
            "template": {
                "metadata": {"labels": labels},
                "spec": {"containers": [{"name": "c", "image": "i", **container}]},
            },
        },
    }


async def apply(server, path, tree, code=200, manager="me", **query):
    more = "".join(f"&{name}={value}" for name, value in query.items())
    place = f"{path}?fieldManager={manager}{more}"
    return await server.patch(place, tree, code, kind=APPLY)


async def test_first_apply_creates_and_the_next_one_changes_nothing():
    async with serving() as server:
        made = await apply(server, f"{CONFIG_MAPS}/m", config_map(a="1"), 201)
        again = await apply(server, f"{CONFIG_MAPS}/m", config_map(a="1"))
        assert again == made


@pytest.mark.parametrize("mode", ["Strict", "Warn", "Ignore"])
async def test_undeclared_field_is_refused_in_every_mode_of_validation(mode):
    tree = deployment(foo=1)
    async with serving() as server:
        refused = await apply(server, f"{DEPLOYMENTS}/d", tree, 400, fieldValidation=mode)
        assert refused["message"] == (
            "failed to create typed patch object (/d; apps/v1, Kind=Deployment): "
            '.spec.template.spec.containers[name="c"].foo: field not declared in schema'
        )


async def test_several_undeclared_fields_and_repeated_keys_are_listed():
    tree = deployment(foo=1, ports=[{"containerPort": 80}, {"containerPort": 80}])
    async with serving() as server:
        refused = await apply(server, f"{DEPLOYMENTS}/d", tree, 400)
        _, _, told = refused["message"].partition("errors:\n")
        assert told.splitlines() == [
            '  .spec.template.spec.containers[name="c"].foo: field not declared in schema',
            '  .spec.template.spec.containers[name="c"].ports: duplicate entries for key '
            '[containerPort=80,protocol="TCP"]',
        ]


async def test_core_kinds_are_named_by_their_bare_version():
    async with serving() as server:
        refused = await apply(server, f"{CONFIG_MAPS}/m", {**config_map(), "foo": 1}, 400)
        assert "(/m; /v1, Kind=ConfigMap): .foo:" in refused["message"]


async def test_conflict_with_an_updater_names_the_version_it_used():
    async with serving() as server:
        await server.post(CONFIG_MAPS, config_map(a="1"), user_agent="creator/1")
        refused = await apply(server, f"{CONFIG_MAPS}/m", config_map(a="2"), 409)
        assert refused["message"] == (
            'Apply failed with 1 conflict: conflict with "creator" using v1: .data.a'
        )
        assert refused["details"] == {
            "causes": [
                {
                    "reason": "FieldManagerConflict",
                    "message": 'conflict with "creator" using v1',
                    "field": ".data.a",
                }
            ]
        }


async def test_several_conflicts_are_listed_by_manager():
    async with serving() as server:
        await apply(server, f"{CONFIG_MAPS}/m", config_map(a="1", b="1"), 201, manager="one")
        await apply(server, f"{CONFIG_MAPS}/m", config_map(c="1"), manager="two")
        wanted = config_map(a="2", b="2", c="2")
        refused = await apply(server, f"{CONFIG_MAPS}/m", wanted, 409)
        assert refused["message"] == (
            "Apply failed with 3 conflicts: "
            'conflicts with "one":\n- .data.a\n- .data.b\nconflicts with "two":\n- .data.c'
        )
        forced = await apply(server, f"{CONFIG_MAPS}/m", wanted, force="true")
        assert forced["data"] == {"a": "2", "b": "2", "c": "2"}
        assert [row["manager"] for row in forced["metadata"]["managedFields"]] == ["me"]


async def test_apply_to_another_state_than_named_is_a_conflict():
    async with serving() as server:
        made = await apply(server, f"{CONFIG_MAPS}/m", config_map(a="1"), 201)
        await server.patch(f"{CONFIG_MAPS}/m", {"data": {"b": "1"}})
        stale = config_map(a="2")
        stale["metadata"]["resourceVersion"] = made["metadata"]["resourceVersion"]
        refused = await apply(server, f"{CONFIG_MAPS}/m", stale, 409)
        assert refused["message"] == (
            'Operation cannot be fulfilled on configmaps "m": the object has been modified; '
            "please apply your changes to the latest version and try again"
        )


async def test_status_is_applied_by_its_subresource_and_must_exist():
    tree = claim()
    tree["status"] = {
        "devices": [{"driver": "d.example.com", "pool": "p", "device": "d0"}],
        "allocation": {
            "devices": {
                "results": [
                    {"request": "gpu", "driver": "d.example.com", "pool": "p", "device": "d0"}
                ]
            }
        },
    }
    async with serving() as server:
        await apply(server, f"{CLAIMS}/c/status", tree, 404)
        await server.post(CLAIMS, claim())
        found = await apply(server, f"{CLAIMS}/c/status", tree)
        entry = found["metadata"]["managedFields"][0]
        assert (entry["manager"], entry["subresource"]) == ("me", "status")
        assert list(entry["fieldsV1"]) == ["f:status"]


async def test_apply_without_a_manager_is_invalid():
    async with serving() as server:
        refused = await server.patch(f"{CONFIG_MAPS}/m", config_map(), 422, kind=APPLY)
        assert "fieldManager: Required value: is required for apply patch" in refused["message"]


@pytest.mark.parametrize(
    ("given", "shown"),
    [
        ({}, "/, Kind="),
        ({"kind": "ConfigMap"}, "/, Kind=ConfigMap"),
        ({"apiVersion": "v1"}, "/v1, Kind="),
        ({"apiVersion": "v2", "kind": "ConfigMap"}, "/v2, Kind=ConfigMap"),
        ({"apiVersion": "apps/v1", "kind": "Deployment"}, "apps/v1, Kind=Deployment"),
    ],
)
async def test_configuration_must_say_what_it_is(given, shown):
    async with serving() as server:
        body = {**given, "metadata": {"name": "a"}, "data": {"a": "b"}}
        place = f"{CONFIG_MAPS}/a"
        told = await server.patch(
            f"{place}?fieldManager=m", body, code=400, kind="apply-patch+yaml"
        )
        assert told["message"] == f"invalid object type: {shown}"
        assert told["reason"] == "BadRequest"
        await server.get(place, code=404)


ALWAYS_THERE = [
    (
        "/api/v1/namespaces/default/limitranges",
        {"spec": {"limits": [{"type": "Container"}]}},
        "spec",
    ),
    ("/api/v1/namespaces/default/resourcequotas", {"spec": {"hard": {"pods": "1"}}}, "spec"),
    (
        "/api/v1/namespaces/default/persistentvolumeclaims",
        {
            "spec": {
                "accessModes": ["ReadWriteOnce"],
                "resources": {"requests": {"storage": "1Gi"}},
            }
        },
        "spec",
    ),
    (
        "/apis/coordination.k8s.io/v1/namespaces/default/leases",
        {"spec": {"holderIdentity": "x"}},
        "spec",
    ),
    ("/api/v1/namespaces/default/podtemplates", {"template": {"spec": POD_SPEC}}, "template"),
    (
        "/apis/batch/v1/namespaces/default/jobs",
        {"spec": {"template": {"spec": {**POD_SPEC, "restartPolicy": "Never"}}}},
        "spec",
    ),
    (
        "/apis/batch/v1/namespaces/default/cronjobs",
        {
            "spec": {
                "schedule": "* * * * *",
                "jobTemplate": {
                    "spec": {"template": {"spec": {**POD_SPEC, "restartPolicy": "Never"}}}
                },
            }
        },
        "spec",
    ),
]


def structs(fields, path=()):
    """Paths of entries that own a struct itself."""
    for name, below in fields.items():
        if name == ".":
            yield path
        else:
            yield from structs(below, (*path, name))


@pytest.mark.parametrize(
    ("path", "content", "part"), ALWAYS_THERE, ids=[r[0] for r in ALWAYS_THERE]
)
async def test_structs_that_are_always_there_have_no_owner(path, content, part):
    async with serving() as server:
        made = await server.post(path, {"metadata": {"name": "a"}, **content})
        (entry,) = made["metadata"]["managedFields"]
        owned = {place[-1] for place in structs(entry["fieldsV1"])}
        never = {"f:spec", "f:template", "f:jobTemplate", "f:resources", "f:metadata"}
        assert not owned & (never | {f"f:{part}"})


async def test_job_that_was_applied_from_the_client_is_applied_on_the_server():
    async with serving() as server:
        jobs = "/apis/batch/v1/namespaces/default/jobs"
        job = {
            "apiVersion": "batch/v1",
            "kind": "Job",
            "metadata": {"name": "j", "labels": {"app": "x"}},
            "spec": {
                "template": {
                    "metadata": {"labels": {"app": "x"}},
                    "spec": {**POD_SPEC, "restartPolicy": "Never"},
                }
            },
        }
        made = await server.post(f"{jobs}?fieldManager=kubectl-client-side-apply", job)
        for _ in range(2):
            path = f"{jobs}/j?fieldManager=kubectl"
            applied = await server.patch(path, job, kind="apply-patch+yaml")
            for part in ("selector", "template", "completionMode"):
                assert applied["spec"][part] == made["spec"][part]
