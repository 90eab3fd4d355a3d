"""Manifests beside what a server made of them, and manifests of one object.

Reports show an object as it was applied and as it is. Nothing in them says that it was deleted.
"""

import pytest
import yaml

from app.adapters.history.joining import applied_manifests
from app.adapters.history.opening import open_history
from app.adapters.history.reading import ReadOptions
from app.bootstrap.rules import rules_for
from app.domain.log.records import Loss, Op
from app.domain.objects.profile import Profile
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
