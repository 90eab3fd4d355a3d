"""Manifests that other people wrote: each is taken, or refused for the reason that is known.

`corpus_refusals.tsv` lists every refusal (file, number of the object, code, beginning of the
message); each was compared with the corpus' own list of oddities. `--rewrite` is not offered: a
change here is a change of behaviour and wants to be looked at.
"""

import itertools
import json
from pathlib import Path

import yaml

from app.domain.objects import registry
from app.domain.objects.profile import Profile
from tests import draws
from tests.api.serving import serving
from tests.shared_data import shared_path

REFUSALS = Path(__file__).parent / "corpus_refusals.tsv"
SERVED_HERE = Profile(gates={"DRAResourcePoolStatus": True, "GenericWorkload": True})
MESSAGE_MAX = 110
FIXTURES = "kubernetes__api"
"""Serialisation fixtures: every field is set, none is meant to be valid."""


def files(folder):
    """The files with manifests, in their order."""
    return [
        path
        for path in sorted(folder.rglob("*"))
        if path.suffix in (".yaml", ".yml", ".json") and FIXTURES not in path.parts
    ]


def objects(folder, paths=None):
    """File, number in it, and each object of a kind and version that is known and served."""
    for path in files(folder) if paths is None else paths:
        number = 0
        for document in yaml.load_all(path.read_text(), Loader=yaml.CSafeLoader):
            listed = document.get("items") if isinstance(document, dict) else None
            for tree in listed if isinstance(listed, list) else [document]:
                number += 1
                if isinstance(tree, dict) and is_served(tree):
                    yield str(path.relative_to(folder)), number, tree


def is_served(tree):
    """Whether the release serves the version: groups of pods had another one in each release."""
    kind = kind_of(tree)
    place = registry.split_api_version(str(tree.get("apiVersion", "")))
    return kind is not None and (
        kind.plural not in ("podgroups", "workloads")
        or registry.is_served(kind, *place, SERVED_HERE)
    )


def kind_of(tree):
    group, version = registry.split_api_version(str(tree.get("apiVersion", "")))
    return registry.find_kind(group, version, str(tree.get("kind", "")))


async def create(server, tree):
    """Create without storing, in the namespace that every object here is moved to."""
    kind = kind_of(tree)
    metadata = tree.get("metadata") or {}
    for field in ("resourceVersion", "uid", "namespace"):
        metadata.pop(field, None)
    version = tree["apiVersion"]
    root = f"/apis/{version}" if "/" in version else f"/api/{version}"
    place = f"{root}/namespaces/default" if kind.namespaced else root
    query = "dryRun=All&fieldValidation=Strict"
    body = json.dumps(tree, default=lambda moment: f"{moment.isoformat()}Z").encode()
    return await server.raw("POST", f"{place}/{kind.plural}?{query}", body)


@draws.in_turn("ways")
async def test_manifests_are_taken_or_refused_for_the_known_reason():
    folder = shared_path("corpus")
    taken, refused = 0, []
    async with serving(profile=SERVED_HERE) as server:
        for path, number, tree in objects(folder):
            answer = await create(server, tree)
            if answer.status_code == 201:
                taken += 1
            else:
                message = answer.json()["message"][:MESSAGE_MAX].replace("\n", " ").strip()
                refused.append(f"{path}\t{number}\t{answer.status_code}\t{message}")
    assert refused == REFUSALS.read_text().splitlines()
    assert taken > 590


NOT_APPLIED = {("openshift-psap__composite-dra-driver/docs/CHEATSHEET.md/01.yaml", 2)}
"""A container names one claim twice: a create takes that, an apply finds no key for the items."""


APPLIED_OF_A_DAY = 20
"""A seventh of 580 objects is 83 on average; a file has up to a few dozen."""


async def apply(server, tree):
    """Apply on the server side, in the object's own namespace, which is made if needed."""
    kind, metadata = kind_of(tree), tree["metadata"]
    namespace = metadata.get("namespace") or "default"
    if kind.namespaced and namespace != "default":
        await server.raw("POST", "/api/v1/namespaces", {"metadata": {"name": namespace}})
    version = tree["apiVersion"]
    root = f"/apis/{version}" if "/" in version else f"/api/{version}"
    place = f"{root}/namespaces/{namespace}" if kind.namespaced else root
    return await server.raw(
        "PATCH",
        f"{place}/{kind.plural}/{metadata['name']}?fieldManager=f&force=true&fieldValidation=Strict",
        json.dumps(tree, default=lambda moment: f"{moment.isoformat()}Z").encode(),
        content_type="application/apply-patch+yaml",
    )


async def test_manifests_are_applied_and_applied_again_without_a_change():
    """The manifests of a seventh of the files; those of all files with more draws."""
    folder = shared_path("corpus")
    rows = objects(folder, draws.of_today(files(folder)))
    refused = {tuple(line.split("\t")[:2]) for line in REFUSALS.read_text().splitlines()}
    applied = 0
    for path, objects_of_file in itertools.groupby(rows, key=lambda row: row[0]):
        async with serving(profile=SERVED_HERE) as server:
            for _, number, tree in objects_of_file:
                metadata = tree.get("metadata") or {}
                if (path, str(number)) in refused or not metadata.get("name"):
                    continue
                for field in ("resourceVersion", "uid"):
                    metadata.pop(field, None)
                first = await apply(server, tree)
                if (path, number) in NOT_APPLIED:
                    assert first.status_code == 400
                    continue
                assert first.status_code == 201, (path, number, first.text)
                if tree["kind"] == "Namespace":
                    # Who applies nothing owns nothing: the second apply finds no owner at all and
                    # enters the one of before.
                    first = await apply(server, tree)
                again = await apply(server, tree)
                assert again.json() == first.json(), (path, number)
                applied += 1
    assert applied > (580 if draws.WHOLE else APPLIED_OF_A_DAY)
