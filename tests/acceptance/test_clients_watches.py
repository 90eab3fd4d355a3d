"""What a watch promises, while connections break and the server is ended and killed.

Writers change claims without pause. One watcher follows them: it drops its connection after a few
lines, lets others run into their time-out, and goes on each time where it was. In the middle the
server is ended once and killed once. Each promise is then checked on all that the watcher was told.
Parity: api.md 7 and 12.
"""

import signal
import threading
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field

import httpx
import pytest

from tests import draws
from tests.acceptance.server_process import following, server_process

pytestmark = [pytest.mark.database, pytest.mark.slow, draws.modules_in_turn("clients")]

CLAIMS = "/apis/resource.k8s.io/v1/namespaces/watched/resourceclaims"
CONFIG_MAPS = "/api/v1/namespaces/{}/configmaps"
WRITERS = 3
WRITES = 60
LINES_OF_A_CONNECTION = 3


def claim(name, value):
    """A claim whose two annotations always have the same value."""
    return {
        "apiVersion": "resource.k8s.io/v1",
        "kind": "ResourceClaim",
        "metadata": {"name": name, "annotations": {"a": value, "b": value}},
        "spec": {"devices": {"requests": [{"name": "r", "exactly": {"deviceClassName": "none"}}]}},
    }


def version_of(tree):
    return int(tree["metadata"]["resourceVersion"])


@dataclass
class Recording:
    """What writers were answered and what the watcher was told, in the order of both."""

    start: int = 0
    last: int = 0
    acknowledged: set = field(default_factory=set)
    lines: list = field(default_factory=list)
    """All lines of all connections, bookmarks included."""
    breaks: list = field(default_factory=list)
    """Versions from which the watcher went on with another connection."""

    @property
    def told(self):
        return [line for line in self.lines if line["type"] != "BOOKMARK"]

    @property
    def versions(self):
        return [version_of(line["object"]) for line in self.told]


class Writer:
    """Applies and deletes its own claims; goes on when the server is away for a while."""

    def __init__(self, server, number, recording, progress):
        self._server = server
        self._number = number
        self._recording = recording
        self._progress = progress

    def run(self):
        with self._server.client() as client:
            for step in range(WRITES):
                path = f"{CLAIMS}/w{self._number}-{step % 4}"
                if step % 9 == 8:
                    answer = self._insist(client, "DELETE", path)
                else:
                    answer = self._insist(
                        client, "PATCH", path,
                        params={"fieldManager": "writer", "force": "true"},
                        headers={"content-type": "application/apply-patch+yaml"},
                        json=claim(path.rpartition("/")[2], str(step)),
                    )  # fmt: skip
                if answer.status_code != 404:
                    assert answer.status_code in (200, 201), answer.text
                    self._recording.acknowledged.add(version_of(answer.json()))
                self._progress()

    def _insist(self, client, method, path, **options):
        while True:
            try:
                answer = client.request(method, path, **options)
            except httpx.TransportError:
                assert self._server.serves.wait(60)
                continue
            if answer.status_code < 500:
                return answer


class Watcher:
    """Follows the claims over one connection after the other until it is told to stop."""

    def __init__(self, server, recording):
        self._server = server
        self._recording = recording
        self._at = recording.start
        self.done = threading.Event()

    def run(self):
        with self._server.client() as client:
            connection = 0
            while not (self.done.is_set() and self._at >= self._recording.last):
                connection += 1
                self._recording.breaks.append(self._at)
                try:
                    self._follow(client, None if connection % 6 == 0 else LINES_OF_A_CONNECTION)
                except httpx.TransportError:
                    assert self._server.serves.wait(60)
            self._follow(client, None)

    def _follow(self, client, limit):
        with following(
            client, CLAIMS, resourceVersion=self._at, allowWatchBookmarks="true", timeoutSeconds=1
        ) as lines:
            for number, line in enumerate(lines, 1):
                assert line["type"] != "ERROR", line
                self._recording.lines.append(line)
                self._at = version_of(line["object"])
                if number == limit:
                    return


class Milestones:
    """Tells when the writers have come so far."""

    def __init__(self, *counts):
        self.reached = {count: threading.Event() for count in counts}
        self._lock = threading.Lock()
        self._count = 0

    def step(self):
        with self._lock:
            self._count += 1
            if self._count in self.reached:
                self.reached[self._count].set()


@pytest.fixture(scope="module")
def server(tmp_path_factory):
    folder = tmp_path_factory.mktemp("watches")
    with server_process(folder, "watched", "quiet", "informed") as found:
        yield found


@pytest.fixture(scope="module")
def client(server):
    with server.client() as found:
        yield found


@pytest.fixture(scope="module")
def recording(server, client):
    found = Recording(start=version_of(client.get(CLAIMS).json()))
    third = WRITERS * WRITES // 3
    milestones = Milestones(third, 2 * third)
    watcher = Watcher(server, found)
    with ThreadPoolExecutor(WRITERS + 1) as threads:
        follows = threads.submit(watcher.run)
        writes = [
            threads.submit(Writer(server, number, found, milestones.step).run)
            for number in range(WRITERS)
        ]
        for count, how in ((third, signal.SIGTERM), (2 * third, signal.SIGKILL)):
            assert milestones.reached[count].wait(60)
            server.restart(how)
        for write in writes:
            write.result(60)
        found.last = max(found.acknowledged)
        watcher.done.set()
        follows.result(60)
    return found


def changes_after(client, version, last):
    """What one undisturbed watch tells."""
    found = []
    if version >= last:
        return found
    with following(client, CLAIMS, resourceVersion=version) as lines:
        for line in lines:
            found.append(line)
            if version_of(line["object"]) >= last:
                return found
    raise AssertionError("the watch ended before its last change")


# ---- the six promises


def test_ordered_no_change_comes_after_a_later_one(recording):
    assert recording.versions == sorted(recording.versions)
    assert len(recording.breaks) > 6


def test_unique_no_change_comes_twice(recording):
    assert len(recording.versions) == len(set(recording.versions))


def test_reliable_every_acknowledged_change_comes(recording):
    assert recording.acknowledged - set(recording.versions) == set()
    assert len(recording.acknowledged) > WRITERS * WRITES // 2


def test_reliable_a_broken_watch_is_told_what_an_unbroken_one_is(client, recording):
    assert changes_after(client, recording.start, recording.last) == recording.told


def test_atomic_no_state_shows_half_of_a_write(recording):
    for line in recording.told:
        annotations = line["object"]["metadata"]["annotations"]
        assert annotations["a"] == annotations["b"]


def test_atomic_what_was_told_so_far_is_what_a_list_of_that_version_shows(client, recording):
    state = {}
    for number, line in enumerate(recording.told):
        name, version = line["object"]["metadata"]["name"], version_of(line["object"])
        if line["type"] == "DELETED":
            del state[name]
        else:
            assert (line["type"] == "ADDED") == (name not in state)
            state[name] = line["object"]
        if number % 5 == 0:
            query = {"resourceVersion": version, "resourceVersionMatch": "Exact"}
            answer = client.get(CLAIMS, params=query)
            assert answer.status_code == 200, answer.text
            shown = {item["metadata"]["name"]: item for item in answer.json()["items"]}
            assert {name: version_of(item) for name, item in shown.items()} == {
                name: version_of(item) for name, item in state.items()
            }


def test_resumable_after_any_version_it_goes_on_with_the_next(client, recording):
    for place in range(0, len(recording.told), 12):
        version = recording.versions[place]
        assert changes_after(client, version, recording.last) == recording.told[place + 1 :]


def test_resumable_from_a_version_of_another_kind(client, recording):
    made = client.post(CONFIG_MAPS.format("quiet"), json={"metadata": {"name": "between"}})
    with following(client, CLAIMS, resourceVersion=version_of(made.json())) as lines:
        changed = client.patch(
            f"{CLAIMS}/{recording.told[-1]['object']['metadata']['name']}",
            params={"fieldManager": "after", "force": "true"},
            headers={"content-type": "application/apply-patch+yaml"},
            json=claim(recording.told[-1]["object"]["metadata"]["name"], "after"),
        )
        assert version_of(next(lines)["object"]) == version_of(changed.json())


def test_bookmarkable_a_bookmark_stands_after_all_it_covers(recording):
    bookmarks = 0
    before = recording.start
    for line in recording.lines:
        version = version_of(line["object"])
        if line["type"] == "BOOKMARK":
            bookmarks += 1
            assert line["object"]["kind"] == "ResourceClaim"
            assert version >= before
        else:
            assert version > before
        before = version
    assert bookmarks


def test_bookmarkable_a_quiet_watch_learns_how_far_the_world_went(client):
    begin = version_of(client.get(CONFIG_MAPS.format("quiet")).json())
    made = client.post(CONFIG_MAPS.format("default"), json={"metadata": {"name": "elsewhere"}})
    query = {"resourceVersion": begin, "allowWatchBookmarks": "true", "timeoutSeconds": "1"}
    with following(client, CONFIG_MAPS.format("quiet"), **query) as lines:
        (only,) = lines
    assert only["type"] == "BOOKMARK"
    assert version_of(only["object"]) >= version_of(made.json())
    again = {"resourceVersion": only["object"]["metadata"]["resourceVersion"]}
    with following(client, CONFIG_MAPS.format("quiet"), timeoutSeconds="1", **again) as lines:
        assert list(lines) == []


# ---- nothing is ever too old


def test_first_version_is_watched_and_listed_after_all(client, recording):
    namespaces = "/api/v1/namespaces"
    with following(client, namespaces, resourceVersion="1") as lines:
        assert all(line["type"] != "ERROR" for line in lines.take(2))
    exact = {"resourceVersion": recording.start, "resourceVersionMatch": "Exact"}
    assert client.get(CLAIMS, params=exact).json()["items"] == []
    told = changes_after(client, 1, recording.last)
    assert told[: len(recording.told)] == recording.told


def test_pages_go_on_over_a_restart(server, client):
    path = CONFIG_MAPS.format("informed")
    for number in range(5):
        client.post(path, json={"metadata": {"name": f"p{number}"}})
    first = client.get(path, params={"limit": 2}).json()
    client.delete(f"{path}/p3")
    server.restart(signal.SIGKILL)
    rest = client.get(path, params={"limit": 9, "continue": first["metadata"]["continue"]}).json()
    names = [item["metadata"]["name"] for item in first["items"] + rest["items"]]
    assert [name for name in names if name.startswith("p")] == ["p0", "p1", "p2", "p3", "p4"]
    assert rest["metadata"]["resourceVersion"] == first["metadata"]["resourceVersion"]
    client.delete(path)


def test_watch_ends_well_with_the_server_and_goes_on_after_it(server, client):
    path = CONFIG_MAPS.format("quiet")
    begin = version_of(client.get(path).json())
    query = {"allowWatchBookmarks": "true", "resourceVersion": begin}
    with following(client, path, **query) as lines:
        client.post(path, json={"metadata": {"name": "farewell"}})
        assert next(lines)["object"]["metadata"]["name"] == "farewell"
        server.end()
        (mark,) = lines
    assert mark["type"] == "BOOKMARK"
    server.start()
    with following(client, path, resourceVersion=version_of(mark["object"])) as lines:
        client.delete(f"{path}/farewell")
        assert next(lines)["type"] == "DELETED"


# ---- a shared informer


INITIAL = {
    "allowWatchBookmarks": "true",
    "resourceVersionMatch": "NotOlderThan",
    "sendInitialEvents": "true",
    "timeout": "6m14s",
    "timeoutSeconds": "374",
}
"""The first request of an informer of client-go 1.35 and later."""
GO_ACCEPTS = {"accept": "application/vnd.kubernetes.protobuf,application/json"}


class Informer:
    """Keeps a cache the way client-go's reflector does: streaming list, then watches."""

    def __init__(self, client, path, **selectors):
        self._client = client
        self._path = path
        self._selectors = selectors
        self.cache = {}
        self.at = ""

    def begin(self):
        """The streaming list up to its bookmark; the connection is broken after it."""
        self.cache.clear()
        with following(self._client, self._path, **INITIAL, **self._selectors) as lines:
            for line in lines:
                if self._take(line):
                    return
        raise AssertionError("the bookmark that ends the beginning did not come")

    def go_on_until(self, version):
        """Follow from the last version, until one at least as late was told."""
        query = {"allowWatchBookmarks": "true", "resourceVersion": self.at, "timeoutSeconds": "1"}
        while int(self.at) < version:
            query["resourceVersion"] = self.at
            with following(self._client, self._path, **query, **self._selectors) as lines:
                for line in lines:
                    self._take(line)

    def _take(self, line):
        tree = line["object"]
        assert tree["kind"] == "ConfigMap", line
        assert tree["apiVersion"] == "v1"
        self.at = tree["metadata"]["resourceVersion"]
        name = tree["metadata"].get("name")
        match line["type"]:
            case "ADDED":
                assert name not in self.cache
                self.cache[name] = tree["data"]["a"]
            case "MODIFIED":
                assert name in self.cache
                self.cache[name] = tree["data"]["a"]
            case "DELETED":
                del self.cache[name]
            case "BOOKMARK":
                marks = tree["metadata"].get("annotations", {})
                return marks.get("k8s.io/initial-events-end") == "true"
        return False


def test_informer_cache_is_right_after_a_streaming_list_breaks_and_a_restart(server, client):
    path = CONFIG_MAPS.format("informed")

    def put(name, value, color):
        """Create or replace."""
        tree = {"metadata": {"name": name, "labels": {"color": color}}, "data": {"a": value}}
        answer = client.put(f"{path}/{name}", json=tree)
        if answer.status_code == 404:
            answer = client.post(path, json=tree)
        assert answer.status_code in (200, 201), answer.text
        return version_of(answer.json())

    for number in range(4):
        put(f"i{number}", "0", "red" if number % 2 else "blue")
    with server.client(headers=GO_ACCEPTS) as go:
        reds = Informer(go, path, labelSelector="color=red")
        reds.begin()
        assert reds.cache == {"i1": "0", "i3": "0"}
        put("i0", "1", "red")
        put("i1", "1", "blue")
        reds.go_on_until(put("i3", "1", "red"))
        assert reds.cache == {"i0": "1", "i3": "1"}
        put("i3", "2", "blue")
        server.restart()
        reds.go_on_until(put("i2", "2", "red"))
        assert reds.cache == {"i0": "1", "i2": "2"}
        again = Informer(go, path, labelSelector="color=red")
        again.begin()
        assert again.cache == reds.cache


def test_streaming_list_that_waits_for_a_version_shows_at_least_that(client):
    path = CONFIG_MAPS.format("quiet")
    made = client.post(path, json={"metadata": {"name": "fresh"}}).json()
    query = INITIAL | {"resourceVersion": made["metadata"]["resourceVersion"]}
    with following(client, path, fieldSelector="metadata.name=fresh", **query) as lines:
        added, mark = lines.take(2)
    assert (added["type"], added["object"]["metadata"]["name"]) == ("ADDED", "fresh")
    assert mark["object"]["metadata"]["annotations"]["k8s.io/initial-events-end"] == "true"
    assert version_of(mark["object"]) >= version_of(made)


@pytest.mark.parametrize(
    "query",
    [
        {"sendInitialEvents": "true", "allowWatchBookmarks": "true"},
        {"resourceVersionMatch": "NotOlderThan", "resourceVersion": "1"},
    ],
    ids=["initial-events-without-match", "match-without-initial-events"],
)
def test_streaming_list_asked_for_wrongly_is_refused_so_that_clients_fall_back(client, query):
    answer = client.get(CONFIG_MAPS.format("quiet"), params={"watch": "true"} | query)
    assert (answer.status_code, answer.json()["reason"]) == (422, "Invalid")
