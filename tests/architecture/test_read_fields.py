"""Each field of a served kind is read by code that acts, or stands in a group with its reason.

A field that is stored, and that nobody reads, has no effect; its writer gets a warning, or
`docs/reference/behaviours.md` says so. The list of what nobody reads is made from the published
schemas and from the names in the code; a name that another field has, too, counts as read.
"""

import ast
import json
import re
from functools import cache
from importlib.util import find_spec
from pathlib import Path

from app.domain.objects import registry

ROOT = Path(__file__).resolve().parent.parent.parent
ACTING = (
    "app/domain/controllers", "app/domain/allocation", "app/domain/devices", "app/domain/values",
    "app/domain/cel", "app/domain/objects/quota", "app/domain/objects/access",
    "app/domain/objects/review", "app/domain/objects/kinds", "app/domain/objects/write",
    "app/domain/objects/custom", "app/api/kubernetes", "app/api/access", "app/adapters/webhooks.py",
)  # fmt: skip
"""Code that acts on fields. What shows, converts, checks or stores them is none."""

GROUPS = {
    r"core\.v1\.(Container|ContainerRestartRule|EphemeralContainer|EnvFromSource|EnvVarSource|"
    r"AppArmorProfile|HTTPGetAction|HostAlias|Lifecycle|LifecycleHandler|PodDNSConfig|PodSpec|"
    r"PodSecurityContext|Probe|SeccompProfile|SecurityContext|VolumeDevice|VolumeMount|"
    r"WindowsSecurityContextOptions|ServiceAccount)\.|node\.v1\.RuntimeClass\.handler":
        "What only a kubelet reads",
    r"core\.v1\.(ConfigMapNodeConfigSource|NodeSpec)\.": "What only a kubelet reads",
    r"core\.v1\.(Volume|PersistentVolume\w*|\w+VolumeSource|\w*Projection)\.|"
    r"storage\.v1(beta1|alpha1)?\.|storagemigration\.":
        "Volumes by their fields",
    r"core\.v1\.(Service|Endpoint)\w*\.|discovery\.|networking\.": "What networks read",
    r"resource\.v1\w*\.Device(Claim|Class)Configuration\.opaque": "What drivers read",
    r"\.(derivedAttributes|compatibilityGroups)$|batch\.v1\.JobSchedulingConfiguration\.":
        "What is dropped with its gate",
    r"resource\.v1\w*\.NodeAllocatable|core\.v1\.(NodePodPreemptionPolicy|PodReadinessGate)\.|"
    r"autoscaling\.|batch\.v1\.(CronJobSpec|SuccessPolicyRule)\.|admission\w+\.v1\w*\.Mutation\.":
        "Of fields with a warning",
    r"scheduling\.v1": "Of Workloads and PodGroups",
    r"admissionregistration\.v1\w*\.\w+Webhook\.sideEffects|WebhookC\w+\.|APIServiceSpec\.":
        "Of webhooks and services that extend an API server",
    r"certificates\.|coordination\.|events\.v1\.Event\.": "What signers, holders of Leases and "
    "readers of Events read",
}  # fmt: skip


@cache
def _names() -> frozenset[str]:
    """The words of all texts, and the fields of all records, in code that acts."""
    names: set[str] = set()
    for place in ACTING:
        path = ROOT / place
        for file in [path] if path.is_file() else path.rglob("*.py"):
            for node in ast.walk(ast.parse(file.read_text())):
                match node:
                    case ast.Constant(value=str(text)):
                        names |= {*re.findall(r"[A-Za-z]\w*", text)}
                    case ast.AnnAssign(target=ast.Name(id=name)):
                        first, *others = name.split("_")
                        names.add(first + "".join(map(str.title, others)))
    return frozenset(names)


def _definitions() -> dict[str, dict]:
    spec = find_spec("kubernetes_validate")
    assert spec is not None
    assert spec.submodule_search_locations is not None
    folder = Path(spec.submodule_search_locations[0]) / "kubernetes-json-schema"
    return json.loads((folder / "v1.37.0-local" / "_definitions.json").read_text())["$defs"]


def _unread() -> set[str]:
    """Fields as `group.version.Type.field`."""
    definitions, unread, known = _definitions(), set[str](), set[str]()
    kinds = "|".join(kind.kind for kind in registry.kinds())
    left = [name for name in definitions if re.search(rf"\.({kinds})$", name)]
    while left:
        name = left.pop()
        if name in known or name.endswith(("ObjectMeta", "LabelSelector", "JSONSchemaProps")):
            continue
        known.add(name)
        for field, schema in definitions[name].get("properties", {}).items():
            if field not in ("metadata", "status", "kind", "apiVersion"):
                left += re.findall(r'"#/\$defs/([^"]+)"', json.dumps(schema))
                if field not in _names():
                    unread.add(f"{name}.{field}")
    return unread


def test_field_that_nobody_reads_is_in_a_group_with_its_reason() -> None:
    unread = _unread()
    assert len(unread) > 300
    assert not [one for one in sorted(unread) if not any(re.search(each, one) for each in GROUPS)]
    assert not [each for each in GROUPS if not any(re.search(each, one) for one in unread)]
    page = (ROOT / "docs" / "reference" / "behaviours.md").read_text()
    assert {reason for reason in GROUPS.values() if f"| {reason} |" not in page} == set()
