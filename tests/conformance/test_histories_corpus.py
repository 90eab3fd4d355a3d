"""Every file of the corpus is read as a dump, or refused with place and reason."""

from collections import Counter
from pathlib import Path

import pytest

from app.adapters.history.opening import open_history
from app.adapters.history.reading import ReadOptions
from app.bootstrap import rules
from app.domain.errors import InputError
from app.domain.log.records import Op, Quality
from app.domain.objects import profile
from tests import draws
from tests.shared_data import shared_path

NOT_DATA = ("README.md", "INDEX.tsv")

EXPECTED = {
    "taken": 438,
    "a version that is not read": 14,
    "not a kind of any release": 2,
    "fields that the version does not have": 21,
    "invalid": 18,
    "no apiVersion, kind or name": 2,
    "a format that is not read": 3,
    "no change in it": 1,
}
"""How many files end how. A change here is a change of what people can import."""

REASONS = (
    ("is the older form", "a version that is not read"),
    ("was never released", "a version that is not read"),
    ("is not a kind of any release", "not a kind of any release"),
    ("cannot be handled as", "fields that the version does not have"),
    ("is invalid:", "invalid"),
    ("there is no object", "no apiVersion, kind or name"),
    ("has no apiVersion", "no apiVersion, kind or name"),
    ("without metadata.name", "no apiVersion, kind or name"),
    ("does not know the format", "a format that is not read"),
    ("cannot be joined", "a format that is not read"),
    ("none is a change", "no change in it"),
)


def options() -> ReadOptions:
    return ReadOptions(rules=rules.rules_for(profile.from_settings({})))


def read(path: Path):
    with open_history([path], options()) as recorded:
        return list(recorded.records()), recorded.notes


@draws.in_turn("ways")
def test_every_file_is_taken_or_refused_in_words():
    root = shared_path("corpus")
    given = options()
    found: Counter[str] = Counter()
    unexplained = []
    for path in sorted(root.rglob("*")):
        if not path.is_file() or path.name in NOT_DATA:
            continue
        try:
            with open_history([path], given) as recorded:
                taken = sum(1 for _ in recorded.records())
            found["taken" if taken else "nothing"] += 1
        except InputError as problem:
            reason = next((name for text, name in REASONS if text in str(problem)), None)
            if reason is None or path.name not in problem.place:
                unexplained.append(f"{path}: {problem}")
            found[reason or "unexplained"] += 1
    assert unexplained == []
    assert dict(found) == EXPECTED


@pytest.mark.parametrize(
    ("path", "kinds"),
    [
        ("cncf__k8s-ai-conformance/v1.35/vks/dra_support.md/01.yaml", {"ResourceSlice": 8}),
        ("google__dranet/site/content/docs/user/gke-rdma.md/04.yaml", {"ResourceClaim": 1}),
    ],
)
def test_captured_clusters_are_baseline(path, kinds):
    records, _ = read(shared_path("corpus", path))
    assert {record.op for record in records} == {Op.BASELINE}
    assert Counter(record.kind for record in records) == kinds
    assert all(record.uid and record.resource_version for record in records)


def test_two_drivers_of_one_node_are_read_from_their_folder():
    folder = shared_path("corpus", "kubernetes-sigs__dranet/examples/aws_eks_examples/gpu-efa")
    with open_history([folder], options()) as recorded:
        drivers = Counter(
            record.object["spec"]["driver"]
            for record in recorded.records()
            if record.kind == "ResourceSlice"
        )
    assert len(drivers) == 2


def test_hand_edited_slice_is_taken_and_reported():
    """A v1 object whose devices still have the v1beta1 wrapper: the attributes are not lost
    silently."""
    path = shared_path("corpus", "google__dranet/site/content/docs/quick-start.md/01.yaml")
    try:
        records, notes = read(path)
    except InputError as problem:
        assert "basic" in str(problem)  # noqa: PT017  either verdict must name the field
    else:
        assert any("basic" in note for note in notes)
        assert records[0].object_quality is Quality.PARTIAL


def test_trace_of_a_simulation_is_replayable_input():
    path = shared_path("corpus", "acrlabs__simkube/examples/traces/dsb-scaling.sktrace")
    records, _ = read(path)
    assert Counter(record.op for record in records) == {Op.BASELINE: 27, Op.MODIFIED: 19}
    assert {record.kind for record in records} == {"Deployment"}
    assert all(record.uid for record in records)
    as_json, _ = read(path.with_name(path.name + ".json"))
    assert [(r.op, r.key, r.observed_at) for r in as_json] == [
        (r.op, r.key, r.observed_at) for r in records
    ]
