"""kopf's admission: an operator registers its own webhooks, and the server calls them."""

import socket
import subprocess
import sys
import textwrap

import pytest

from app.adapters.certificates import CertificateFolder
from app.adapters.clock import SystemClock
from tests import draws
from tests.acceptance.kubectl_cluster import cluster

pytestmark = [pytest.mark.database, pytest.mark.slow, draws.modules_in_turn("kubectl")]

OPERATOR = """
    import kopf

    @kopf.on.startup()
    def configure(settings, **_):
        settings.admission.server = kopf.WebhookServer(
            addr="127.0.0.1", host="127.0.0.1", port=PORT,
            certfile="CERTIFICATE", pkeyfile="KEY", cafile="AUTHORITY",
        )
        settings.admission.managed = "auto.kopf.dev"

    @kopf.on.validate("", "v1", "configmaps", operations=["CREATE", "UPDATE"])
    def colors_only(spec, body, warnings, **_):
        color = body.get("data", {}).get("color")
        if color == "mauve":
            raise kopf.AdmissionError("mauve is no color", code=422)
        if color is None:
            warnings.append("it has no color")

    @kopf.on.mutate("", "v1", "configmaps", operation="CREATE")
    def marked(patch, **_):
        patch.metadata.labels["marked"] = "by-kopf"
"""


@pytest.fixture(scope="module")
def certificate(tmp_path_factory):
    """A leaf of an authority of these tests, for the operator."""
    made = CertificateFolder(tmp_path_factory.mktemp("pki"), now=SystemClock().now())
    return made.authority, made.server(["127.0.0.1"])


@pytest.fixture(scope="module")
def server(tmp_path_factory, certificate):
    authority, leaf = certificate
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    folder = tmp_path_factory.mktemp("admission")
    names = ("colors_only", "marked")
    allowed = ",".join(f"https://127.0.0.1:{port}/{name}" for name in names)
    with cluster(folder, REDRA_WEBHOOKS_ALLOWED=allowed) as found:
        script = folder / "operator.py"
        text = textwrap.dedent(OPERATOR).replace("PORT", str(port))
        text = text.replace("CERTIFICATE", str(leaf.certificate)).replace("KEY", str(leaf.key))
        script.write_text(text.replace("AUTHORITY", str(authority)))
        with (folder / "kopf.log").open("w") as log:
            operator = subprocess.Popen(
                [sys.executable, "-m", "kopf", "run", str(script), "-A", "--standalone"],
                env={"KUBECONFIG": str(found.kubeconfig), "HOME": str(folder), "PATH": "/usr/bin"},
                stdout=log, stderr=log,
            )  # fmt: skip
        try:
            yield found
        finally:
            operator.terminate()
            operator.wait(timeout=20)


def test_operator_changes_refuses_and_warns(server):
    for kind in ("mutatingwebhookconfiguration", "validatingwebhookconfiguration"):
        # kopf makes the configuration empty and fills it once its server has an address.
        server.kubectl("wait", "--for=create", f"{kind}/auto.kopf.dev", "--timeout=50s")
        server.kubectl(
            "wait", "--for=jsonpath={.webhooks[0].clientConfig.url}", f"{kind}/auto.kopf.dev",
            "--timeout=50s",
        )  # fmt: skip
    made = server.kubectl("create", "configmap", "plain")
    assert "Warning: it has no color" in made.err
    assert server.json("get", "cm", "plain")["metadata"]["labels"] == {"marked": "by-kopf"}
    refused = server.kubectl("create", "configmap", "bad", "--from-literal=color=mauve", code=1)
    assert "mauve is no color" in refused.err
    assert "not found" in server.kubectl("get", "cm", "bad", code=1).err
    quiet = server.kubectl("create", "configmap", "good", "--from-literal=color=red")
    assert quiet.err == ""
