"""kubectl, a server whose settings allow webhooks, and a webhook of another process's making."""

import base64
import json
import ssl
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest

from app.adapters.certificates import CertificateFolder
from app.adapters.clock import SystemClock
from tests import draws
from tests.acceptance.kubectl_cluster import cluster

pytestmark = [pytest.mark.database, pytest.mark.slow, draws.modules_in_turn("kubectl")]

RULE = '{apiGroups: [""], apiVersions: [v1], operations: [CREATE], resources: [configmaps]}'
CONFIGURATIONS = """
apiVersion: admissionregistration.k8s.io/v1
kind: MutatingWebhookConfiguration
metadata: {name: labels}
webhooks:
- name: labels.example.com
  admissionReviewVersions: [v1]
  clientConfig: {caBundle: AUTHORITY, service: {namespace: tools, name: labels, path: /mutate}}
  rules: [RULE]
  sideEffects: None
---
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingWebhookConfiguration
metadata: {name: names}
webhooks:
- name: names.example.com
  admissionReviewVersions: [v1]
  clientConfig: {caBundle: AUTHORITY, service: {namespace: tools, name: labels, path: /validate}}
  rules: [RULE]
  namespaceSelector: {matchLabels: {kubernetes.io/metadata.name: default}}
  sideEffects: None
---
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingWebhookConfiguration
metadata: {name: nowhere}
webhooks:
- name: nowhere.example.com
  admissionReviewVersions: [v1]
  clientConfig: {service: {namespace: tools, name: nowhere}}
  failurePolicy: Fail
  rules: [RULE]
  sideEffects: None
"""
KINDS = "mutatingwebhookconfigurations,validatingwebhookconfigurations"
LABEL = [{"op": "add", "path": "/metadata/labels", "value": {"by": "webhook"}}]


class Webhook(BaseHTTPRequestHandler):
    """Labels what is made, and takes no name that is too short."""

    def do_POST(self):
        asked = json.loads(self.rfile.read(int(self.headers["Content-Length"])))["request"]
        response = {"uid": asked["uid"], "allowed": True}
        if self.path.startswith("/mutate"):
            patch = base64.b64encode(json.dumps(LABEL).encode()).decode()
            response |= {"patch": patch, "patchType": "JSONPatch"}
        elif len(asked["name"]) < 3:
            status = {"message": "the name is too short", "code": 403, "reason": "Forbidden"}
            response |= {"allowed": False, "status": status}
        else:
            response["warnings"] = ["what a name"]
        review = {"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview"}
        body = json.dumps(review | {"response": response}).encode()
        self.send_response(200)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_):
        """Say nothing."""


@pytest.fixture(scope="module")
def webhook(tmp_path_factory):
    """The port of a running webhook, and its authority."""
    made = CertificateFolder(tmp_path_factory.mktemp("pki"), now=SystemClock().now())
    leaf = made.server(("labels.tools.svc",))
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    context.load_cert_chain(leaf.certificate, leaf.key)
    server = ThreadingHTTPServer(("127.0.0.1", 0), Webhook)
    server.socket = context.wrap_socket(server.socket, server_side=True)
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    yield server.server_address[1], base64.b64encode(made.authority.read_bytes()).decode()
    server.shutdown()
    server.server_close()
    thread.join()


@pytest.fixture(scope="module")
def server(tmp_path_factory, webhook):
    allowed = f"tools/labels=https://127.0.0.1:{webhook[0]}"
    folder = tmp_path_factory.mktemp("webhooks")
    with cluster(folder, REDRA_WEBHOOKS_ALLOWED=allowed) as found:
        yield found


def versions(server):
    found = server.json("get", KINDS)["items"]
    return {item["metadata"]["name"]: item["metadata"]["resourceVersion"] for item in found}


def test_webhooks_change_refuse_and_warn_until_they_are_deleted(server, webhook):
    tree = CONFIGURATIONS.replace("AUTHORITY", webhook[1]).replace("RULE", RULE)
    said = server.apply(tree)
    assert said.err.count("Warning: webhooks[0].clientConfig") == 1
    made = server.kubectl("create", "configmap", "long", "-o", "json")
    assert json.loads(made.out)["metadata"]["labels"] == {"by": "webhook"}
    assert made.err == "Warning: what a name\n"
    refused = server.kubectl("create", "configmap", "x", code=1)
    assert refused.err == (
        'error: failed to create configmap: admission webhook "names.example.com" denied the '
        "request: the name is too short\n"
    )
    dry = server.kubectl("create", "configmap", "dry", "--dry-run=server", "-o", "json")
    assert json.loads(dry.out)["metadata"]["labels"] == {"by": "webhook"}
    server.kubectl("get", "configmap", "dry", code=1)
    server.kubectl("create", "configmap", "x", namespace="kube-system")
    before = versions(server)
    # kubectl sends the rules again, because they lack the default of their scope.
    assert "configured" in server.apply(tree).out
    assert versions(server) == before
    described = server.kubectl("describe", "validatingwebhookconfiguration", "names").out
    assert "Failure Policy:  Fail" in described
    explained = server.kubectl("explain", "mutatingwebhookconfiguration.webhooks.sideEffects").out
    assert "FIELD: sideEffects <string>" in explained
    server.kubectl("delete", KINDS, "--all")
    server.kubectl("create", "configmap", "x")
    assert "labels" not in server.json("get", "configmap", "x")["metadata"]
