"""What admission webhooks were asked, and alerts about audited requests: writes without an outcome.

The stored object is known, and what was asked for is not taken for one.
"""

import json

import pytest
import yaml

from app.adapters.history.audit import envelopes
from app.adapters.history.enclosed import admissions
from app.adapters.history.opening import open_history
from app.adapters.history.reading import ReadOptions
from app.domain.errors import InputError
from app.domain.log.records import Loss, Op
from app.domain.values import timestamps
from tests.unit.history.worlds import CLAIMS, PODS, tree

STORED = tree(CLAIMS, "gpu", "shop", rv=7, metadata={"labels": {"a": "stored"}})
ASKED = tree(CLAIMS, "gpu", "shop", rv=7, metadata={"labels": {"a": "asked"}})
GAP = "a webhook was asked to admit it, and what the server did is not recorded"


def review(operation="UPDATE", old=STORED, new=ASKED, type_=CLAIMS, **more):
    group, version, resource, kind = type_
    request = {
        "uid": f"r-{operation}",
        "kind": {"group": group, "version": version, "kind": kind},
        "resource": {"group": group, "version": version, "resource": resource},
        "name": (old or new)["metadata"]["name"],
        "namespace": "shop",
        "operation": operation,
        "userInfo": {"username": "operator", "groups": ["system:authenticated"]},
        "object": new,
        "oldObject": old,
        "dryRun": False,
        **more,
    }
    return {"kind": "AdmissionReview", "apiVersion": "admission.k8s.io/v1", "request": request}


def refused(message="no"):
    return review() | {"response": {"uid": "r", "allowed": False, "status": {"message": message}}}


def read(tmp_path, text):
    path = tmp_path / "webhook.log"
    path.write_bytes(text.encode())
    with open_history([path], ReadOptions()) as history:
        return list(history.records())


def zap(value):
    return json.dumps({"level": "info", "ts": 1.5, "msg": json.dumps(value)}) + "\n"


@pytest.mark.parametrize(
    "text",
    [
        json.dumps(review()),
        json.dumps(review(), indent=2).replace("\n", "\r\n"),
        yaml.safe_dump(review()),
        zap(review()),
        f"2026-11-01T00:00:00Z\tINFO\tasked\t{json.dumps({'Request': review()['request']})}\n",
        f"I1101 00:00:00.000001 1 webhook.go:1] review {json.dumps(review())}\n",
        f"```json\n{json.dumps(review(), indent=1)}\n```\n",
    ],
)
def test_review_gives_the_stored_object_and_a_gap_behind_it(tmp_path, text):
    stored, gap = read(tmp_path, text)
    assert (stored.op, stored.object) == (Op.BASELINE, STORED)
    assert (gap.op, gap.verb, gap.key) == (Op.GAP, "update", stored.key)
    assert (gap.actor.user, gap.code, gap.message) == ("operator", 0, f"update: {GAP}")


def test_deletion_that_was_asked_for_does_not_remove_the_object(tmp_path):
    stored, gap = read(tmp_path, zap(review("DELETE", new=None)))
    assert (stored.object, gap.op, gap.verb) == (STORED, Op.GAP, "delete")


def test_creation_that_was_asked_for_gives_no_object(tmp_path):
    pod = tree(PODS, "web", "shop")
    (gap,) = read(tmp_path, zap(review("CREATE", None, pod, PODS)))
    assert (gap.op, gap.name, gap.object) == (Op.GAP, "web", None)


def test_reviewed_scale_is_no_object(tmp_path):
    scale = STORED | {"kind": "Scale"}
    (gap,) = read(tmp_path, zap(review(old=scale, subResource="scale")))
    assert (gap.op, gap.subresource) == (Op.GAP, "scale")


@pytest.mark.parametrize(
    ("value", "message"),
    [(refused("no"), "a webhook refused it: no"), (review(dryRun=True), "dry run")],
)
def test_write_that_changed_nothing_is_an_observed_request(tmp_path, value, message):
    request, stored = read(tmp_path, json.dumps(value))
    assert (request.op, request.message, stored.object) == (Op.CONTEXT, message, STORED)


@pytest.mark.parametrize(
    ("odd", "problem"),
    [
        ({"operation": 3}, "got `int` - at `$.operation`"),
        ({"operation": "update"}, "the operation is 'update'"),
        ({"resource": "resourceclaims"}, "at `$.resource`"),
        ({"userInfo": "operator"}, "at `$.userInfo`"),
        ({"dryRun": "true"}, "at `$.dryRun`"),
        ({"namespace": 4}, "at `$.namespace`"),
        ({"object": json.dumps(ASKED)}, "at `$.object`"),
    ],
)
def test_review_with_odd_fields_gives_the_stored_object_and_is_named(tmp_path, odd, problem):
    path = tmp_path / "webhook.json"
    path.write_text(json.dumps(review(**odd)))
    with open_history([path], ReadOptions()) as history:
        (record,) = history.records()
        ((place, text),) = history.refused_places
    assert record.object["metadata"]["labels"] == {"a": "stored"}
    assert place == "webhook.json:1"
    assert admissions.ODD in text
    assert problem in text


@pytest.mark.parametrize("new", [ASKED, json.dumps(ASKED)])
def test_odd_review_of_a_creation_gives_no_object(tmp_path, new):
    with pytest.raises(InputError, match="admission webhook that cannot be read"):
        read(tmp_path, json.dumps(review("CREATE", old=None, new=ASKED, name=7, object=new)))


def test_answer_of_a_webhook_alone_is_refused(tmp_path):
    answer = {key: part for key, part in refused().items() if key != "request"}
    with pytest.raises(InputError, match="AdmissionReview"):
        read(tmp_path, json.dumps(answer))


def alert(**fields):
    named = {
        "ka.verb": "create",
        "ka.target.resource": "pods",
        "ka.target.name": "web",
        "ka.target.namespace": "shop",
        "ka.user.name": "operator",
        "ka.response.code": "201",
    }
    named |= {f"ka.{name.replace('_', '.')}": value for name, value in fields.items()}
    begin = {"rule": "A pod", "priority": "Notice", "time": "2026-01-02T03:04:05.000006Z"}
    return begin | {"output": "a pod (user=operator)", "output_fields": named}


@pytest.mark.parametrize(
    "text",
    [
        json.dumps(alert()) + "\n",
        json.dumps({"log": json.dumps(alert()), "stream": "stdout"}) + "\n",
        json.dumps([alert()], indent=2),
        json.dumps(alert(auditid=None, uri="<NA>")) + "\n",
    ],
)
def test_alert_is_a_gap_of_what_it_names(tmp_path, text):
    (gap,) = read(tmp_path, text)
    assert (gap.op, str(gap.key), gap.actor.user) == (Op.GAP, "pods/shop/web", "operator")
    assert timestamps.micro_text(gap.observed_at) == "2026-01-02T03:04:05.000006Z"
    assert Loss.METADATA_ONLY in gap.losses


def test_alert_about_a_refused_request_changes_nothing(tmp_path):
    (request,) = read(tmp_path, json.dumps(alert(response_code="403", response_reason="Forbidden")))
    assert (request.op, request.code, request.message) == (Op.CONTEXT, 403, "Forbidden")


def test_alert_without_the_code_of_the_answer_says_so(tmp_path):
    (gap,) = read(tmp_path, json.dumps(alert(response_code="<NA>")))
    assert (gap.op, gap.code) == (Op.GAP, 0)
    assert gap.message == "create: an alert tells the request, not its answer"


@pytest.mark.parametrize("field", ["verb", "target_resource"])
def test_alert_that_does_not_name_a_request_is_none(field):
    assert envelopes.events(alert(**{field: "<NA>"})) == []
