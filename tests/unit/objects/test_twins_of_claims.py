"""Claims that differ in their names alone are judged once, and stored as if each were alone.

Each row makes a twin known, then changes something else on which a create depends. Rules that
remember twins answer as rules that remember nothing.
"""

import copy
import dataclasses
from collections.abc import Callable
from typing import Any

import pytest

from app.bootstrap.rules import rules_for
from app.domain.errors import Rejected
from app.domain.log.chain import canonical_json
from app.domain.objects.prepared_creates import Forms
from app.domain.objects.profile import Profile
from app.domain.objects.write import lifecycle
from app.domain.objects.write.commands import (
    CreateObject,
    DeleteObject,
    FieldValidation,
    PatchType,
    WriteOptions,
)
from app.domain.values.json_tree import JsonObject
from tests.unit.objects.builders import Cluster, claim, key, stamp

HOME = "shop"
NAMESPACE = key("namespaces", HOME)


def plain_claim(name: str) -> JsonObject:
    return claim(name, HOME)


def admin_claim(name: str) -> JsonObject:
    exactly = {"deviceClassName": "gpu", "adminAccess": True}
    return claim(name, HOME, spec={"devices": {"requests": [{"name": "gpu", "exactly": exactly}]}})


def cluster() -> Cluster:
    """A cluster whose rules remember twins, with a namespace for administrators."""
    made = Cluster(rules=rules_for(Profile(version="1.37")))
    made.namespace(HOME)
    made.namespace("other")
    label(made, "true")
    return made


def label(made: Cluster, value: str | None) -> None:
    labels = {"resource.kubernetes.io/admin-access": value}
    made.patch(NAMESPACE, {"metadata": {"labels": labels}})


def quota(made: Cluster) -> None:
    made.create(
        {
            "apiVersion": "v1",
            "kind": "ResourceQuota",
            "metadata": {"name": "q", "namespace": HOME},
            "spec": {"hard": {"count/resourceclaims.resource.k8s.io": "1"}},
        }
    )


def terminate(made: Cluster) -> None:
    made.do(DeleteObject(key=NAMESPACE))


def outcome(made: Cluster, tree: JsonObject, namespace: str, forms: Forms, **options: Any) -> Any:
    """What is stored and answered, or the refusal."""
    name = tree["metadata"].get("name", "")
    command = CreateObject(
        key=key("resourceclaims", name if isinstance(name, str) else "", namespace),
        version="v1",
        tree=copy.deepcopy(tree),
        options=WriteOptions(**options),
    )
    rules = dataclasses.replace(made.rules, forms=forms)
    try:
        decided = lifecycle.decide(made.world, command, stamp(seconds=99, uid="u-99"), rules)
    except Rejected as refusal:
        return type(refusal), str(refusal), refusal.causes
    drafts = [(draft.key, draft.uid, canonical_json(draft.tree)) for draft in decided.drafts]
    return canonical_json(decided.tree), decided.warnings, drafts


@pytest.mark.parametrize("make", [plain_claim, admin_claim])
@pytest.mark.parametrize(
    "change",
    [
        lambda made: None,
        lambda made: label(made, None),
        quota,
        terminate,
        lambda made: made.create(plain_claim("d")),
    ],
    ids=["nothing", "label", "quota", "terminating", "name in use"],
)
def test_twin_is_judged_by_all_that_is_not_in_it(
    make: Callable[[str], JsonObject], change: Callable[[Cluster], None]
) -> None:
    made = cluster()
    made.create(make("a"))
    change(made)
    assert made.rules.forms.twins
    for name in ("d", "D", "", "a..b", "x" * 300, "a"):
        for wanted in (HOME, "other", "absent"):
            for written in {HOME, wanted}:
                tree = make(name)
                tree["metadata"]["namespace"] = written
                remembering = outcome(made, tree, wanted, made.rules.forms)
                assert remembering == outcome(made, tree, wanted, Forms(bytes_max=0))


@pytest.mark.parametrize(
    "options",
    [
        {"field_manager": "m"},
        {"dry_run": True},
        {"field_validation": FieldValidation.STRICT},
        {"decoding_problems": ('duplicate field "spec"',)},
        {"decoding_problems": ("x",), "field_validation": FieldValidation.STRICT},
    ],
    ids=str,
)
def test_twin_is_made_as_its_request_wants(options: dict[str, Any]) -> None:
    made = cluster()
    made.create(plain_claim("a"), **options | {"decoding_problems": ()})
    tree = plain_claim("b")
    remembering = outcome(made, tree, HOME, made.rules.forms, **options)
    assert remembering == outcome(made, tree, HOME, Forms(bytes_max=0), **options)


@pytest.mark.parametrize(
    "write",
    [
        lambda made, place, tree: made.update(
            tree | {"metadata": tree["metadata"] | {"labels": {"x": "y"}}}
        ),
        lambda made, place, tree: made.update(tree | {"status": {"reservedFor": []}}, "status"),
        lambda made, place, tree: made.patch(
            place, {"metadata": {"labels": {"app": None, "z": "1"}}}
        ),
        lambda made, place, tree: made.patch(
            place, {"metadata": {"finalizers": ["a.b/c"]}}, PatchType.STRATEGIC
        ),
        lambda made, place, tree: made.patch(
            place, [{"op": "remove", "path": "/metadata/labels/app"}], PatchType.JSON
        ),
        lambda made, place, tree: made.do(DeleteObject(key=place)),
    ],
    ids=["update", "status", "merge", "strategic", "json", "delete"],
)
def test_write_to_one_claim_leaves_its_twins_as_they_are(
    write: Callable[[Cluster, Any, JsonObject], object],
) -> None:
    made = cluster()
    for name in ("a", "b"):
        tree = plain_claim(name)
        tree["metadata"]["labels"] = {"app": "x"}
        tree["metadata"]["finalizers"] = ["d.e/f"]
        made.create(tree)
    first, second = key("resourceclaims", "a", HOME), key("resourceclaims", "b", HOME)
    before = canonical_json(made.world.get(second))
    stored = made.world.get(first)
    assert stored is not None
    assert made.rules.forms.twins == 1
    write(made, first, stored)
    assert canonical_json(made.world.get(second)) == before
    third = {**plain_claim("c"), "metadata": {**tree["metadata"], "name": "c"}}
    remembering = outcome(made, third, HOME, made.rules.forms)
    assert remembering == outcome(made, third, HOME, Forms(bytes_max=0))


def test_claims_that_controllers_make_and_other_kinds_have_no_twins() -> None:
    made = cluster()
    owner = {"apiVersion": "v1", "kind": "Pod", "name": "p", "uid": "u"}
    for more in ({"ownerReferences": [owner]}, {"generateName": "a-"}):
        tree = plain_claim("a")
        tree["metadata"] |= more
        outcome(made, tree, HOME, made.rules.forms)
    assert made.rules.forms.twins == 0


def test_twins_are_bounded() -> None:
    made, forms = cluster(), Forms(forms_max=3)
    for number in range(9):
        tree = plain_claim("a")
        tree["metadata"]["labels"] = {"number": str(number)}
        outcome(made, tree, HOME, forms)
        assert forms.twins == min(number + 1, 3)
