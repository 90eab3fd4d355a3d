"""Manifests beside what a server made of them, and manifests of one object.

Reports show an object as it was applied and as it is. Nothing in them says that it was deleted.
"""

import json
import zipfile

import pytest
import yaml

from app.adapters.history.joining import applied_manifests
from app.adapters.history.opening import open_history
from app.adapters.history.reading import ReadOptions
from app.bootstrap.rules import rules_for
from app.domain.log.records import Loss, Op
from app.domain.objects.profile import Profile
from tests.unit.history import test_service_forms as service_forms
from tests.unit.history.formats import truth

RULES = rules_for(Profile())
(STORED,) = truth.objects("ResourceClaim")


def manifest(namespace="shop", **labels):
    metadata = {"name": "claim"} | ({"namespace": namespace} if namespace else {})
    metadata |= {"labels": labels} if labels else {}
    spec = {"apiVersion": STORED["apiVersion"], "kind": "ResourceClaim", "spec": STORED["spec"]}
    return {**spec, "metadata": metadata}


def stored(namespace="shop"):
    return {**STORED, "metadata": {**STORED["metadata"], "namespace": namespace}}


def fenced(*trees):
    return "\n".join(f"Next:\n\n```yaml\n{yaml.safe_dump(tree)}```\n" for tree in trees)


def read(tmp_path, *texts):
    paths = []
    for number, text in enumerate(texts):
        paths.append(tmp_path / f"{number}.md")
        paths[-1].write_text(text)
    with open_history(paths, ReadOptions(rules=RULES)) as history:
        lost = [problem for _, problem in history.refused_places]
        return list(history.records()), history.notes, lost


def brief(records):
    return [(each.op, each.namespace, each.uid == STORED["metadata"]["uid"]) for each in records]


@pytest.mark.parametrize("is_apart", [False, True])
@pytest.mark.parametrize(
    "trees", [(manifest(), stored()), (stored(), manifest(a="b")), (manifest(""), stored("lab"))]
)
def test_manifest_of_a_stored_object_is_no_other_object(tmp_path, trees, is_apart):
    texts = [fenced(tree) for tree in trees] if is_apart else [fenced(*trees)]
    records, notes, lost = read(tmp_path, *texts)
    (stored_tree,) = (tree for tree in trees if "uid" in tree["metadata"])
    assert brief(records) == [(Op.BASELINE, stored_tree["metadata"]["namespace"], True)]
    assert lost == []
    assert f"{applied_manifests.STORED}: 1" in notes


def test_manifest_with_another_namespace_is_another_object(tmp_path):
    records, _, _ = read(tmp_path, fenced(manifest("lab"), stored()))
    assert sorted(brief(records)) == [(Op.ADDED, "lab", False), (Op.BASELINE, "shop", True)]


def test_manifest_without_a_namespace_beside_two_objects_is_a_guess(tmp_path):
    records, notes, _ = read(tmp_path, fenced(manifest(""), stored("lab"), stored("shop")))
    assert {namespace for _, namespace, _ in brief(records)} == {"default", "lab", "shop"}
    assert f"{applied_manifests.GUESSED}: 1" in notes


def test_later_manifest_of_an_object_is_a_change_of_it(tmp_path):
    first, second = read(tmp_path, fenced(manifest(), manifest(), manifest(a="b")))[0]
    assert [first.op, second.op] == [Op.ADDED, Op.MODIFIED]
    assert first.uid == second.uid == second.object["metadata"]["uid"]
    assert second.object["metadata"]["labels"] == {"a": "b"}
    assert Loss.COLLAPSED in second.losses


def test_manifests_of_one_object_in_two_files_have_no_order(tmp_path):
    records, notes, lost = read(tmp_path, fenced(manifest()), fenced(manifest(), manifest(a="b")))
    assert [record.op for record in records] == [Op.ADDED]
    assert "labels" not in records[0].object["metadata"]
    assert lost == [applied_manifests.ANOTHER]
    assert f"{applied_manifests.REPEATED}: 1" in notes


LINE = (
    '2026-01-02T03:04:05.000006Z I0102 03:04:05.000006 1 a.go:1] "Attempting to schedule pod" '
    'pod="shop/web-1"\n'
)


@pytest.mark.parametrize("name", ["a.yaml", "z.yaml"])
@pytest.mark.parametrize("form", ["folder", "zip", "files"])
def test_manifest_beside_a_log_was_applied_before_it(tmp_path, name, form):
    """Whatever the names of the files are: nothing else tells an order."""
    (pod,) = truth.objects("Pod")
    metadata = {"name": "web-1", "namespace": "shop"}
    changed = {"metadata": {**metadata, "labels": {"a": "b"}}}
    pod = {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": pod["spec"]}
    folder = tmp_path / "bug"
    folder.mkdir()
    (folder / name).write_text(yaml.safe_dump_all([pod, {**pod, **changed}, manifest()]))
    (folder / "m.log").write_text(LINE)
    files = sorted(folder.iterdir())
    if form == "zip":
        with zipfile.ZipFile(tmp_path / "bug.zip", "w") as archive:
            for file in files:
                archive.write(file, f"bug/{file.name}")
    paths = {"folder": [folder], "zip": [tmp_path / "bug.zip"], "files": files}[form]
    with open_history(paths, ReadOptions(rules=RULES)) as history:
        records = [(record.op, record.kind) for record in history.records()]
    assert records == [
        (Op.ADDED, "Pod"),
        (Op.MODIFIED, "Pod"),
        (Op.ADDED, "ResourceClaim"),
        (Op.CONTEXT, "Pod"),
    ]


HOOK = {"annotations": {"helm.sh/hook": "pre-install"}}
RELEASE = "NAME: shop\nLAST DEPLOYED: Fri Jan  2 03:04:05 2026\nNAMESPACE: lab\nSTATUS: deployed\n"


def released(*trees):
    return "".join(
        f"---\n# Source: shop/templates/a.yaml\n{yaml.safe_dump(tree)}" for tree in trees
    )


def hook(tree):
    return {**tree, "metadata": {**tree["metadata"], **HOOK, "name": "hook"}}


FORMS_OF_HELM = {
    "get all": f"{RELEASE}HOOKS:\n{released(hook(manifest('')))}"
    f"MANIFEST:\n{released(manifest(''))}",
    "template": released(hook(manifest("lab")), manifest("lab")),
    "as JSON": json.dumps(
        {"name": "shop", "namespace": "lab", "chart": {}, "manifest": released(manifest(""))}
    ),
}


@pytest.mark.parametrize("form", FORMS_OF_HELM)
def test_manifest_of_a_release_is_in_its_namespace_and_hooks_are_none(tmp_path, form):
    records, notes, _ = read(tmp_path, FORMS_OF_HELM[form])
    assert brief(records) == [(Op.ADDED, "lab", False)]
    assert records[0].name == "claim"
    assert not any(applied_manifests.GUESSED in note for note in notes)


def test_namespace_of_a_release_is_not_that_of_what_has_none_or_another(tmp_path):
    (gpu,) = (truth.bare(tree) for tree in truth.objects("DeviceClass"))
    gpu = {"apiVersion": "resource.k8s.io/v1", "kind": "DeviceClass", **gpu}
    gpu["metadata"] = {"name": "gpu"}
    text = f"{RELEASE}MANIFEST:\n{released(gpu, manifest('shop'))}"
    records, _, _ = read(tmp_path, text)
    assert {(each.kind, each.namespace) for each in records} == {
        ("DeviceClass", ""),
        ("ResourceClaim", "shop"),
    }


@pytest.mark.parametrize(
    ("folder", "is_there"),
    [("etc/kubernetes/manifests", False), ("rke2/agent/pod-manifests", False), ("pods", True)],
)
def test_static_pod_of_a_kubelet_is_no_object(tmp_path, folder, is_there):
    (pod,) = truth.objects("Pod")
    pod = {**pod, "metadata": {"name": "web-1", "namespace": "shop"}}
    pod = {name: part for name, part in pod.items() if name != "status"}
    place = tmp_path / "node" / folder
    place.mkdir(parents=True)
    (place / "pod.yaml").write_text(yaml.safe_dump(pod))
    (tmp_path / "node" / "claim.yaml").write_text(yaml.safe_dump(stored()))
    with open_history([tmp_path / "node"], ReadOptions(rules=RULES)) as history:
        kinds = {record.kind for record in history.records()}
        left_out = [reason for _, reason in history.left_out]
    assert kinds == {"ResourceClaim"} | ({"Pod"} if is_there else set())
    assert any("static pods" in reason for reason in left_out) is not is_there


def test_manifest_beside_an_audit_log_is_left_out_by_name(tmp_path):
    """It is an input of the log, which shows what became of it; named itself, it is read."""
    created = json.dumps(service_forms.EVENTS[0])
    (tmp_path / "bug").mkdir()
    (tmp_path / "bug" / "audit.log").write_text(created + "\n")
    (tmp_path / "bug" / "web.yaml").write_text(yaml.safe_dump(manifest("other")))
    with open_history([tmp_path / "bug"], ReadOptions(rules=RULES)) as history:
        assert "other" not in {record.namespace for record in history.records()}
        left_out = [(name, reason) for name, reason in history.left_out if "manifests" in reason]
    assert left_out == [
        ("web.yaml", "manifests beside a log, which are read only if the file itself is named")
    ]
    with open_history([*(tmp_path / "bug").iterdir()], ReadOptions(rules=RULES)) as history:
        assert "other" in {record.namespace for record in history.records()}
