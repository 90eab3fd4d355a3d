"""Redacted histories contain none of the marked texts that were in every field."""

import base64
import gzip
import zipfile
from collections.abc import Iterator
from dataclasses import replace
from itertools import count
from pathlib import Path
from typing import Any
from unittest import mock

import msgspec
import pytest
import zstandard
from hypothesis import given
from hypothesis import strategies as st

from app.analysis.handover import places, redaction
from app.analysis.replay.inputs import Input
from app.cli.exit_codes import ExitCode
from app.domain.log import Actor, Event, EventType, ObjectKey, Revision, Stamp
from app.domain.log.chain import canonical_json
from app.domain.objects import registry
from app.domain.objects.schema.structural import SchemaNode, SchemaShape
from app.domain.objects.write.commands import CreateObject
from app.domain.values.timestamps import Instant
from tests import draws
from tests.cluster import DRIVER, USER, Cluster, claim_spec
from tests.command_line import database_running, redra
from tests.simulation import planted_soak
from tests.unit.objects import builders

pytestmark = pytest.mark.slow


class Marks:
    """Generates unique texts in ascending order."""

    def __init__(self) -> None:
        self.all: list[str] = []
        self._numbers = count()

    def __call__(self) -> str:
        self.all.append(f"zq{next(self._numbers):05}mark")
        return self.all[-1]

    def left_in(self, content: bytes) -> Iterator[str]:
        """The marks that the bytes contain, plain or in Base64 at any offset."""
        folded = content.lower()
        for mark in self.all:
            forms = {mark.encode(), mark.encode()[::-1], mark.encode().hex().encode()}
            for offset in range(3):
                whole = base64.b64encode(b"\0" * offset + mark.encode())
                forms.add(whole[4 if offset else 0 :].rstrip(b"=")[:-2])
            if any(form in content or form in folded for form in forms):
                yield mark


def with_counters(cluster: Cluster, pool: str, drawn: dict[str, Any], name: str) -> None:
    """Adds a slice with the counters that devices of a pool draw on, enough for one of them."""
    (own,) = cluster.names("resourceslices")
    tree = cluster.must("resourceslices", own)
    spec = {**tree["spec"], "pool": {**tree["spec"]["pool"], "resourceSliceCount": 2}}
    cluster.update("resourceslices", {**tree, "spec": spec})
    shared = [{"name": drawn["counterSet"], "counters": drawn["counters"]}]
    plain = {key: value for key, value in spec.items() if key != "devices"}
    whole = {**plain, "sharedCounters": shared}
    cluster.create("resource.k8s.io/v1", "ResourceSlice", name, spec=whole)


def marked(mark: Marks) -> Cluster:
    """Objects with a marked text in every field that a user writes."""
    space, node, pool, label, model = (mark() for _ in range(5))
    cluster = Cluster(namespaces=("default", space))
    cluster.node(node, **{"example_com/rack": label})
    cluster.device_class(
        mark(),
        f'device.attributes["{DRIVER}"].model in ["{model}", "{mark()}"]'
        f' && "shared" in device.attributes["{DRIVER}"]'
        f' && device.attributes["{DRIVER}"].os == "{model}"'  # also the name of a field of nodes
        f' && device.attributes["{DRIVER}"].driverVersion.compareTo(semver("1.2.3")) >= 0',
    )
    attributes = {
        "model": {"string": model},
        "os": {"string": model},
        "serial": {"string": mark()},
        "shared": {"bool": True},
        "driverVersion": {"version": "1.10.0"},
    }
    broken = {"key": "example.com/broken", "value": mark(), "effect": "NoSchedule"}
    kept = {"key": "example.com/kept", "value": mark(), "effect": "NoSchedule"}
    counters = {mark(): {"value": "2"}, "data": {"value": "1"}}
    drawn = {"consumesCounters": [{"counterSet": mark(), "counters": counters}]}
    devices = [
        {"name": mark(), "attributes": attributes, "taints": [broken], **drawn},
        {"name": mark(), "attributes": attributes, "taints": [kept], **drawn},
    ]
    cluster.slice(node, devices, name=mark(), pool=pool)
    with_counters(cluster, pool, drawn["consumesCounters"][0], mark())
    request, entry, pod, claim = mark(), mark(), mark(), "shared"
    tolerations = [{**kept, "operator": "Equal"}]
    (name,) = cluster.names("deviceclasses")
    spec = claim_spec(name, tolerations=tolerations)
    spec["devices"]["requests"][0]["name"] = request
    metadata = {
        "name": claim,
        "namespace": space,
        "labels": {"team": mark()},
        "annotations": {"contact": mark()},
    }
    version = "resource.k8s.io/v1"
    cluster.apply(
        {"apiVersion": version, "kind": "ResourceClaim", "metadata": metadata, "spec": spec}
    )
    settings = {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {"name": mark(), "namespace": space},
        "data": {mark(): base64.b64encode(mark().encode()).decode()},
    }
    key = ObjectKey("", "configmaps", space, mark.all[-3])
    cluster.line.submit(CreateObject(key=key, version="v1", tree=settings), actor=USER)
    container = {
        "name": mark(),
        "image": f"registry.{mark()}.test/{mark()}:1",
        "env": [{"name": "TEAM", "value": mark()}],
        "args": [mark()],
        "workingDir": f"/srv/{mark()}",
        "livenessProbe": {"httpGet": {"path": f"/{mark()}", "port": 80}},
        "resources": {"claims": [{"name": entry, "request": request}]},
    }
    cluster.pod(
        pod,
        namespace=space,
        containers=[container],
        nodeSelector={"example.com/rack": label},
        resourceClaims=[{"name": entry, "resourceClaimName": claim}],
    )
    cluster.settle()
    condition = {
        "type": "Healthy",
        "status": "True",
        "reason": "Fine",
        "message": mark(),
        "lastTransitionTime": "2026-01-01T00:00:00Z",
    }
    tree = cluster.must("resourceclaims", claim, space)
    (result,) = tree["status"]["allocation"]["devices"]["results"]
    told = {
        **{part: result[part] for part in ("driver", "pool", "device")},
        "conditions": [condition],
        "data": {"lane": mark()},
        "networkData": {"interfaceName": mark()},
    }
    tree["status"]["devices"] = [told]
    cluster.update("resourceclaims", tree, "status")
    cluster.wait(5)
    cluster.patch("pods", pod, {"metadata": {"annotations": {"note": mark()}}}, namespace=space)
    cluster.wait(5)
    cluster.rule(mark(), selector={"pool": pool}, value=mark())
    cluster.settle()
    for resource, tree in others(mark, space):
        metadata = tree["metadata"]
        group, _, version = tree["apiVersion"].rpartition("/")
        key = ObjectKey(group, resource, metadata.get("namespace", ""), metadata["name"])
        cluster.line.submit(CreateObject(key=key, version=version, tree=tree), actor=USER)
    cluster.settle()
    return cluster


def others(mark: Marks, space: str) -> Iterator[tuple[str, dict[str, Any]]]:
    """Objects of which decisions read little or nothing."""

    def tree(version: str, kind: str, namespace: str = "", **parts: Any) -> dict[str, Any]:
        metadata = {"name": mark()} | ({"namespace": namespace} if namespace else {})
        return {"apiVersion": version, "kind": kind, "metadata": metadata, **parts}

    spec: dict[str, Any] = {"type": "ExternalName", "externalName": f"{mark()}.test"}
    yield "services", tree("v1", "Service", space, spec=spec)
    spec = {"selector": {"app": mark()}, "ports": [{"name": mark(), "port": 80}]}
    yield "services", tree("v1", "Service", space, spec=spec)
    spec = {
        "capacity": {"storage": "1Gi"},
        "accessModes": ["ReadWriteOnce"],
        "nfs": {"server": f"{mark()}.test", "path": f"/{mark()}"},
    }
    yield "persistentvolumes", tree("v1", "PersistentVolume", spec=spec)
    service = {"service": {"name": mark(), "port": {"number": 80}}}
    path = {"path": f"/{mark()}", "pathType": "Prefix", "backend": service}
    spec = {"rules": [{"host": f"{mark()}.test", "http": {"paths": [path]}}]}
    yield "ingresses", tree("networking.k8s.io/v1", "Ingress", space, spec=spec)
    spec = {"holderIdentity": mark(), "leaseDurationSeconds": 40}
    yield "leases", tree("coordination.k8s.io/v1", "Lease", space, spec=spec)
    yield (
        "storageclasses",
        tree(
            "storage.k8s.io/v1",
            "StorageClass",
            provisioner=f"{mark()}.test",
            mountOptions=[mark()],
            parameters={mark(): mark()},
        ),
    )


FORMS = ("pytest", "manifests", "go-allocator-case")
WHOLE = ("bundle", "audit", "watch", "objects", "k8shark")


def unpacked(path: Path) -> dict[str, bytes]:
    """The names and contents of the written files, and of the members of archives."""
    files = [path] if path.is_file() else sorted(path.iterdir())
    contents = {file.name: file.read_bytes() for file in files}
    for file in files:
        if zipfile.is_zipfile(file):
            with zipfile.ZipFile(file) as archive:
                contents |= {name: archive.read(name) for name in archive.namelist()}
    for name, content in list(contents.items()):
        if content.startswith(b"\x28\xb5\x2f\xfd"):
            contents[name] = zstandard.ZstdDecompressor().decompressobj().decompress(content)
        elif content.startswith(b"\x1f\x8b"):
            contents[name] = gzip.decompress(content)
    return contents


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """A data folder whose database runs; each form has its own histories in it."""
    folder = tmp_path_factory.mktemp("redaction") / "data"
    with database_running(folder):
        yield folder


@draws.in_turn("ways")
@pytest.mark.parametrize("form", WHOLE)
def test_whole_histories_have_nothing_that_a_person_wrote(
    form: str, data: Path, tmp_path: Path
) -> None:
    mark = Marks()
    agent, group = mark(), mark()
    person = Actor(user=mark(), groups=(group, "system:masters"), agent=agent)
    bundle, prod, again = tmp_path / "prod.zip", f"prod-{form}", f"again-{form}"
    with mock.patch("tests.simulation.test_redaction.USER", person):
        planted_soak.write(marked(mark), bundle)
    code, _, error = redra("import", bundle, "--history", prod, "--data", data)
    assert code == 0, error
    made = tmp_path / "made"
    words = ("export", prod, "--data", data, "--as", form)
    code, out, error = redra(*words, "--redact", "-o", made)
    assert code == 0, error
    assert "every decision is the same" in out
    contents = unpacked(made)
    assert {name: left for name, each in contents.items() if (left := [*mark.left_in(each)])} == {}
    assert [*mark.left_in(" ".join(contents).encode())] == []
    # The same search finds them where nothing was replaced.
    code, _, error = redra(*words, "-o", tmp_path / "plain")
    assert code == 0, error
    left = {name for each in unpacked(tmp_path / "plain").values() for name in mark.left_in(each)}
    assert len(left) >= len(mark.all) // 2
    # What was written is a history, and sound.
    code, out, error = redra("import", made, "--history", again, "--data", data)
    assert code == 0, error
    code, out, _ = redra("replay", again, "--data", data, "--mode", "verify", "-o", "json")
    # What is there at one moment says little of how it came about.
    assert code == (ExitCode.IN_PART if form == "objects" else ExitCode.DONE), out


@pytest.mark.parametrize("form", FORMS)
def test_nothing_that_a_person_wrote_is_left(form: str, tmp_path: Path) -> None:
    mark = Marks()
    source = tmp_path / "prod.zip"
    planted_soak.write(marked(mark), source)
    made = tmp_path / "made"
    code, out, error = redra("export", source, "--as", form, "--redact", "-o", made)
    assert code == 0, error
    assert "every decision is the same" in out
    said = "configmaps 1, ingresses 1, leases 1, persistentvolumes 1, storageclasses 1\n"
    assert f"left out, because no decision reads them (writes): {said}" in out
    files = [made] if made.is_file() else sorted(made.iterdir())
    assert files
    for file in files:
        assert list(mark.left_in(file.read_bytes())) == [], file.name
        assert list(mark.left_in(file.name.encode())) == []
    # The same search finds them where nothing was replaced.
    code, _, error = redra("export", source, "--as", form, "-o", tmp_path / "plain")
    assert code == 0, error
    plain = tmp_path / "plain"
    contents = [plain] if plain.is_file() else sorted(plain.iterdir())
    left = {name for file in contents for name in mark.left_in(file.read_bytes())}
    assert len(left) >= (8 if form == "go-allocator-case" else len(mark.all) // 2)


SAID_TO_STAY = {
    *("apiGroup", "apiVersion", "kind", "resourceVersion", "driver", "version"),
    *("bindingConditions", "bindingFailureConditions", "conditionType", "type"),
    *("distinctAttribute", "matchAttribute", "extendedResourceName", "resourceName"),
    *("key", "labelKeys", "matchLabelKeys", "mismatchLabelKeys", "topologyKey"),
}
"""Fields of which the how-to says that their text stays."""

WORDS = {
    *("action", "allocationMode", "completionMode", "concurrencyPolicy", "declaredFeatures"),
    *("disruptionMode", "dnsPolicy", "effect", "imagePullPolicy", "nodeAffinityPolicy"),
    *("nodeTaintsPolicy", "operator", "phase", "podManagementPolicy", "podReplacementPolicy"),
    *("preemptionPolicy", "protocol", "qosClass", "restartPolicy", "scopeName", "scopes"),
    *("status", "terminationMessagePolicy", "unhealthyPodEvictionPolicy", "whenDeleted"),
    *("whenScaled", "whenUnsatisfiable"),
}
"""Fields for which the API has a fixed set of words."""

READ = sorted(
    (kind for kind in registry.kinds() if (kind.group, kind.plural) in places.READ),
    key=lambda kind: (kind.group, kind.plural),
)


def filled(node: SchemaNode, mark: Marks, place: str, found: dict[str, str], depth: int = 0) -> Any:
    """A tree with its own mark in every text field of a schema."""
    if depth > 24:
        return None
    match node.shape:
        case SchemaShape.OBJECT:
            return {
                name: filled(field, mark, name, found, depth + 1)
                for name, field in node.fields.items()
            }
        case SchemaShape.MAP:
            return {"example.com/key": filled(node.items, mark, place, found, depth + 1)}
        case SchemaShape.LIST:
            return [filled(node.items, mark, place, found, depth + 1)]
        case SchemaShape.INTEGER | SchemaShape.NUMBER:
            return 1
        case SchemaShape.BOOLEAN:
            return True
        case SchemaShape.TIME | SchemaShape.MICRO_TIME:
            return "2026-01-01T00:00:00Z"
    text = mark()
    found[text] = place
    if node.shape is SchemaShape.ANY:
        return {"example.com/any": text}
    return f'device.driver == "{text}"' if place == "expression" else text


@pytest.mark.parametrize("kind", READ, ids=lambda kind: kind.plural)
def test_no_field_of_a_kind_that_is_told_keeps_a_text_of_its_own(kind: registry.Kind) -> None:
    mark, found = Marks(), {}
    tree = {}
    for release in ("1.37", "1.36"):
        node = builders.release(release).find(kind.group, kind.versions[0], kind.kind)
        tree = {} if node is None else filled(node, mark, "", found)
        if tree:
            break
    else:
        pytest.fail(f"no release has a schema of {kind.plural}")
    tree |= {"apiVersion": f"{kind.group}/{kind.versions[0]}".lstrip("/"), "kind": kind.kind}
    step = written("node-1")
    step = replace(step, event=replaced(step.event, tree))
    assert len(found) >= 10
    left = redaction.redaction_of([step]).input(step).event.body
    kept = {found[text] for text in mark.left_in(left)}
    assert kept <= SAID_TO_STAY | WORDS, sorted(kept - SAID_TO_STAY - WORDS)


def replaced(event: Event, tree: dict[str, Any]) -> Event:
    return msgspec.structs.replace(event, tree=tree, body=canonical_json(tree))


def redacted(tree: dict[str, Any]) -> dict[str, Any]:
    step = written("node-1")
    step = replace(step, event=replaced(step.event, tree))
    return redaction.redaction_of([step]).tree(tree)


@pytest.mark.parametrize("name", ["10.12.3.4", "10", "2026", "1.2.3", "10-12-3-4", "fd00::1"])
def test_name_that_looks_like_a_number_is_replaced(name: str) -> None:
    step = written(name)
    changed = redaction.redaction_of([step])
    assert changed.input(step).event.key.name != name
    tree = {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": "pod", "labels": {"on": name}},
        "spec": {"nodeName": name, "nodeSelector": {"kubernetes.io/hostname": name}},
    }
    pod = replace(step, event=replaced(step.event, tree))
    changed = redaction.redaction_of([step, pod])
    new = changed.key(step.event.key).name
    tree = changed.tree(tree)
    assert tree["spec"] == {"nodeName": new, "nodeSelector": {"kubernetes.io/hostname": new}}
    assert tree["metadata"]["labels"] == {"on": new}


def test_numbers_that_are_values_and_words_of_kubernetes_stay() -> None:
    term = {"matchExpressions": [{"key": "example.com/size", "operator": "Gt", "values": ["4"]}]}
    spec = {
        "schedulerName": "default-scheduler",
        "affinity": {"nodeAffinity": {"requiredDuringScheduling": {"nodeSelectorTerms": [term]}}},
        "containers": [{"resources": {"requests": {"cpu": "100m", "memory": "1Gi"}}}],
    }
    status = {"phase": "Failed", "reason": "Evicted", "startTime": "2026-01-01T00:00:00Z"}
    tree = {"apiVersion": "v1", "kind": "Pod", "metadata": {}, "spec": spec, "status": status}
    assert redacted(tree) == tree
    tree = {**tree, "spec": {"schedulerName": "acme"}, "status": {"reason": "AcmeDown"}}
    told = redacted(tree)
    assert told["spec"]["schedulerName"] not in ("acme", "default-scheduler")
    assert told["status"]["reason"] != "AcmeDown"


CLASS_IN_NAMES = (
    "{}.deviceclass.resource.k8s.io/devices",
    "deviceclass.resource.kubernetes.io/{}",
    "requests.deviceclass.resource.kubernetes.io/{}",
    "{}.storageclass.storage.k8s.io/requests.storage",
    "{}.storageclass.storage.k8s.io/persistentvolumeclaims",
)


@pytest.mark.parametrize("form", CLASS_IN_NAMES)
def test_class_in_the_name_of_a_resource_is_replaced_as_the_class_is(form: str) -> None:
    tree = {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": "acme.zone"},
        "spec": {"hard": {form.format("acme.zone"): "8", "example.com/gpu": "1"}},
        "status": {"requestMappings": [{"resourceName": form.format("acme.zone")}]},
    }
    changed = redacted(tree)
    name = changed["metadata"]["name"]
    assert name != "acme.zone"
    assert changed["spec"] == {"hard": {form.format(name): "8", "example.com/gpu": "1"}}
    assert changed["status"] == {"requestMappings": [{"resourceName": form.format(name)}]}


def test_quota_of_a_class_refuses_what_it_refused(tmp_path: Path) -> None:
    """Otherwise the history without its names would have a claim more."""
    cluster = Cluster()
    cluster.node("n1")
    cluster.device_class("acme")
    cluster.slice("n1", devices=3)
    cluster.template(class_name="acme")
    hard = {"acme.deviceclass.resource.k8s.io/devices": "1"}
    cluster.apply(
        {
            "apiVersion": "v1",
            "kind": "ResourceQuota",
            "metadata": {"name": "devices"},
            "spec": {"hard": hard},
        }
    )
    cluster.settle()
    for name in ("first", "second"):
        cluster.pod(name, template="gpu")
        cluster.settle().wait(10)
    assert len(cluster.names("resourceclaims")) == 1
    source, made = tmp_path / "prod.zip", tmp_path / "test_made.py"
    planted_soak.write(cluster, source)
    code, out, error = redra("export", source, "--as", "pytest", "--redact", "-o", made)
    assert code == 0, error
    assert "every decision is the same" in out
    assert b"acme" not in made.read_bytes()


def test_service_that_is_written_has_no_address_for_the_api_to_refuse() -> None:
    """It needs neither addresses nor ports if its address is `None`, a word of the API."""
    tree = {
        "apiVersion": "v1",
        "kind": "Service",
        "metadata": {"name": "acme", "namespace": "acme"},
        "spec": {
            "clusterIP": "10.96.7.1",
            "externalName": "acme.example.com",
            "ports": [{"port": 80}],
            "selector": {"app": "acme"},
        },
    }
    told = redacted(tree)
    assert told["spec"] == {"clusterIP": "None", "selector": {"app": told["metadata"]["name"]}}
    assert told["metadata"]["name"] != "acme"


STAYING = ("default", "kube-node-lease", "kube-public", "kube-system", "system-node-critical")
NAMES = st.one_of(
    st.from_regex(r"[a-z]([a-z0-9-]{0,6}[a-z0-9])?", fullmatch=True),
    st.tuples(st.sampled_from(STAYING), st.sampled_from(["-a", "b0", "z"])).map("".join),
    st.sampled_from(("kube-", "system-", "kube", "zz", "A100", "Tesla", "kube-prod", "system-x")),
)


@given(st.sets(NAMES, min_size=1))
def test_new_names_sort_among_all_as_the_old_ones_did(names: set[str]) -> None:
    redacted = redaction.redaction_of([written(name) for name in names])
    new = {name: redacted.key(written(name).event.key).name for name in (*names, *STAYING)}
    assert all(new[name] == name for name in STAYING)
    assert [new[name] for name in sorted(new)] == sorted(new.values())
    assert not {new[name] for name in names - {*STAYING, "true", "false"}} & names


def written(name: str) -> Input:
    tree = {"apiVersion": "v1", "kind": "Node", "metadata": {"name": name}}
    event = Event(
        revision=Revision(1),
        type=EventType.OBJECT_CREATED,
        key=ObjectKey("", "nodes", "", name),
        uid=name,
        body=canonical_json(tree),
        stamp=Stamp(time=Instant(0), actor=Actor(user="alice"), verb="create"),
    )
    return Input(event=event, before=None, time=Instant(0), author="alice")


@pytest.mark.parametrize(
    ("user", "new"),
    [
        ("system:kube-scheduler", "system:kube-scheduler"),
        (
            "system:serviceaccount:kube-system:job-controller",
            "system:serviceaccount:kube-system:job-controller",
        ),
        ("system:serviceaccount:team:robot", "system:serviceaccount:t0004:l0003"),
        (
            "system:serviceaccount:kube-system:acme-driver",
            "system:serviceaccount:kube-system:a0001",
        ),
        ("system:node:node-1", "system:node:l0002"),
        ("system:bootstrap:abcdef", "user"),
        ("system:apiserver", "system:apiserver"),
        ("alice@example.com", "user"),
    ],
)
def test_users_are_named_as_their_objects_are(user: str, new: str) -> None:
    steps = [written("node-1"), replace(written("team"), author=user)]
    steps += [replace(written("node-1"), author="system:serviceaccount:team:robot")]
    steps += [replace(steps[0], author="system:serviceaccount:kube-system:acme-driver")]
    assert redaction.redaction_of(steps).user(user) == new


def test_groups_that_every_cluster_has_stay() -> None:
    actor = Actor(user="alice", groups=("system:nodes", "system:bootstrappers:acme", "acme"))
    assert redaction.redaction_of([]).actor(actor).groups == ("system:nodes",)


def test_uids_are_others_in_the_same_order_wherever_they_are() -> None:
    holder = {"resource": "pods", "name": "pod", "uid": "c"}
    result = {"driver": DRIVER, "pool": "p", "device": "d", "shareID": "b"}
    status = {"reservedFor": [holder], "allocation": {"devices": {"results": [result]}}}
    tree = {"apiVersion": "resource.k8s.io/v1", "kind": "ResourceClaim", "status": status}
    step = written("node-1")
    event = msgspec.structs.replace(replaced(step.event, tree), uid="a")
    step = replace(step, event=event, subjects=frozenset(("a", "c")))
    made = msgspec.structs.replace(step.event, uid="d")

    changed = redaction.redaction_of([step], [made])
    new = changed.input(step)
    (result,) = new.event.object["status"]["allocation"]["devices"]["results"]
    (holder,) = new.event.object["status"]["reservedFor"]

    uids = [new.event.uid, result["shareID"], holder["uid"], changed.event(made).uid]
    assert uids == sorted(uids)
    assert len({*uids}) == 4
    assert not {*uids} & {*"abcd"}
    assert new.subjects == {uids[0], uids[2]}


@pytest.mark.parametrize(
    ("expression", "redacted"),
    [
        ('device.x == "acme" // of acme', 'device.x == "a0001"  '),
        ("// don't ask acme\ndevice.x == 'acme'", ' \ndevice.x == "a0001"'),
        ('// the "acme\ndevice.x == "acme"', ' \ndevice.x == "a0001"'),
        ('device.x == "http://acme"', 'device.x == "a0002"'),
        ('device.x == """acme"""', 'device.x == "a0001"'),
        ('device.x == """a "b" c""" || x == "acme"', 'device.x == "c" || x == "a0001"'),
        ("device.x == r'acme\\' || x == 'acme'", 'device.x == "raw" || x == "a0001"'),
        ("device.x == '''http://acme''' // '", 'device.x == "a0002"  '),
    ],
)
def test_literals_are_replaced_in_each_form_and_comments_left_out(
    expression: str, redacted: str
) -> None:
    known = {"acme": "a0001", "http://acme": "a0002", 'a "b" c': "c", "acme\\": "raw"}
    names = redaction.Redaction(names=known)
    tree = {"spec": {"selectors": [{"cel": {"expression": expression}}]}}

    selector = names.tree(tree)["spec"]["selectors"][0]

    assert selector["cel"]["expression"] == redacted
