"""`redra up --tls` and the real kubectl: certificates, tokens, roles, impersonation."""

import json
import os
import re
import signal
import socket
import ssl
import subprocess
import sys
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path

import pytest
import yaml

from tests import draws
from tests.command_line import redra
from tests.prepared_data import prepare
from tests.redra_process import RedraProcess

ROOT = Path(__file__).resolve().parents[2]
KUBECTL = Path(sys.executable).parent / "kubectl"

pytestmark = [pytest.mark.database, pytest.mark.slow]

READER = {
    "apiVersion": "v1",
    "kind": "List",
    "items": [
        {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "lab"}},
        {
            "apiVersion": "rbac.authorization.k8s.io/v1",
            "kind": "Role",
            "metadata": {"name": "reader", "namespace": "lab"},
            "rules": [{"apiGroups": [""], "resources": ["configmaps"], "verbs": ["get", "list"]}],
        },
        {
            "apiVersion": "rbac.authorization.k8s.io/v1",
            "kind": "RoleBinding",
            "metadata": {"name": "reader", "namespace": "lab"},
            "roleRef": {
                "apiGroup": "rbac.authorization.k8s.io",
                "kind": "Role",
                "name": "reader",
            },
            "subjects": [
                {"kind": "Group", "name": "team", "apiGroup": "rbac.authorization.k8s.io"}
            ],
        },
    ],
}


@dataclass
class Cluster:
    """A running server and the real kubectl."""

    data: Path
    url: str
    told: str = ""

    def redra(self, *arguments: str) -> subprocess.CompletedProcess[str]:
        code, out, error = redra(*arguments, data=self.data)
        return subprocess.CompletedProcess(arguments, code, out, error)

    def kubectl(self, *arguments: str, stdin: str = "") -> subprocess.CompletedProcess[str]:
        """As the administrator, by client certificate."""
        return self._kubectl("--kubeconfig", str(self.data / "kubeconfig"), *arguments, stdin=stdin)

    def as_token(self, token: str, *arguments: str) -> subprocess.CompletedProcess[str]:
        """By token, with a configuration that knows nothing else."""
        place = ["--server", self.url, "--token", token]
        authority = ["--certificate-authority", str(self.data / "pki" / "ca.crt")]
        return self._kubectl("--kubeconfig", os.devnull, *place, *authority, *arguments)

    def _kubectl(self, *arguments: str, stdin: str = "") -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [KUBECTL, *arguments, "--cache-dir", str(self.data / "cache")],
            input=stdin,
            capture_output=True,
            text=True,
            timeout=60,
            env=os.environ | {"HOME": str(self.data)},
        )


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    folder = tmp_path_factory.mktemp("tls")
    tokens = folder / "tokens.csv"
    tokens.write_text('ann-secret,ann,7,"team,other"\nbob-secret,bob,8\n')
    with running(folder / "data", "0.0.0.0:0", "--tls", REDRA_TOKENS_FILE=str(tokens)) as found:
        applied = found.kubectl("apply", "-f", "-", stdin=json.dumps(READER))
        assert applied.returncode == 0, applied.stderr
        yield found


class running:  # noqa: N801 - reads as what it is: `with running(...)`
    """A server process; ends with SIGTERM and must then end well."""

    def __init__(self, data: Path, listen: str, *arguments: str, **environment: str) -> None:
        self.data = data
        prepare(data)
        self.cluster = Cluster(data=data, url="")
        self.process = RedraProcess(
            ["up", "--listen", listen, *arguments, "--data", data],
            environment={"REDRA_PROJECTOR": "off"} | environment,
        )

    def __enter__(self) -> Cluster:
        line = self.process.stdout.readline()
        assert line.startswith("redra serves at "), line
        self.cluster.url = line.split()[-1]
        return self.cluster

    def __exit__(self, *_: object) -> None:
        self.process.send_signal(signal.SIGTERM)
        _, told = self.process.communicate(timeout=30)
        self.cluster.told = told or ""
        assert self.process.returncode == 0


@draws.in_turn("ways")
def test_every_secret_is_readable_by_its_owner_alone(cluster: Cluster) -> None:
    files = [cluster.data / "kubeconfig", *(cluster.data / "pki").iterdir()]
    assert len(files) == 7
    assert {oct(file.stat().st_mode & 0o777) for file in files} == {"0o600"}
    assert oct((cluster.data / "pki").stat().st_mode & 0o777) == "0o700"


def test_client_certificate_names_the_administrator(cluster: Cluster) -> None:
    done = cluster.kubectl("auth", "whoami", "-o", "json")
    assert json.loads(done.stdout)["status"]["userInfo"] == {
        "username": "redra-admin",
        "groups": ["system:masters", "system:authenticated"],
    }
    assert cluster.kubectl("auth", "can-i", "*", "*").stdout == "yes\n"


def test_token_names_its_user(cluster: Cluster) -> None:
    done = cluster.as_token("ann-secret", "auth", "whoami", "-o", "json")
    assert json.loads(done.stdout)["status"]["userInfo"] == {
        "username": "ann",
        "uid": "7",
        "groups": ["team", "other", "system:authenticated"],
    }


def test_unknown_token_is_told_to_log_in(cluster: Cluster) -> None:
    done = cluster.as_token("guessed", "get", "pods")
    assert done.returncode == 1
    assert "You must be logged in to the server" in done.stderr


def test_nobody_gets_in_without_credentials(cluster: Cluster) -> None:
    context = ssl.create_default_context(cafile=str(cluster.data / "pki" / "ca.crt"))
    with pytest.raises(urllib.error.HTTPError) as refused:
        urllib.request.urlopen(f"{cluster.url}/api/v1/pods", context=context)
    with refused.value as answer:
        assert answer.code == 401
        assert json.load(answer)["reason"] == "Unauthorized"


def test_certificate_of_another_authority_is_refused(cluster: Cluster, tmp_path: Path) -> None:
    from app.adapters.certificates import CertificateFolder
    from app.adapters.clock import SystemClock

    other = CertificateFolder(tmp_path / "pki", now=SystemClock().now())
    forged = other.client("admin", user="redra-admin", groups=("system:masters",))
    config = yaml.safe_load((cluster.data / "kubeconfig").read_text())
    config["users"][0]["user"] = {
        "client-certificate": str(forged.certificate),
        "client-key": str(forged.key),
    }
    place = tmp_path / "kubeconfig"
    place.write_text(yaml.safe_dump(config))
    done = cluster._kubectl("--kubeconfig", str(place), "get", "namespaces")
    assert (done.returncode, done.stdout) == (1, "")
    # The server hangs up; whether the client was still writing or already reading is chance.
    assert re.search("Unable to connect to the server|connection reset|EOF", done.stderr)


def test_server_is_not_trusted_without_its_authority(cluster: Cluster) -> None:
    with pytest.raises(urllib.error.URLError, match="CERTIFICATE_VERIFY_FAILED"):
        urllib.request.urlopen(f"{cluster.url}/readyz", context=ssl.create_default_context())


@pytest.mark.parametrize("host", ["localhost", "127.0.0.1"])
def test_server_certificate_is_for_the_names_it_is_reached_by(cluster: Cluster, host: str) -> None:
    context = ssl.create_default_context(cafile=str(cluster.data / "pki" / "ca.crt"))
    url = f"https://{host}:{cluster.url.rpartition(':')[2]}/readyz"
    with urllib.request.urlopen(url, context=context) as answer:
        assert answer.status == 200


def test_connections_that_never_shake_hands_leave_the_server_well(cluster: Cluster) -> None:
    port = int(cluster.url.rpartition(":")[2])
    with ExitStack() as stack:
        for _ in range(500):
            stack.enter_context(socket.create_connection(("127.0.0.1", port)))
        assert cluster.kubectl("get", "namespaces").returncode == 0


def test_role_lets_a_group_read_and_nothing_else(cluster: Cluster) -> None:
    listed = cluster.as_token("ann-secret", "get", "configmaps", "-n", "lab")
    assert listed.returncode == 0, listed.stderr
    refused = cluster.as_token("ann-secret", "create", "configmap", "m", "-n", "lab")
    assert refused.stderr.strip().endswith(
        'configmaps is forbidden: User "ann" cannot create resource "configmaps" in API group "" '
        'in the namespace "lab"'
    )
    other = cluster.as_token("bob-secret", "get", "configmaps", "-n", "lab")
    assert "(Forbidden)" in other.stderr


def test_can_i_tells_the_truth(cluster: Cluster) -> None:
    def can(verb: str, *more: str) -> str:
        return cluster.as_token("ann-secret", "auth", "can-i", verb, *more, "-n", "lab").stdout

    assert can("list", "configmaps") == "yes\n"
    assert can("delete", "configmaps").startswith("no")
    assert can("get", "/metrics").startswith("no")
    rows = [line.split() for line in can("--list").splitlines()]
    assert ["configmaps", "[]", "[]", "[get", "list]"] in rows


def test_administrator_acts_as_somebody_else_and_others_do_not(cluster: Cluster) -> None:
    done = cluster.kubectl("auth", "whoami", "-o", "json", "--as", "joe", "--as-group", "team")
    assert json.loads(done.stdout)["status"]["userInfo"]["groups"] == [
        "team",
        "system:authenticated",
    ]
    assert cluster.kubectl("get", "cm", "-n", "lab", "--as", "joe").returncode == 1
    allowed = cluster.kubectl("get", "cm", "-n", "lab", "--as", "joe", "--as-group", "team")
    assert allowed.returncode == 0, allowed.stderr
    refused = cluster.as_token("ann-secret", "get", "cm", "-n", "lab", "--as", "joe")
    assert 'cannot impersonate resource "users"' in refused.stderr


def test_service_account_acts_with_a_token_that_it_was_given(cluster: Cluster) -> None:
    assert cluster.kubectl("create", "serviceaccount", "driver").returncode == 0
    created = cluster.kubectl("create", "token", "driver", "--duration=10m")
    assert created.returncode == 0, created.stderr
    token = created.stdout.strip()
    seen = cluster.as_token(token, "auth", "whoami", "-o", "jsonpath={.status.userInfo.username}")
    assert seen.stdout == "system:serviceaccount:default:driver", seen.stderr
    refused = cluster.as_token(token, "get", "configmaps")
    assert 'User "system:serviceaccount:default:driver" cannot list' in refused.stderr
    changed = cluster.as_token(token[:-2] + "xx", "get", "configmaps")
    assert "You must be logged in to the server" in changed.stderr


def test_kubeconfig_has_a_context_for_each_history_and_moment(
    cluster: Cluster, tmp_path: Path
) -> None:
    printed = cluster.redra("kubeconfig", "--history", "default", "--at", "1")
    assert printed.returncode == 0, printed.stderr
    place = tmp_path / "kubeconfig"
    place.write_text(printed.stdout)
    seen = cluster._kubectl("--kubeconfig", str(place), "get", "namespaces", "-o", "name")
    assert seen.stdout == "namespace/default\n", seen.stderr
    written = cluster._kubectl("--kubeconfig", str(place), "create", "namespace", "new")
    assert "cannot be changed" in written.stderr


def test_kubeconfig_for_another_address_names_it(cluster: Cluster) -> None:
    printed = cluster.redra("kubeconfig", "--server", "https://lab.example:443")
    (found,) = yaml.safe_load(printed.stdout)["clusters"]
    assert found["cluster"]["server"] == "https://lab.example:443"


def test_kubeconfig_needs_a_server_and_a_sensible_moment(tmp_path: Path, cluster: Cluster) -> None:
    nowhere = Cluster(data=tmp_path, url="").redra("kubeconfig")
    assert (nowhere.returncode, "redra up" in nowhere.stderr) == (2, True)
    odd = cluster.redra("kubeconfig", "--at", "yesterday")
    assert (odd.returncode, "'yesterday' is neither" in odd.stderr) == (2, True)


def test_kubeconfig_names_no_history_that_is_not_there(cluster: Cluster, tmp_path: Path) -> None:
    for words in (
        ("--history", "nope"),
        ("--history", "default", "--history", "nope", "--at", "1"),
    ):
        refused = cluster.redra("kubeconfig", *words)
        assert (refused.returncode, refused.stdout) == (2, "")
        assert refused.stderr == "redra: there is no history 'nope'; choose from default\n"
    # A copy of the file on another machine has nobody to ask.
    place = tmp_path / "elsewhere"
    place.mkdir()
    (place / "kubeconfig").write_bytes((cluster.data / "kubeconfig").read_bytes())
    printed = Cluster(data=place, url="").redra("kubeconfig", "--history", "nope")
    assert yaml.safe_load(printed.stdout)["current-context"] == "nope"


@draws.in_turn("ways")
def test_certificates_last_over_a_restart(tmp_path: Path) -> None:
    data = tmp_path / "data"
    with running(data, "127.0.0.1:0", "--tls"):
        first = {file.name: file.read_bytes() for file in (data / "pki").iterdir()}
    with running(data, "127.0.0.1:0", "--tls") as again:
        assert {file.name: file.read_bytes() for file in (data / "pki").iterdir()} == first
        assert again.kubectl("get", "namespaces").returncode == 0


@draws.in_turn("ways")
def test_other_addresses_than_loopback_need_tls(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "app.cli", "up", "--listen", "0.0.0.0:0"]
    done = subprocess.run(
        [*command, "--data", str(tmp_path)], cwd=ROOT, capture_output=True, text=True, timeout=60
    )
    assert done.returncode == 2
    assert "--tls" in done.stderr


@draws.in_turn("ways")
def test_policy_file_rules_without_roles(tmp_path: Path) -> None:
    tokens = tmp_path / "tokens.csv"
    tokens.write_text("ann-secret,ann,7,team\n")
    policy = tmp_path / "policy.yaml"
    policy.write_text(
        "rules:\n- groups: [team]\n  namespaces: [lab]\n  verbs: [list]\n"
        '  apiGroups: [""]\n  resources: [pods]\n'
    )
    options = {"REDRA_TOKENS_FILE": str(tokens)}
    arguments = ("--tls", "--policy", str(policy))
    with running(tmp_path / "data", "127.0.0.1:0", *arguments, **options) as cluster:
        assert cluster.as_token("ann-secret", "get", "pods", "-n", "lab").returncode == 0
        assert "(Forbidden)" in cluster.as_token("ann-secret", "get", "pods").stderr
        assert cluster.kubectl("get", "pods").returncode == 0


@draws.in_turn("ways")
def test_rules_without_tls_are_told_to_be_of_no_use_to_kubectl(tmp_path: Path) -> None:
    with running(tmp_path / "data", "127.0.0.1:0", "--authorization", "rbac") as cluster:
        assert "(Forbidden)" in cluster.kubectl("get", "pods").stderr
        (user,) = yaml.safe_load((cluster.data / "kubeconfig").read_text())["users"]
        token = user["user"]["token"]
        assert len(token) > 40
        asked = urllib.request.Request(
            f"{cluster.url}/api/v1/pods", headers={"authorization": f"Bearer {token}"}
        )
        with urllib.request.urlopen(asked) as answer:
            assert answer.status == 200
    assert "kubectl sends no credentials without TLS" in cluster.told
