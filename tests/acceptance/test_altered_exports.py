"""Exported tests that a machine alters in one decisive thing fail, and name an object that it hits.

pytest runs them in an empty folder in a process of its own, as a user who gets such a file does.
"""

import re
import subprocess
from pathlib import Path

import pytest

from tests import draws
from tests.acceptance import altered_exports
from tests.acceptance.altered_exports import Altered
from tests.cluster import DRIVER, Cluster, claim_spec
from tests.command_line import pytest_command, redra
from tests.shared_data import shared_path
from tests.simulation import planted_soak

pytestmark = pytest.mark.slow

KINDS = {
    *("device", "node", "effect", "counter", "reason", "count", "selector", "amount", "admin"),
    *("configuration", "tolerated time", "asserted device"),
}
"""The kinds of alterations of the small history, which has an object for each."""

ADMINS = "admins"


def small_history(path: Path) -> Path:
    """A node with two partitions of a card and a shared device, in use; one pod is evicted."""
    cluster = Cluster(kubelet=True)
    cluster.create(
        "v1",
        "Namespace",
        ADMINS,
        metadata={"name": ADMINS, "labels": {"resource.kubernetes.io/admin-access": "true"}},
    )
    cluster.node("n1")
    cluster.node("n2")
    cluster.device_class(selector=f'device.driver == "{DRIVER}"')
    pool = {"name": "n1", "generation": 1, "resourceSliceCount": 2}
    card = {"name": "card", "counters": {"memory": {"value": "40Gi"}}}
    half = [{"counterSet": "card", "counters": {"memory": {"value": "20Gi"}}}]
    kinds = {"part": {"string": "part"}, "shared": {"string": "shared"}}
    parts = [
        {"name": f"part-{n}", "attributes": {"kind": kinds["part"]}, "consumesCounters": half}
        for n in range(2)
    ]
    shared = {
        "name": "shared-0",
        "attributes": {"kind": kinds["shared"]},
        "allowMultipleAllocations": True,
        "capacity": {"memory": {"value": "40Gi"}},
    }
    slices = {"counters": {"sharedCounters": [card]}, "devices": {"devices": [*parts, shared]}}
    for name, content in slices.items():
        spec = {"driver": DRIVER, "nodeName": "n1", "pool": pool, **content}
        cluster.create("resource.k8s.io/v1", "ResourceSlice", f"n1-{name}", spec=spec)
    chosen = {
        kind: [{"cel": {"expression": f'device.attributes["{DRIVER}"].kind == "{kind}"'}}]
        for kind in kinds
    }
    tolerated = {"key": "example.com/bad", "operator": "Exists", "effect": "NoExecute"}
    cluster.template(
        "part", selectors=chosen["part"], tolerations=[{**tolerated, "tolerationSeconds": 10}]
    )
    spec = claim_spec(selectors=chosen["shared"], capacity={"requests": {"memory": "10Gi"}})
    parameters = {"driver": DRIVER, "parameters": {"apiVersion": "v1", "kind": "Sharing"}}
    spec["devices"]["config"] = [{"requests": ["gpu"], "opaque": parameters}]
    cluster.create("resource.k8s.io/v1", "ResourceClaim", "share", spec=spec)
    cluster.apply(
        {
            "apiVersion": "resource.k8s.io/v1",
            "kind": "ResourceClaim",
            "metadata": {"name": "watch", "namespace": ADMINS},
            "spec": claim_spec(adminAccess=True, selectors=chosen["part"]),
        }
    )
    cluster.pod("first", template="part")
    cluster.pod("second", claim="share")
    cluster.pod("third", claim="watch", namespace=ADMINS)
    cluster.settle()
    claim = cluster.must("resourceclaims", "share")
    condition = {"type": "Ready", "status": "False", "reason": "Overheated", "message": ""}
    condition["lastTransitionTime"] = "2026-01-02T03:00:00Z"
    (result,) = claim["status"]["allocation"]["devices"]["results"]
    device = {name: result[name] for name in ("driver", "pool", "device", "shareID")}
    status = {**claim["status"], "devices": [{**device, "conditions": [condition]}]}
    cluster.update("resourceclaims", {**claim, "status": status}, "status")
    cluster.rule(selector={"driver": DRIVER, "pool": "n1", "device": "part-0"})
    cluster.settle().wait(60)
    planted_soak.write(cluster, path)
    return path


def judged(files: list[Altered], folder: Path) -> list[tuple[str, str]]:
    """What pytest says of each file, in a process and a folder of its own: outcome and reasons."""
    folder.mkdir()
    for number, file in enumerate(files):
        (folder / f"test_{number}.py").write_text(file.text)
    command = pytest_command("-rA", folder)
    done = subprocess.run(command, cwd=folder, capture_output=True, check=False, text=True)
    outcomes = re.findall(r"^(PASSED|FAILED|ERROR) test_(\d+)\.py", done.stdout, re.MULTILINE)
    assert len(outcomes) == len(files), done.stdout
    reasons = {
        place[1]: "\n".join(re.findall(r"^E .*", part, re.MULTILINE))
        for part in re.split(r"^_{3,} test.*_$", done.stdout, flags=re.MULTILINE)
        if (place := re.search(r"^test_(\d+)\.py:\d+: ", part, re.MULTILINE))
    }
    by_number = {number: (outcome, reasons.get(number, "")) for outcome, number in outcomes}
    return [by_number[str(number)] for number in range(len(files))]


def check(source: Path, folder: Path, *words: str, release: str = "") -> list[Altered]:
    """Exports a history as a test, which passes, and each alteration of it fails by name."""
    file = folder / "test_exported.py"
    code, _, error = redra("export", source, "--as", "pytest", "-o", file, *words)
    assert code == 0, error
    text = file.read_text()
    altered = altered_exports.alterations(text)
    if release:
        altered.append(altered_exports.release(text, release))
    files = [Altered(kind="as it is", text=text, names=()), *altered]
    (outcome, reason), *others = judged(files, folder / "alone")
    assert outcome == "PASSED", reason
    wrong = [
        f"{each.kind}: {outcome}, {reason}"
        for each, (outcome, reason) in zip(altered, others, strict=True)
        if outcome != "FAILED" or not any(name in reason for name in each.names)
    ]
    assert not wrong, "\n".join(wrong)
    return altered


@draws.in_turn("wrongs")
@pytest.mark.parametrize("words", [(), ("--redact",)])
def test_exported_test_fails_for_each_altered_object_and_names_it(
    words: tuple[str, ...], tmp_path: Path
) -> None:
    source = small_history(tmp_path / "small.zip")
    altered = check(source, tmp_path, *words)
    # Parameters of drivers are private: without names there are none.
    assert {each.kind for each in altered} == KINDS - ({"configuration"} if words else set())


@draws.ONLY
@pytest.mark.parametrize("words", [(), ("--redact",)])
@pytest.mark.parametrize(
    ("name", "release"),
    [
        ("a-quickstart", ""),
        ("b-mig-partitions", ""),
        ("c-multihost-tpu", ""),
        ("e-taints", ""),
        ("e-taints-rules-ignored", "1.37"),
        ("j-api-versions", ""),
    ],
)
def test_exported_test_of_a_recording_fails_for_each_altered_object(
    name: str, release: str, words: tuple[str, ...], tmp_path: Path
) -> None:
    check(shared_path("histories", name), tmp_path, *words, release=release)
