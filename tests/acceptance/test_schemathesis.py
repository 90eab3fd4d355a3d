"""schemathesis against a server process: what is answered is what the served OpenAPI says.

Reads, lists and watches of every kind of some group-versions, and writes. What a refusal looks like
is not in these documents, as it is not in those of Kubernetes; other tests hold that. `tests/fuzz`
sends far more of such requests to the application in process.
"""

import json
from concurrent.futures import ThreadPoolExecutor
from functools import cache

import jsonschema
import pytest
import requests
import schemathesis
from hypothesis import HealthCheck, Phase, given, seed, settings
from schemathesis import GenerationMode
from schemathesis.checks import not_a_server_error
from schemathesis.specs.openapi.checks import (
    content_type_conformance,
    response_schema_conformance,
)

from tests import draws
from tests.acceptance.server_process import server_process
from tests.fuzz.seeds import all_seeds

pytestmark = [pytest.mark.database, pytest.mark.slow]

PLACES = ["api/v1", "apis/apps/v1", "apis/resource.k8s.io/v1", "apis/stable.example.com/v1"]
CHECKS = [not_a_server_error, content_type_conformance, response_schema_conformance]
TIMES = [f"io.k8s.apimachinery.pkg.apis.meta.v1.{name}" for name in ("Time", "MicroTime")]
EXAMPLES = 3
PATIENCE = 30
DEFINITION = {
    "metadata": {"name": "crontabs.stable.example.com"},
    "spec": {
        "group": "stable.example.com",
        "names": {"kind": "CronTab", "plural": "crontabs"},
        "scope": "Namespaced",
        "versions": [{
            "name": "v1", "served": True, "storage": True,
            "schema": {"openAPIV3Schema": {
                "type": "object",
                "properties": {"spec": {
                    "type": "object", "properties": {"image": {"type": "string"}},
                }},
            }},
        }],
    },
}  # fmt: skip
DEFINITIONS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"


@pytest.fixture(scope="module")
def server(tmp_path_factory):
    with server_process(tmp_path_factory.mktemp("documents")) as found:
        with found.client() as client:
            made = client.post(DEFINITIONS, json=DEFINITION)
            assert made.status_code == 201, made.text
            for each in all_seeds():
                client.post(each.collection, json=each.tree)
            tree = {"apiVersion": "stable.example.com/v1", "kind": "CronTab"}
            tree |= {"metadata": {"name": "x"}, "spec": {"image": "i"}}
            tabs = "/apis/stable.example.com/v1/namespaces/default/crontabs"
            while client.post(tabs, json=tree).status_code == 404:
                pass  # The kind is served when its definition is established.
        yield found


@cache
def described(server, place):
    """The schema of a group-version, read once, with its operations."""
    document = requests.get(f"{server.url}/openapi/v3/{place}", timeout=PATIENCE).json()
    for name in TIMES:
        # A time that is not known is null, and the documents say nothing of it: so does Kubernetes.
        if name in document["components"]["schemas"]:
            document["components"]["schemas"][name]["nullable"] = True
    schema = schemathesis.openapi.from_dict(document)
    schema.config.update(base_url=server.url)
    return schema, [result.ok() for result in schema.get_all_operations()]


def operations(server, place, *methods):
    schema, every = described(server, place)
    return schema, [each for each in every if each.method.upper() in methods]


def cases_of(operation, count, mode=GenerationMode.POSITIVE):
    """Cases that schemathesis makes, always the same, about what exists in the main."""
    made = []

    @seed(len(operation.path))
    @settings(
        max_examples=count, database=None, deadline=None, phases=[Phase.generate],
        suppress_health_check=list(HealthCheck),
    )  # fmt: skip
    @given(operation.as_strategy(generation_mode=mode))
    def make(case):
        made.append(case)

    make()
    known = {"namespace": "default", "name": "x"}
    for case in made:
        names = case.path_parameters or {}
        case.path_parameters = {name: known.get(name, names[name]) for name in names}
        case.headers["Accept"] = "application/json"
        if case.query and "watch" in case.query:
            del case.query["watch"]
    return made


def is_watchable(operation):
    return any(each.name == "watch" for each in operation.iter_parameters())


@draws.in_turn("ways")
@pytest.mark.parametrize("place", PLACES)
def test_reads_and_lists_are_answered_as_documented(server, place):
    _, reads = operations(server, place, "GET")
    codes = set()
    # A part of the reads may hold none, or only reads of single objects, which may be absent.
    lists = [operation for operation in reads if is_watchable(operation)]
    for operation in (lists[0], *draws.of_today(reads)):
        for case in cases_of(operation, EXAMPLES):
            answer = case.call(timeout=PATIENCE)
            case.validate_response(answer, checks=CHECKS)
            codes.add(answer.status_code)
    assert 200 in codes


@draws.in_turn("ways")
@pytest.mark.parametrize("place", PLACES)
def test_lines_of_watches_hold_objects_as_documented(server, place):
    schema, reads = operations(server, place, "GET")
    watched = [
        (item_schema(schema.raw_schema, operation), server.url + case.formatted_path)
        for operation in reads
        if is_watchable(operation)
        for case in cases_of(operation, 1)
    ]
    # Each of them lasts a second.
    with ThreadPoolExecutor(len(watched)) as together:
        answers = [*together.map(watch, [url for _, url in watched])]
    seen = 0
    for (item, _), answer in zip(watched, answers, strict=True):
        assert answer.status_code == 200, answer.text
        assert answer.headers["content-type"].startswith("application/json")
        for line in answer.text.splitlines():
            event = json.loads(line)
            assert event["type"] in ("ADDED", "MODIFIED", "DELETED")
            jsonschema.validate(without_null_times(event["object"]), item)
            seen += 1
    assert seen


def watch(url):
    query = {"watch": "true", "timeoutSeconds": "1", "resourceVersion": "0"}
    wanted = {"Accept": "application/json"}
    return requests.get(url, params=query, timeout=PATIENCE, headers=wanted)


@draws.in_turn("refusals")
@pytest.mark.parametrize(
    ("place", "mode"),
    [
        ("apis/resource.k8s.io/v1", GenerationMode.POSITIVE),
        ("apis/stable.example.com/v1", GenerationMode.POSITIVE),
        ("apis/stable.example.com/v1", GenerationMode.NEGATIVE),
    ],
)
def test_writes_are_taken_or_refused_and_answered_as_documented(server, place, mode):
    _, writes = operations(server, place, "POST", "PUT", "PATCH", "DELETE")
    for operation in writes:
        for case in cases_of(operation, 2, mode):
            answer = case.call(timeout=PATIENCE)
            case.validate_response(answer, checks=CHECKS)
            if answer.status_code >= 400:
                assert answer.json()["kind"] == "Status", answer.text


def item_schema(document, operation):
    """The schema of one object of a list, with all that it refers to."""
    answered = operation.definition.raw["responses"]["200"]["content"]["application/json"]
    name = answered["schema"]["$ref"].rpartition("/")[2]
    listed = document["components"]["schemas"][name]
    return listed["properties"]["items"]["items"] | {"components": document["components"]}


def without_null_times(tree):
    """An object without the times that are not known, as deep as they lie.

    A validator of JSON Schema does not know the mark that OpenAPI has for them.
    """
    if isinstance(tree, list):
        return [without_null_times(item) for item in tree]
    if not isinstance(tree, dict):
        return tree
    return {
        key: without_null_times(value)
        for key, value in tree.items()
        if value is not None or not key.endswith(("Time", "Timestamp"))
    }
