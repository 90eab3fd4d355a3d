"""The text of findings about refused writes: each word once, and no name of an object."""

import pytest

from app.analysis.chronicle import Chronicle
from app.analysis.findings import refused_writes
from app.domain.log import Actor, EventType, ObjectKey, Revision
from app.domain.objects.write.commands import RecordFact
from app.domain.values import api_resources
from tests.cluster import Cluster


@pytest.mark.parametrize(
    ("code", "message", "said"),
    [
        (422, 'Invalid: Pod "p" is invalid: spec.priority: Forbidden: x', "invalid: spec.priority"),
        (403, 'Forbidden: pods "p" is forbidden: exceeded quota: q', "forbidden: exceeded quota"),
        (422, 'Pod "p" is invalid: spec.priority: Forbidden: x', "invalid: spec.priority"),
        (400, "BadRequest: strict decoding error", "BadRequest: strict decoding"),
        (403, "Forbidden: no reason to be known", "Forbidden: no reason"),
    ],
)
def test_reason_of_a_refusal_is_said_once(code, message, said):
    cluster = Cluster()
    body = {"verb": "create", "code": code, "message": message}
    key = ObjectKey(*api_resources.PODS, "default", "p")
    fact = RecordFact(type=EventType.REQUEST_OBSERVED.value, key=key, body=body)
    cluster.line.submit(fact, actor=Actor(user="alice"))
    chronicle = Chronicle()
    chronicle.fold(cluster.line.events)
    (finding,) = refused_writes.writes(chronicle, Revision(len(cluster.line.events)))
    assert f"1 object was not written: create: {said}" in finding.text
    nothing = refused_writes.writes(chronicle, finding.last, sees=lambda each: each != key)
    assert not [*nothing]
