"""Histories in which drivers write into claims whose names were generated, without their names."""

import gzip
from pathlib import Path

import pytest

from app.domain.values import json_tree
from tests import draws
from tests.cluster import Cluster
from tests.command_line import redra
from tests.conformance.fleet_recordings import record
from tests.simulation import originals, planted_soak

pytestmark = pytest.mark.slow

WORDS = {
    # Parts of names of drivers, which stay.
    *("cut", "cut.example.com", "fabric", "fabric.example.com", "net", "net.example.com"),
    *("nic", "nic.example.com", "share", "share.example.com"),
    # Names of fields and amounts, and words of the text around them.
    *("devices", "lines", "memory", "new", "one", "true", "whole"),
    # The controllers that decide it again.
    *("kube-controller-manager/redra", "kube-scheduler/redra", "system:node:redra"),
    # The index of a container and of its request for an extended resource.
    "container-0-request-1",
}
"""Words of fleet worlds that may be in a redacted file."""


def report(cluster: Cluster, claim: str, reason: str) -> None:
    """Writes the status of a claim's device, as its driver does."""
    tree = json_tree.copy(cluster.must("resourceclaims", claim))
    (result,) = tree["status"]["allocation"]["devices"]["results"]
    condition = {
        "type": "Ready",
        "status": "True",
        "reason": reason,
        "message": "",
        "lastTransitionTime": "2026-01-01T00:00:00Z",
    }
    device = {part: result[part] for part in ("driver", "pool", "device")}
    tree["status"]["devices"] = [{**device, "conditions": [condition]}]
    cluster.update("resourceclaims", tree, "status")


def test_driver_still_writes_into_the_claim_that_a_controller_makes(tmp_path: Path) -> None:
    """Its devices are bound because of what it writes, so the pod would not run without it."""
    cluster = Cluster()
    cluster.node()
    cluster.device_class("acme")
    ready = {
        "bindsToNode": True,
        "bindingConditions": ["Ready"],
        "bindingFailureConditions": ["No"],
    }
    cluster.slice(devices=[{"name": f"unit-{n}", **ready} for n in range(3)])
    cluster.template("wanted", class_name="acme")
    # Of the two names for the claim of `train-a` none says where the name of the pod ends.
    for pod, entry in (("train", "a-dev"), ("train-a", "dev"), ("zero", "dev")):
        cluster.pod(pod, resourceClaims=[{"name": entry, "resourceClaimTemplateName": "wanted"}])
        cluster.settle().wait(5)
        report(cluster, cluster.claim_of(pod, entry), "Fine")
        cluster.settle().wait(5)
        assert cluster.must("pods", pod)["spec"]["nodeName"] == "n1"
    names = cluster.names("resourceclaims")
    assert [name[:-5] for name in names] == ["train-a-dev-", "train-a-dev-", "zero-dev-"]
    source, made = tmp_path / "prod.zip", tmp_path / "test_made.py"
    planted_soak.write(cluster, source)
    code, out, error = redra("export", source, "--as", "pytest", "--redact", "-o", made)
    assert code == 0, error
    assert "every decision is the same" in out
    content = made.read_text()
    assert content.count("Ready=True") >= 3, "the test expects what the driver wrote"
    for name in ("train", "zero", "unit", "acme", "wanted", *(name[-5:] for name in names)):
        assert name not in content


@draws.in_turn("ways")
@pytest.mark.parametrize("seed", [305, 312, 319])
def test_fleet_whose_drivers_write_into_claims_is_decided_the_same(
    seed: int, tmp_path: Path
) -> None:
    record(tmp_path, seed, 60)
    source, made = tmp_path / "audit.jsonl", tmp_path / "test_made.py"
    code, out, error = redra("export", source, "--as", "pytest", "--redact", "-o", made)
    assert code == 0, error
    assert "every decision is the same" in out
    log = tmp_path / "audit.jsonl.gz"
    log.write_bytes(gzip.compress(source.read_bytes()))
    texts = originals.read(log) - WORDS
    assert len(texts) > 50
    assert originals.left(texts, made.read_text()) == []
    assert len(originals.left(texts, source.read_text())) > len(texts) // 2
