"""Whatever is sent, the server answers with a Status and no 5xx, and goes on serving.

The amount is set by the hypothesis profile; `make fuzz` runs many more.
"""

import json

import anyio
import yaml
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests import draws
from tests.api.serving import CLAIMS, CONFIG_MAPS, claim, config_map, pod, serving

KINDS = [
    (CLAIMS, claim()),
    (CONFIG_MAPS, config_map(a="b")),
    ("/api/v1/namespaces/default/pods", pod()),
    (
        "/apis/resource.k8s.io/v1/resourceslices",
        {
            "metadata": {"name": "s"},
            "spec": {
                "driver": "d.example.com",
                "nodeName": "n",
                "pool": {"name": "n", "generation": 1, "resourceSliceCount": 1},
                "devices": [{"name": "d", "attributes": {"a": {"string": "b"}}}],
            },
        },
    ),
    (
        "/apis/resource.k8s.io/v1/devicetaintrules",
        {
            "metadata": {"name": "r"},
            "spec": {
                "deviceSelector": {"driver": "d.example.com"},
                "taint": {"key": "k", "value": "v", "effect": "NoSchedule"},
            },
        },
    ),
    (
        "/apis/resource.k8s.io/v1/deviceclasses",
        {
            "metadata": {"name": "c"},
            "spec": {"selectors": [{"cel": {"expression": "device.driver == 'd'"}}]},
        },
    ),
]
SCALARS = (
    st.none()
    | st.booleans()
    | st.integers(-(2**70), 2**70)
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(max_size=20)
)
VALUES = st.recursive(
    SCALARS,
    lambda inner: (
        st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=10), inner, max_size=4)
    ),
    max_leaves=8,
)


def as_json(value):
    return json.dumps(value).encode()


def as_yaml(value):
    return yaml.safe_dump(value).encode()


METHODS = ["POST", "PUT", "PATCH", "DELETE"]
TYPES = [
    "application/json",
    "application/yaml",
    "application/vnd.kubernetes.protobuf",
    "application/merge-patch+json",
    "application/json-patch+json",
    "application/strategic-merge-patch+json",
    "application/apply-patch+yaml",
    "",
]


def places(tree, path=()):
    """Every place of a tree."""
    yield path
    items = tree.items() if isinstance(tree, dict) else enumerate(tree)
    for key, value in items:
        if isinstance(value, dict | list):
            yield from places(value, (*path, key))
        else:
            yield (*path, key)


@st.composite
def damaged(draw):
    """A path and an object of its kind in which one place holds something else."""
    path, tree = draw(st.sampled_from(KINDS))
    tree = json.loads(json.dumps(tree))
    place = draw(st.sampled_from(list(places(tree))))
    value = draw(VALUES)
    if not place:
        return path, value
    holder = tree
    for step in place[:-1]:
        holder = holder[step]
    holder[place[-1]] = value
    return path, tree


def check(requests):
    """Send (method, path, body, content type) one after the other."""

    async def send_all():
        async with serving() as server:
            for method, path, body, kind in requests:
                name = "" if method == "POST" else "/x"
                answer = await server.raw(
                    method, f"{path}{name}?fieldManager=f", body, content_type=kind
                )
                assert answer.status_code < 500, (method, path, body, answer.text)
                if answer.status_code >= 400:
                    assert answer.json()["kind"] == "Status"
            assert (await server.get(CONFIG_MAPS))["kind"] == "ConfigMapList"

    anyio.run(send_all)


QUIET = [HealthCheck.too_slow, HealthCheck.data_too_large]


@settings(max_examples=draws.examples(60), deadline=None, suppress_health_check=QUIET)
@given(st.lists(st.tuples(damaged(), st.sampled_from(METHODS)), min_size=5, max_size=10))
def test_damaged_objects_are_taken_or_refused(cases):
    requests = []
    for (path, tree), method in cases:
        kind = "application/merge-patch+json" if method == "PATCH" else "application/json"
        requests.append((method, path, as_json(tree), kind))
    check(requests)


@settings(max_examples=draws.examples(40), deadline=None, suppress_health_check=QUIET)
@given(
    st.lists(
        st.tuples(
            st.sampled_from(METHODS),
            st.sampled_from([path for path, _ in KINDS]),
            st.binary(max_size=200) | VALUES.map(as_json) | VALUES.map(as_yaml),
            st.sampled_from(TYPES),
        ),
        min_size=5,
        max_size=15,
    )
)
def test_any_bytes_of_any_type_are_taken_or_refused(requests):
    check(requests)


@settings(max_examples=draws.examples(40), deadline=None, suppress_health_check=QUIET)
@given(st.lists(st.binary(max_size=120), min_size=5, max_size=15))
def test_any_bytes_after_the_protobuf_mark_are_taken_or_refused(bodies):
    kind = "application/vnd.kubernetes.protobuf"
    check([("POST", KINDS[0][0], b"k8s\x00" + body, kind) for body in bodies])


@settings(max_examples=draws.examples(40), deadline=None, suppress_health_check=QUIET)
@given(
    st.lists(
        st.tuples(
            st.sampled_from(
                ["labelSelector", "fieldSelector", "limit", "continue", "resourceVersion",
                 "resourceVersionMatch", "timeoutSeconds", "includeObject"]
            ),
            st.text(max_size=30) | st.integers(-5, 10**20).map(str),
        ),
        min_size=1,
        max_size=4,
    )
)  # fmt: skip
def test_any_parameters_of_a_list_are_taken_or_refused(pairs):
    async def ask():
        async with serving() as server:
            answer = await server.client.get(CONFIG_MAPS, params=pairs)
            # A revision that does not exist yet is the one 5xx of the contract.
            assert answer.status_code < 500 or answer.json()["reason"] == "Timeout", answer.text

    anyio.run(ask)


@settings(max_examples=draws.examples(60), deadline=None, suppress_health_check=QUIET)
@given(st.text(max_size=40), st.sampled_from(["GET", "POST", "PUT", "DELETE", "OPTIONS", "X"]))
def test_any_path_is_answered(path, method):
    async def ask():
        async with serving() as server:
            sent = []

            async def receive():
                return {"type": "http.request", "body": b"", "more_body": False}

            async def send(message):
                sent.append(message)

            scope = {
                "type": "http",
                "method": method,
                "path": f"/{path}",
                "query_string": b"",
                "headers": [(b"host", b"localhost")],
            }
            await server.app(scope, receive, send)
            assert sent[0]["status"] < 500

    anyio.run(ask)
