"""A command asks a server again until the server has read the whole log, or the time is over."""

import json
from types import SimpleNamespace

from app.bootstrap.asking.queries import ServedQuery
from app.cli.connecting.answering import ASKED_AGAIN_SECONDS, AnswerSource


class PartlyRead:
    """A server that reads another hundred events while each request waits."""

    def __init__(self):
        self.waits = []

    def ask(self, query):
        self.waits.append(query.parameters["wait"])
        return json.dumps({"examined": 100 * len(self.waits), "revision": 250}).encode()


def answer(seconds):
    server, source = PartlyRead(), object.__new__(AnswerSource)
    source.settings = SimpleNamespace(findings_wait_seconds=seconds)
    last = source._read_on(server, ServedQuery(history="h", part="findings"))
    return json.loads(last)["examined"], server.waits


def test_server_is_asked_again_until_it_has_read_the_log():
    assert answer(60) == (300, [str(ASKED_AGAIN_SECONDS)] * 3)


def test_what_was_read_when_the_time_is_over_is_the_answer():
    assert answer(0) == (100, [str(ASKED_AGAIN_SECONDS)])
