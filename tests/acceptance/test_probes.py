"""What strangers send to an open port: each probe is refused, and the server is unharmed.

Raw sockets, because no client would send these. After every probe an ordinary request is answered.
"""

import socket

import pytest

from tests import draws
from tests.acceptance.server_process import server_process

pytestmark = [pytest.mark.database, pytest.mark.slow]

GARBAGE = {
    "http2-preface": b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\x00\x00\x00\x04\x00\x00\x00\x00\x00",
    "tls-hello": b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03" + b"\x00" * 64 + b"\r\n\r\n",
    "no-http": b"\x00\xff\xfe" * 500 + b"\r\n\r\n",
    "no-version": b"GET /healthz\r\n\r\n",
    "spaces": b"GET  /healthz   HTTP/1.1\r\n\r\n",
    "two-lengths": b"POST /api/v1/namespaces HTTP/1.1\r\nHost: x\r\nContent-Length: 5\r\n"
    b"Content-Length: 6\r\n\r\nabcdef",
    "length-and-chunks": b"POST /api/v1/namespaces HTTP/1.1\r\nHost: x\r\nContent-Length: 4\r\n"
    b"Transfer-Encoding: chunked\r\n\r\n0\r\n\r\nGET /smuggled HTTP/1.1\r\nHost: x\r\n\r\n",
    "negative-length": b"POST /api/v1/namespaces HTTP/1.1\r\nHost: x\r\nContent-Length: -1\r\n\r\n",
    "endless-length": b"POST /api/v1/namespaces HTTP/1.1\r\nHost: x\r\nContent-Length: "
    + b"9" * 40
    + b"\r\n\r\n",
    "bad-chunk": b"POST /api/v1/namespaces HTTP/1.1\r\nHost: x\r\n"
    b"Transfer-Encoding: chunked\r\n\r\nzz\r\nabc\r\n0\r\n\r\n",
    "folded-header": b"GET /healthz HTTP/1.1\r\nHost: x\r\nX: a\r\n b\r\n\r\n",
    "header-without-colon": b"GET /healthz HTTP/1.1\r\nHost x\r\n\r\n",
    "null-in-header": b"GET /healthz HTTP/1.1\r\nHost: x\r\nX: a\x00b\r\n\r\n",
    "many-headers": b"GET /healthz HTTP/1.1\r\nHost: x\r\n" + b"X: y\r\n" * 20_000 + b"\r\n",
    "long-line": b"GET /" + b"a" * 200_000 + b" HTTP/1.1\r\nHost: x\r\n\r\n",
    "websocket-without-key": b"GET /api/v1/namespaces/default/pods/p/exec HTTP/1.1\r\nHost: x\r\n"
    b"Connection: Upgrade\r\nUpgrade: websocket\r\n\r\n\x81\x85\x00\x00",
    "spdy": b"POST /api/v1/namespaces/default/pods/p/exec?command=ls HTTP/1.1\r\nHost: x\r\n"
    b"Connection: Upgrade\r\nUpgrade: SPDY/3.1\r\nContent-Length: 0\r\n\r\n\x80\x03\x00\x01",
    "http2-upgrade": b"GET /healthz HTTP/1.1\r\nHost: x\r\nConnection: Upgrade, HTTP2-Settings\r\n"
    b"Upgrade: h2c\r\nHTTP2-Settings: AAMAAABkAARAAAAAAAIAAAAA\r\n\r\n",
    "connect": b"CONNECT example.com:443 HTTP/1.1\r\nHost: example.com\r\n\r\n",
    "trace": b"TRACE /api HTTP/1.1\r\nHost: x\r\nCookie: a=b\r\n\r\n",
    "absolute-form": b"GET http://example.com/api HTTP/1.1\r\nHost: example.com\r\n\r\n",
}
MAY_SERVE = {
    "http2-upgrade",
    "no-version",
    "spaces",
    "folded-header",
    "many-headers",
    "length-and-chunks",
}
"""Probes whose request as such is harmless: answered or refused, both are well."""
PATHS = [
    "/api/v1/namespaces/../../../etc/passwd",
    "/api/v1/namespaces/%2e%2e/%2e%2e/pods",
    "/api/v1/namespaces/default%2Fpods",
    "/api/v1/namespaces/default/pods/..%2f..%2fnodes",
    "/api/v1/namespaces/default/pods/a%00b",
    "/api/v1//namespaces",
    "/apis/resource.k8s.io/v1/../../../metrics",
    "/h/../api/v1",
    "/h/default@9999999999999999999999/api/v1/pods",
    "/h/default@-1/api/v1/pods",
    "/h/%ff%fe/api/v1/pods",
    "/redra/v1/histories/..%2f..%2f",
    "/ui/../../pyproject.toml",
    "/%c0%ae%c0%ae/",
    "/.git/config",
]
CONNECTIONS = 400


@pytest.fixture(scope="module")
def server(tmp_path_factory):
    with server_process(tmp_path_factory.mktemp("probes")) as found:
        yield found


def connected(server):
    host, _, port = server.url.removeprefix("http://").partition(":")
    return socket.create_connection((host, int(port)), timeout=20)


def answer_to(server, raw):
    """The first line of what comes back; empty when the connection is just closed."""
    with connected(server) as sock:
        try:
            sock.sendall(raw)
            sock.shutdown(socket.SHUT_WR)
            text = b""
            while b"\r\n" not in text and (part := sock.recv(4096)):
                text += part
        except OSError:
            return b""
    return text.partition(b"\r\n")[0]


def check_unharmed(server):
    with server.client() as client:
        assert client.get("/readyz").text == "ok"


@draws.in_turn("rows of refusals")
@pytest.mark.parametrize("name", sorted(GARBAGE))
def test_probe_is_refused_and_the_server_is_unharmed(server, name):
    line = answer_to(server, GARBAGE[name])
    assert not line.startswith(b"HTTP/1.1 5"), line
    assert not line.startswith(b"HTTP/1.1 101"), line
    if name not in MAY_SERVE:
        assert not line.startswith(b"HTTP/1.1 2"), line
    check_unharmed(server)


@pytest.mark.parametrize("path", PATHS)
def test_path_trick_leads_nowhere(server, path):
    request = f"GET {path} HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n"
    line = answer_to(server, request.encode("latin-1"))
    assert line.split(b" ")[1] in (b"400", b"403", b"404"), line
    check_unharmed(server)


def test_smuggled_request_is_not_answered(server):
    with connected(server) as sock:
        sock.sendall(GARBAGE["length-and-chunks"])
        sock.shutdown(socket.SHUT_WR)
        text = b""
        while part := sock.recv(65536):
            text += part
    assert text.count(b"HTTP/1.1 ") == 1, text
    check_unharmed(server)


def test_many_idle_connections_leave_room_for_work(server):
    sockets = [connected(server) for _ in range(CONNECTIONS)]
    try:
        for sock in sockets[::2]:
            sock.sendall(b"GET /api/v1/pods HTTP/1.1\r\nHost: x\r\nX-Slow: ")
        check_unharmed(server)
    finally:
        for sock in sockets:
            sock.close()
    check_unharmed(server)


def test_body_that_trickles_in_holds_nobody_up(server):
    path = "/api/v1/namespaces/default/configmaps"
    with connected(server) as sock, server.client() as client:
        head = f"POST {path} HTTP/1.1\r\nHost: x\r\nContent-Length: 100000\r\n\r\n{{"
        sock.sendall(head.encode())
        for number in range(20):
            made = client.post(path, json={"metadata": {"name": f"t{number}"}})
            assert made.status_code == 201
    check_unharmed(server)
