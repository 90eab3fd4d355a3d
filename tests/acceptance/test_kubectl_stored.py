"""kubectl over kinds that are stored for others: networks, autoscalers, volumes, certificates.

Nothing here acts on them; they are made, shown, described, explained and removed as anywhere.
Parity: api.md 2, 6 and 11.
"""

import base64
import re

import pytest

from tests import draws
from tests.acceptance.kubectl_cluster import cluster

pytestmark = [pytest.mark.database, pytest.mark.slow, draws.modules_in_turn("kubectl")]

STORAGE = """
apiVersion: storage.k8s.io/v1
kind: StorageClass
metadata:
  name: fast
  annotations: {storageclass.kubernetes.io/is-default-class: "true"}
provisioner: disks.example.com
---
apiVersion: storage.k8s.io/v1
kind: CSIDriver
metadata: {name: disks.example.com}
spec: {podInfoOnMount: true}
---
apiVersion: storage.k8s.io/v1
kind: CSINode
metadata: {name: n1}
spec: {drivers: [{name: disks.example.com, nodeID: n1}]}
---
apiVersion: storage.k8s.io/v1
kind: VolumeAttachment
metadata: {name: va}
spec: {attacher: disks.example.com, nodeName: n1, source: {persistentVolumeName: pv1}}
---
apiVersion: storage.k8s.io/v1
kind: CSIStorageCapacity
metadata: {name: cap}
storageClassName: fast
capacity: 10Gi
---
apiVersion: node.k8s.io/v1
kind: RuntimeClass
metadata: {name: kata}
handler: kata
---
apiVersion: networking.k8s.io/v1
kind: NetworkPolicy
metadata: {name: np}
spec: {podSelector: {matchLabels: {a: b}}, egress: [{ports: [{port: 80}]}]}
---
apiVersion: networking.k8s.io/v1
kind: IngressClass
metadata: {name: ic}
spec: {controller: example.com/ic, parameters: {apiGroup: example.com, kind: P, name: p}}
---
apiVersion: discovery.k8s.io/v1
kind: EndpointSlice
metadata: {name: es}
addressType: IPv4
endpoints: [{addresses: [10.0.0.1, 10.0.0.2]}, {addresses: [10.0.0.3, 10.0.0.4]}]
ports: [{port: 80}]
---
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingWebhookConfiguration
metadata: {name: checks}
webhooks:
- name: pods.checks.example.com
  admissionReviewVersions: [v1]
  clientConfig: {service: {name: checks, namespace: checks, path: /pods}}
  rules: [{apiGroups: [""], apiVersions: [v1], operations: [CREATE], resources: [pods]}]
  sideEffects: None
---
apiVersion: admissionregistration.k8s.io/v1
kind: MutatingWebhookConfiguration
metadata: {name: changes}
webhooks: []
---
apiVersion: admissionregistration.k8s.io/v1
kind: MutatingAdmissionPolicy
metadata: {name: sidecars}
spec:
  matchConstraints:
    resourceRules: [{apiGroups: [""], apiVersions: [v1], operations: [CREATE], resources: [pods]}]
  mutations:
  - patchType: ApplyConfiguration
    applyConfiguration: {expression: 'Object{metadata: Object.metadata{labels: {"a": "b"}}}'}
  reinvocationPolicy: Never
---
apiVersion: admissionregistration.k8s.io/v1
kind: MutatingAdmissionPolicyBinding
metadata: {name: sidecars}
spec: {policyName: sidecars}
"""
ROWS = [
    ("sc", r"fast \(default\) +disks.example.com +Delete +Immediate +false"),
    ("csidrivers", "disks.example.com +true +true +false +<unset> +false +Persistent"),
    ("csinodes", "n1 +1"),
    ("volumeattachments", "va +disks.example.com +pv1 +n1 +false"),
    ("csistoragecapacities", "cap +fast +10Gi"),
    ("runtimeclasses", "kata +kata"),
    ("netpol", "np +a=b"),
    ("ingressclasses", "ic +example.com/ic +P.example.com/p"),
    ("endpointslices", r"es +IPv4 +80 +10.0.0.1,10.0.0.2,10.0.0.3 \+ 1 more..."),
    ("validatingwebhookconfigurations", "checks +1"),
    ("mutatingwebhookconfigurations", "changes +0"),
    ("mutatingadmissionpolicies", "sidecars +1 +<unset>"),
    ("mutatingadmissionpolicybindings", "sidecars +sidecars +<unset>"),
]
REQUEST = """
apiVersion: certificates.k8s.io/v1
kind: CertificateSigningRequest
metadata: {name: NAME}
spec:
  request: BYTES
  signerName: kubernetes.io/kube-apiserver-client
  usages: [client auth]
  expirationSeconds: 86400
  username: somebody-else
"""
MAP = "{apiVersion: v1, kind: ConfigMap, metadata: {name: NAME, labels: {x: p}}}"


@pytest.fixture(scope="module")
def server(tmp_path_factory):
    with cluster(tmp_path_factory.mktemp("stored")) as found:
        yield found


@pytest.fixture
def space(server, request):
    name = re.sub("[^a-z0-9]+", "-", request.node.name)[-40:].strip("-")
    server.make_namespace(name)
    return server.within(name)


def versions(space):
    kinds = ",".join(name for name, _ in ROWS)
    found = space.json("get", kinds)["items"]
    return {(item["kind"], item["metadata"]["resourceVersion"]) for item in found}


def test_each_kind_has_the_columns_of_a_real_server(space):
    space.apply(STORAGE)
    kinds = ",".join(name for name, _ in ROWS)
    shown = space.kubectl("get", kinds).out
    for name, row in ROWS:
        # In a table of several kinds each name stands behind that of its kind.
        assert re.search(f"^[a-z0-9.]+/{row}", shown, re.MULTILINE), name
    described = space.kubectl("describe", kinds).out
    assert len(re.findall("^Name: ", described, re.MULTILINE)) >= len(ROWS)
    for name, row in draws.part(ROWS, 4):
        assert re.search(f"^{row}", space.kubectl("get", name).out, re.MULTILINE), name
        assert "FIELDS:" in space.kubectl("explain", name).out
    before = versions(space)
    space.apply(STORAGE)
    assert versions(space) == before


def test_ingresses_are_made_by_typed_bodies(space):
    space.kubectl("create", "ingress", "a", "--rule=foo.com/bar=svc:8080,tls=cert", "--class=c")
    space.kubectl("create", "ingress", "b", "--default-backend=svc:80")
    shown = space.kubectl("get", "ing").out
    assert re.search("^a +c +foo.com +80, 443", shown, re.MULTILINE)
    assert re.search(r"^b +<none> +\* +80 ", shown, re.MULTILINE)
    assert "/bar   svc:8080" in space.kubectl("describe", "ingress", "a").out
    path = space.json("get", "ing", "a")["spec"]["rules"][0]["http"]["paths"][0]
    assert path["backend"]["service"] == {"name": "svc", "port": {"number": 8080}}


def test_deployment_gets_an_autoscaler_that_measures_nothing(space):
    space.kubectl("create", "deployment", "d", "--image=i:1")
    space.kubectl("autoscale", "deployment", "d", "--min=1", "--max=3", "--cpu=50%")
    row = "d +Deployment/d +cpu: <unknown>/50% +1 +3 +0"
    assert re.search(f"^{row}", space.kubectl("get", "hpa").out, re.MULTILINE)
    assert "Max replicas:" in space.kubectl("describe", "hpa").out
    listed = space.kubectl("get", "all", "-o", "name").out
    assert "horizontalpodautoscaler.autoscaling/d" in listed
    assert "deployment.apps/d" in listed


def test_other_create_commands_make_what_they_say(space):
    space.kubectl("create", "cronjob", "cj", "--image=i", "--schedule=*/5 * * * *")
    space.kubectl("create", "job", "j", "--from=cronjob/cj")
    space.kubectl("create", "pdb", "b", "--selector=a=b", "--min-available=1")
    space.kubectl("create", "quota", "q", "--hard=configmaps=50")
    space.kubectl("create", "role", "r", "--verb=get", "--resource=pods")
    space.kubectl("create", "rolebinding", "rb", "--role=r", "--serviceaccount=default:s")
    space.kubectl("create", "service", "nodeport", "np", "--tcp=80:8080")
    wanted = ["cronjob/cj", "job/j", "pdb/b", "quota/q", "role/r", "rolebinding/rb", "service/np"]
    assert len(space.kubectl("get", *wanted, "-o", "name").out.split()) == len(wanted)


def test_prune_without_an_allow_list_finds_all_its_kinds(space):
    space.apply(MAP.replace("NAME", "one"))
    said = space.apply(MAP.replace("NAME", "two"), "--prune", "-l", "x=p")
    assert "configmap/one pruned" in said.out
    assert space.kubectl("get", "cm", "-l", "x=p", "-o", "name").out == "configmap/two\n"


def signing_request(name):
    text = base64.b64encode(b"-----BEGIN CERTIFICATE REQUEST-----").decode()
    return REQUEST.replace("NAME", name).replace("BYTES", text)


@pytest.mark.parametrize(("verb", "state"), [("approve", "Approved"), ("deny", "Denied")])
def test_signing_request_waits_for_a_verdict_and_no_signer_acts(server, verb, state):
    server.create(signing_request(verb))
    row = f"^{verb} .* kubernetes.io/kube-apiserver-client +[^ ]+ +24h +"
    assert re.search(row + "Pending", server.kubectl("get", "csr").out, re.MULTILINE)
    server.kubectl("certificate", verb, verb)
    assert re.search(row + state, server.kubectl("get", "csr").out, re.MULTILINE)
    found = server.json("get", "csr", verb)
    assert found["spec"]["username"] != "somebody-else"
    assert "certificate" not in found["status"]


def test_verdict_changes_nothing_but_the_conditions(server):
    server.create(signing_request("kept"))
    path = "/apis/certificates.k8s.io/v1/certificatesigningrequests/kept/approval"
    change = '{"spec":{"signerName":"x/y"},"status":{"certificate":"eA=="}}'
    server.kubectl("patch", "csr", "kept", "--subresource=approval", "--type=merge", "-p", change)
    found = server.kubectl("get", "--raw", path).out
    assert "kube-apiserver-client" in found
    assert '"certificate"' not in found
