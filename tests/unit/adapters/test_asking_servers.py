"""Who gets credentials, which server of a data folder is believed, what counts as an answer."""

import contextlib
import http.server
import json
import os
import ssl
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest
import yaml

from app.adapters.certificates import CertificateFolder
from app.adapters.clock import SystemClock
from app.adapters.running import notice
from app.bootstrap.asking import servers
from app.domain.errors import InputError
from app.settings import read
from tests.command_line import redra
from tests.together import check_each

HISTORIES = b'{"items": []}'
EVENT = b'{"revision": 1}\n'


class FakeServer:
    """An HTTP server that gives one answer to everything and keeps what it was sent."""

    def __init__(self, status: int, kind: str, parts: list[bytes], *, is_whole: bool) -> None:
        self.seen: list[dict[str, str]] = []
        seen = self.seen

        class Handler(http.server.BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_GET(self) -> None:
                seen.append({name.lower(): value for name, value in self.headers.items()})
                self.send_response(status)
                self.send_header("content-type", kind)
                self.send_header("transfer-encoding", "chunked")
                self.end_headers()
                for part in parts:
                    self.wfile.write(b"%x\r\n%s\r\n" % (len(part), part))
                if is_whole:
                    self.wfile.write(b"0\r\n\r\n")
                self.close_connection = True

            def do_POST(self) -> None:
                self.rfile.read(int(self.headers["content-length"]))
                self.do_GET()

            def log_message(self, *_: object) -> None:
                """Nothing."""

        self.server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self.server.server_address[1]}"


@contextlib.contextmanager
def answering(
    *parts: bytes, status: int = 200, kind: str = "application/json", is_whole: bool = True
) -> Iterator[FakeServer]:
    """A fake server that runs."""
    fake = FakeServer(status, kind, list(parts), is_whole=is_whole)
    thread = threading.Thread(target=fake.server.serve_forever, args=(0.01,), daemon=True)
    thread.start()
    try:
        yield fake
    finally:
        fake.server.shutdown()
        fake.server.server_close()
        thread.join()


def kubeconfig(path: Path, url: str, **cluster: str) -> Path:
    """A kubeconfig with a token for a server."""
    tree = {
        "apiVersion": "v1",
        "kind": "Config",
        "current-context": "c",
        "clusters": [{"name": "c", "cluster": {"server": url, **cluster}}],
        "users": [{"name": "c", "user": {"token": "secret-of-c"}}],
        "contexts": [{"name": "c", "context": {"cluster": "c", "user": "c"}}],
    }
    path.write_text(yaml.safe_dump(tree))
    path.chmod(0o600)
    return path


def opening(seconds: object, kind: str = "histories") -> bytes:
    """The answer of a server that opens a history."""
    details = {"name": "prod", "kind": kind, "retryAfterSeconds": seconds}
    text = "the history 'prod' is being opened: 3 of 9 events are read"
    return json.dumps({"kind": "Status", "message": text, "details": details}).encode()


def test_command_waits_for_a_server_that_opens_the_history(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("REDRA_SERVER_ANSWER_SECONDS", "3")
    with answering(opening(0), status=503) as fake:
        code, _, error = redra("why", "pod/p", "--history", "prod", "--server", fake.url)
    assert code != 0
    assert "is being opened: 3 of 9 events are read" in error
    assert len(fake.seen) == 4, "it is asked again as often as its time allows"


@pytest.mark.parametrize(
    "body",
    [opening(61), opening(-1), opening("1"), opening(None), opening(0, "pods"), b"[]", b"{"],
)
def test_command_does_not_wait_for_a_server_that_says_something_else(body: bytes) -> None:
    with answering(body, status=503) as fake:
        assert redra("why", "pod/p", "--history", "prod", "--server", fake.url)[0] != 0
    assert len(fake.seen) == 1


def test_credentials_of_a_context_are_not_sent_to_another_server(tmp_path: Path) -> None:
    file = kubeconfig(tmp_path / "config", "https://redra.example.com:8443")
    with answering(HISTORIES) as fake:
        words = ("histories", "--context", "c", "--kubeconfig", file, "--server", fake.url)
        code, out, error = redra(*words)
        assert (code, out, fake.seen) == (2, "", [])
        assert f"are not sent to {fake.url}" in error
        assert error.count("\n") == 1
        # The server of the context gets them.
        kubeconfig(file, fake.url)
        assert redra(*words)[0] == 0
        assert fake.seen[0]["authorization"] == "Bearer secret-of-c"


def test_certificate_of_a_server_is_checked_for_the_name_that_a_context_gives(
    tmp_path: Path,
) -> None:
    issued = CertificateFolder(tmp_path, now=SystemClock().now())
    own = issued.server(["redra.example.com"])
    tls = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    tls.load_cert_chain(own.certificate, own.key)
    for name, code in (("redra.example.com", 0), ("other.example.com", 1), ("", 1)):
        with answering(HISTORIES) as fake:
            fake.server.socket = tls.wrap_socket(fake.server.socket, server_side=True)
            url = fake.url.replace("http:", "https:")
            named = {"tls-server-name": name} if name else {}
            trusted = {"certificate-authority": str(issued.authority)}
            file = kubeconfig(tmp_path / "config", url, **trusted, **named)
            answer = redra("histories", "--context", "c", "--kubeconfig", file)
        assert (answer[0] != 0, len(fake.seen)) == (bool(code), 1 - code), (name, answer)


def test_credentials_of_a_context_are_not_sent_where_others_read_them(tmp_path: Path) -> None:
    file = kubeconfig(tmp_path / "config", "http://redra.example.com:8080")
    code, _, error = redra("histories", "--context", "c", "--kubeconfig", file)
    assert code == 2
    assert "which is not encrypted" in error


@pytest.mark.parametrize(
    ("wanted", "of_settings", "is_sent"),
    [
        ("https://a.example.com", "", True),
        ("http://127.0.0.1:8080", "", True),
        ("http://[::1]:8080", "auto", True),
        ("http://a.example.com", "", False),
        ("http://127.0.0.1.example.com", "", False),
        ("https://a.example.com/h/prod@2", "https://a.example.com:443", True),
        ("https://b.example.com", "https://a.example.com", False),
        ("http://127.0.0.1:8080", "https://a.example.com", False),
        ("http://a.example.com", "http://a.example.com", False),
    ],
)
def test_token_is_sent_to_the_server_that_it_is_for(
    tmp_path: Path, wanted: str, of_settings: str, is_sent: bool
) -> None:
    environment = {"REDRA_SERVER_TOKEN": "secret"}
    if of_settings:
        environment["REDRA_SERVER"] = of_settings
    notes: list[str] = []
    settings = read({"data": tmp_path}, environment=environment)
    server = servers.find(settings, servers.Aim(server=wanted), note=notes.append)
    assert server is not None
    headers = server.connection._credentials.headers
    assert headers == ({"authorization": "Bearer secret"} if is_sent else {})
    assert len(notes) == (not is_sent)


@contextlib.contextmanager
def noticed(folder: Path, url: str) -> Iterator[Path]:
    """A data folder with the notice of a server and its kubeconfig."""
    folder.mkdir()
    file = kubeconfig(folder / "kubeconfig", url)
    with notice.claimed(folder) as place:
        place.post(notice.Notice(url=url, kubeconfig=file), database="")
        yield folder


def found(folder: Path) -> tuple[servers.AskedServer | None, list[str]]:
    """The server that a command on a folder asks, and what it notes."""
    notes: list[str] = []
    return servers.find(read({"data": folder}, environment={}), note=notes.append), notes


def test_server_of_the_folder_is_believed(tmp_path: Path) -> None:
    with noticed(tmp_path / "data", "http://127.0.0.1:8080") as folder:
        server, notes = found(folder)
        assert server is not None
        assert (server.connection.url, notes) == ("http://127.0.0.1:8080", [])


@pytest.mark.parametrize("name", [notice.FILE, "kubeconfig"])
@pytest.mark.parametrize("way", ["group", "others", "owner"])
def test_files_that_others_may_have_written_are_not_believed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str, way: str
) -> None:
    with noticed(tmp_path / "data", "http://127.0.0.1:8080") as folder:
        if way == "owner":
            if os.geteuid() == 0:
                os.chown(folder / name, 12345, -1)
            else:
                # All files belong to somebody else then.
                monkeypatch.setattr(os, "geteuid", lambda: 12345)
        else:
            (folder / name).chmod(0o620 if way == "group" else 0o602)
        server, notes = found(folder)
    assert server is None
    assert len(notes) == 1
    assert str(folder) in notes[0]


def test_kubeconfig_elsewhere_or_of_another_server_is_not_believed(tmp_path: Path) -> None:
    url = "http://127.0.0.1:8080"
    with noticed(tmp_path / "data", url) as folder:
        tree = json.loads((folder / notice.FILE).read_text())
        kubeconfig(folder / "kubeconfig", "http://127.0.0.1:9")
        server, notes = found(folder)
        assert (server, len(notes)) == (None, 1)
        elsewhere = kubeconfig(tmp_path / "kubeconfig", url)
        (folder / notice.FILE).write_text(json.dumps({**tree, "kubeconfig": str(elsewhere)}))
        server, notes = found(folder)
        assert (server, len(notes)) == (None, 1)
        (folder / notice.FILE).write_text(json.dumps(tree))
        (folder / "kubeconfig").write_text("{{{")
        server, notes = found(folder)
        assert (server, len(notes)) == (None, 1)


@pytest.mark.parametrize("parts", [(EVENT, EVENT), (EVENT[:5],)])
def test_log_that_breaks_off_is_an_error(tmp_path: Path, parts: tuple[bytes, ...]) -> None:
    with answering(*parts, is_whole=False) as fake:
        code, out, error = redra("log", "prod", "--server", fake.url, data=tmp_path)
    assert code == 4
    assert out == EVENT.decode() * (len(parts) // 2 * 2)
    assert error.startswith(f"redra: {fake.url}: ")
    assert error.count("\n") == 1


def test_log_that_is_whole_is_printed(tmp_path: Path) -> None:
    with answering(EVENT[:5], EVENT[5:] + EVENT) as fake:
        asked = redra("log", "prod", "--server", fake.url, data=tmp_path)
    assert asked == (0, EVENT.decode() * 2, "")


ENTRY = (
    b'{"kind": "PodCreated", "revision": 3, "time": "2026-01-02T03:04:05Z", "name": "a",'
    b' "text": "", "resource": "pods", "namespace": "", "actor": "", "because": "", "doubt": ""}\n'
)


def test_timeline_that_is_whole_is_printed(tmp_path: Path) -> None:
    with answering(b'{"doubts": []}\n', ENTRY, b'{"count": 1, "revision": 3}\n') as fake:
        code, out, error = redra("timeline", "prod", "--server", fake.url, data=tmp_path)
    assert (code, error) == (0, "")
    assert "PodCreated" in out


@pytest.mark.parametrize("is_whole", [True, False])
def test_timeline_that_breaks_off_is_an_error(tmp_path: Path, is_whole: bool) -> None:
    for parts in ((), (b'{"doubts": []}\n',), (b'{"doubts": []}\n', ENTRY)):
        with answering(*parts, is_whole=is_whole) as fake:
            code, out, error = redra("timeline", "prod", "--server", fake.url, data=tmp_path)
        assert (code, out, error.count("\n")) == (4, "", 1)


NOT_REDRAS = [
    (302, "application/json", HISTORIES),
    (204, "application/json", b""),
    (200, "text/html", b"<html>"),
    (200, "application/json", b"[]"),
    (200, "application/json", b"{"),
    (200, "application/json", b"\xff"),
    (200, "application/json", b"{}"),
    (200, "application/json", b"null"),
    (200, "application/json", b'{"items": [{}]}'),
    (200, "application/json", b'{"items": 1, "count": "x", "doubts": {}, "outcome": []}'),
    (200, "application/json", b'{"items": {"a": null}, "count": 2, "doubts": [1]}'),
    (404, "application/json", b'{"message": "no", "details": 7}'),
]


@pytest.mark.parametrize(
    "words",
    [
        ("histories",),
        ("why", "pod/a"),
        ("findings",),
        ("timeline",),
        ("map",),
        ("head",),
        ("blast", "--delete", "node/a"),
        ("diff", "a", "b"),
        ("capacity",),
        ("report", "-o", "-"),
        ("fit",),
        ("scan",),
    ],
    ids=lambda words: words[0],
)
def test_answer_that_is_not_redras_is_refused_in_a_sentence(
    tmp_path: Path, words: tuple[str, ...]
) -> None:
    def refuses(row: tuple[int, str, bytes]) -> None:
        status, kind, body = row
        if words[0] == "report" and status == 200 and kind == "text/html":
            return
        with answering(*([body] if body else []), status=status, kind=kind) as fake:
            code, out, error = redra(*words, "--server", fake.url, data=tmp_path)
        assert (code, out, error.count("\n")) == (4, "", 1), error
        assert "is not one of redra" in error or "empty" in error

    check_each(NOT_REDRAS, str, refuses)


@pytest.mark.parametrize("address", ["http://127.0.0.1:99999", "http://127.0.0.1:x", "http://[::1"])
def test_address_that_is_none_is_refused(tmp_path: Path, address: str) -> None:
    with pytest.raises(InputError, match="is not the address of a server"):
        servers.find(read({"data": tmp_path}, environment={}), servers.Aim(server=address))
