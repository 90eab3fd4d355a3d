"""Tokens of service accounts outlive the real process that made them, by the key in its folder."""

import httpx

from tests import draws
from tests.acceptance.server_process import ServerProcess
from tests.patience import PATIENCE_SECONDS

ACCOUNTS = "/api/v1/namespaces/default/serviceaccounts"
REVIEWS = "/apis/authentication.k8s.io/v1/tokenreviews"


def reviewed(server, token):
    review = {"spec": {"token": token}}
    return httpx.post(f"{server.url}{REVIEWS}", json=review, timeout=PATIENCE_SECONDS).json()[
        "status"
    ]


@draws.in_turn(
    "ends",
    each_day="api/test_service_tokens.py::"
    "test_token_is_known_after_a_restart_and_to_who_has_the_same_key",
)
def test_token_is_known_after_a_restart_until_its_key_is_removed(tmp_path):
    server = ServerProcess(tmp_path)
    try:
        server.start()
        body = {"metadata": {"name": "driver"}}
        httpx.post(
            f"{server.url}{ACCOUNTS}", json=body, timeout=PATIENCE_SECONDS
        ).raise_for_status()
        made = httpx.post(
            f"{server.url}{ACCOUNTS}/driver/token", json={"spec": {}}, timeout=PATIENCE_SECONDS
        )
        token = made.json()["status"]["token"]
        key = server.data / "service-accounts.key"
        assert key.stat().st_mode & 0o777 == 0o600
        server.restart()
        found = reviewed(server, token)
        assert found["authenticated"], found
        assert found["user"]["username"] == "system:serviceaccount:default:driver"
        server.end()
        key.unlink()
        server.start()
        # Upstream leaves the field out where it is false.
        assert "authenticated" not in reviewed(server, token)
    finally:
        server.end()
