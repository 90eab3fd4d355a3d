"""Objects as clients that are generated for Python print them, by such a client itself."""

import asyncio
import json
import re
from types import SimpleNamespace

import pytest
import yaml
from kubernetes import client as official
from kubernetes_asyncio import client

from app.adapters.history import python_values
from app.adapters.history.limits import DEFAULT_LIMITS
from app.adapters.history.opening import open_history
from app.adapters.history.reading import ReadOptions
from app.domain.errors import InputError
from tests.unit.history.formats import truth

ZONE = re.compile(r"tzinfo=(?:tzutc|tzlocal)\(\)")
"""What the client shows depends on the zone of the machine."""
MODELS = {"ResourceClaim": "ResourceV1ResourceClaim"}
POD = truth.objects("Pod")[0]
FULL = POD | {
    "metadata": POD["metadata"]
    | {
        "labels": {"my_label": "a", "myLabel": "b"},
        "ownerReferences": [{"apiVersion": "v1", "kind": "Node", "name": "n1", "uid": "u"}],
        "managedFields": [{"manager": "m", "fieldsV1": {"f:spec": {"f:my_field": {}}}}],
    },
    "spec": POD["spec"] | {"nodeSelector": {"gpu_type": "x"}, "hostIPC": True},
    "status": {"podIPs": [{"ip": "10.0.0.1"}], "hostIPs": [{"ip": "10.0.0.2"}]},
}
LEASE = {
    "apiVersion": "coordination.k8s.io/v1",
    "kind": "Lease",
    "metadata": POD["metadata"],
    "spec": {"renewTime": "2026-01-02T03:04:05.000000Z", "holderIdentity": "n1"},
}


def models(*trees):
    async def loaded():
        async with client.ApiClient() as api:
            return [
                api.deserialize(SimpleNamespace(data=json.dumps(tree)), name(tree))
                for tree in trees
            ]

    def name(tree):
        return MODELS.get(tree["kind"], f"V1{tree['kind']}")

    return asyncio.run(loaded())


def pages(*trees):
    """The objects as the official client prints them, fields of a model beside each other."""
    api = official.ApiClient()
    for tree in trees:
        name = MODELS.get(tree["kind"], f"V1{tree['kind']}")
        yield f"{api.deserialize(json.dumps(tree), name, 'application/json')}\n"


def read(tmp_path, text):
    path = tmp_path / "client.log"
    path.write_text(text)
    with open_history([path], ReadOptions()) as history:
        objects = {truth.key(record.object): record.object for record in history.records()}
        return objects, [f"{place}: {problem}" for place, problem in history.refused_places]


def test_objects_have_the_names_and_times_of_the_api(tmp_path):
    # The model of a CronJob refuses one without a template of pods.
    trees = [*(tree for tree in truth.OBJECTS if tree["kind"] != "CronJob"), LEASE]
    shown = models(*trees)
    wanted = {truth.key(tree): tree for tree in trees}
    as_pages = "\n".join(map(str, shown))
    on_lines = "".join(f"2026-01-02 DEBUG got {one.to_dict()!r}\n" for one in shown)
    for text in (as_pages, on_lines, f"the pods:\n{as_pages}\ndone\n"):
        assert read(tmp_path, text) == (wanted, [])


def test_models_of_the_official_client_have_the_names_and_times_of_the_api(tmp_path):
    trees = [*(tree for tree in truth.OBJECTS if tree["kind"] != "CronJob"), LEASE]
    wanted = {truth.key(tree): tree for tree in trees}
    shown = list(pages(*trees))
    assert shown[0].startswith("api_version='")
    for text in ("".join(shown), "".join(f"the next: {page}then\n" for page in shown)):
        assert read(tmp_path, text) == (wanted, [])


@pytest.mark.parametrize("cut", [40, 400, -20])
def test_model_that_breaks_off_is_named_and_the_next_is_read(tmp_path, cut):
    whole, lease = pages(POD, LEASE)
    objects, lost = read(tmp_path, f"{whole[:cut].rstrip()}\nnot more\n{lease}")
    assert list(objects) == [truth.key(LEASE)]
    assert lost == [f"client.log:1: {python_values.BROKEN}"]


def test_list_of_models_gives_its_items_their_kind_and_an_item_alone_is_named(tmp_path):
    bare = {name: part for name, part in FULL.items() if name not in ("apiVersion", "kind")}
    listed = {"apiVersion": "v1", "kind": "PodList", "metadata": {}, "items": [bare]}
    (page,) = pages(listed)
    objects, lost = read(tmp_path, page)
    assert (list(objects), lost) == ([truth.key(FULL)], [])
    shown = python_values.value(page.rstrip(), "a", 1, DEFAULT_LIMITS)
    whole = python_values.value(next(pages(FULL)).rstrip(), "a", 1, DEFAULT_LIMITS)
    assert (shown["items"], whole) == ([bare], FULL)
    item = next(pages(FULL)).replace("'v1' kind='Pod'", "None kind=None", 1)
    objects, lost = read(tmp_path, next(pages(LEASE)) + item)
    assert list(objects) == [truth.key(LEASE)]
    assert [problem.partition(": ")[2] for problem in lost] == [python_values.KINDLESS]


def test_list_gives_its_items_their_kind(tmp_path):
    items = [{name: part for name, part in FULL.items() if name not in ("apiVersion", "kind")}]
    listed = {"apiVersion": "v1", "kind": "PodList", "metadata": {}, "items": items}
    objects, lost = read(tmp_path, f"{models(listed)[0]}\n")
    assert (list(objects), lost) == ([truth.key(FULL)], [])


def test_keys_of_maps_and_acronyms_are_as_they_were():
    text = str(models(FULL)[0])
    assert python_values.value(text, "a", 1, DEFAULT_LIMITS) == FULL


def test_item_without_its_kind_is_named(tmp_path):
    (item,) = models(FULL)
    item.kind = item.api_version = None
    page = f"{models(LEASE)[0]}\n{item}\n"
    objects, lost = read(tmp_path, page)
    assert list(objects) == [truth.key(LEASE)]
    line = str(models(LEASE)[0]).count("\n") + 2
    assert lost == [f"client.log:{line}: {python_values.KINDLESS}"]


@pytest.mark.parametrize(
    ("old", "new", "problem"),
    [
        ("'spec': ", "'my_spec': ", "the unknown field my_spec"),
        ("'kind': 'Pod'", "'kind': 'Pud'", "the unknown kind Pud"),
        ("tzinfo=tzutc()", "tzinfo=zone(1)", "more than plain values"),
        (", tzinfo=tzutc()", "", "more than plain values"),
        ("2026, 1, 2", "2026, 13, 2", "more than plain values"),
    ],
)
def test_object_that_is_not_certain_is_refused(tmp_path, old, new, problem):
    text = f"{models(POD)[0]}\n"
    assert ZONE.sub("tzinfo=tzutc()", text).count(old) >= 1
    with pytest.raises(InputError, match=problem):
        read(tmp_path, ZONE.sub("tzinfo=tzutc()", text).replace(old, new))


def iso(value):
    return value.isoformat()


WRITTEN = {
    "JSON": lambda trees: json.dumps(trees, default=str),
    "JSON over lines": lambda trees: json.dumps(trees, default=iso, indent=2),
    "lines of JSON": lambda trees: "".join(f"{json.dumps(each, default=str)}\n" for each in trees),
    "JSON behind words": lambda trees: f"the pods:\n{json.dumps(trees, default=str)}\nthen\n",
    "YAML": yaml.safe_dump,
    "YAML documents": lambda trees: yaml.safe_dump_all(trees, explicit_start=True),
    "YAML documents without marks": yaml.safe_dump_all,
}


@pytest.mark.parametrize("form", WRITTEN)
def test_fields_of_a_client_that_are_written_as_documents_are_those_of_the_api(tmp_path, form):
    """What programs write that pass `to_dict()` to another library."""
    trees = [*(tree for tree in truth.OBJECTS if tree["kind"] != "CronJob"), LEASE]
    text = WRITTEN[form]([one.to_dict() for one in models(*trees)])
    assert read(tmp_path, text) == ({truth.key(tree): tree for tree in trees}, [])


@pytest.mark.parametrize("form", WRITTEN)
def test_item_without_its_kind_is_lost_alone_in_a_document(tmp_path, form):
    item, lease = (one.to_dict() for one in models(FULL, LEASE))
    text = WRITTEN[form]([lease, {**item, "api_version": None, "kind": None}])
    objects, lost = read(tmp_path, text)
    assert list(objects) == [truth.key(LEASE)]
    assert [problem.partition(": ")[2] for problem in lost] == [python_values.KINDLESS]


def test_list_of_a_client_that_is_written_as_a_document_gives_its_items_their_kind(tmp_path):
    bare = {name: part for name, part in FULL.items() if name not in ("apiVersion", "kind")}
    (page,) = models({"apiVersion": "v1", "kind": "PodList", "metadata": {}, "items": [bare]})
    objects, lost = read(tmp_path, json.dumps(page.to_dict(), default=str))
    assert (list(objects), lost) == ([truth.key(FULL)], [])


def test_changes_that_a_client_watches_are_those_that_the_server_sent(tmp_path):
    trees = [tree for tree in truth.OBJECTS if tree["kind"] != "CronJob"]
    shown = "".join(
        f"{ ({'type': 'ADDED', 'object': model, 'raw_object': tree}) }\n"
        for tree, model in zip(trees, models(*trees), strict=True)
    )
    assert read(tmp_path, shown) == ({truth.key(tree): tree for tree in trees}, [])


@pytest.mark.parametrize("zone", ["tzutc()", "tzlocal()", "datetime.timezone.utc", "TzInfo(0)"])
def test_time_shows_that_it_is_in_utc_in_several_ways(tmp_path, zone):
    text = ZONE.sub(f"tzinfo={zone}", f"{models(POD)[0]}\n")
    assert read(tmp_path, text) == ({truth.key(POD): POD}, [])


def test_call_is_no_value():
    with pytest.raises(ValueError, match="plain values"):
        python_values.value("{'api_version': open('x')}", "a", 1, DEFAULT_LIMITS)
