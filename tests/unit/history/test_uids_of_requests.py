"""The uid of an object of which no answer is recorded (audit level `Request`).

The API server gives each new object a uid of its own, whatever the request has, and refuses an
update that names the uid of another object.
"""

import pytest

from app.domain.log.records import Op
from app.domain.objects.write import intake
from tests.unit.history.worlds import CLAIMS, audit, audit_records, tree

OWN = "uid-of-the-object"


def claim(uid=""):
    return tree(CLAIMS, "c1", metadata={"uid": uid} if uid else {}, spec={}, status={})


def request(verb, second, sent, **reference):
    return audit(verb, name="c1", second=second, level="Request", request=sent, **reference)


@pytest.mark.parametrize("sent", ["", "uid-that-a-client-made-up"])
def test_new_object_has_no_uid_that_was_sent(sent, tmp_path):
    body = claim(sent)
    if not sent:
        body["metadata"].pop("uid", None)
    (record,) = audit_records(tmp_path, request("create", 1, body))
    assert (record.op, record.uid) == (Op.ADDED, "")
    assert "uid" not in record.object["metadata"]


@pytest.mark.parametrize("subresource", ["", "status"])
def test_updated_object_has_the_uid_that_was_sent(subresource, tmp_path):
    created = claim()
    created["metadata"].pop("uid", None)
    _, record = audit_records(
        tmp_path,
        request("create", 1, created),
        request("update", 2, claim(OWN), subresource=subresource),
    )
    assert (record.op, record.uid) == (Op.MODIFIED, OWN)
    stored = intake.identified(record.object, record.key, record.uid)
    assert stored["metadata"]["uid"] == OWN
