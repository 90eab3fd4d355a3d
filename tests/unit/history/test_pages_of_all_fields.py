"""Pages and tables of kubectl whose kind or fields are easily taken for others."""

import re

import pytest

from app.adapters.history.opening import open_history
from app.adapters.history.printouts.printed import NO_KIND
from app.adapters.history.reading import ReadOptions
from app.bootstrap.rules import rules_for
from app.domain.errors import InputError
from app.domain.objects.profile import Profile

RULES = rules_for(Profile())
EVENT_PAGE = """\
Name:             web-1.157e0a42f7ead471
Namespace:        shop
Labels:           <none>
Annotations:      <none>
API Version:      v1
Count:            12
Event Time:       <nil>
First Timestamp:  2026-01-02T03:04:05Z
Involved Object:
  API Version:   v1
  Kind:          Pod
  Name:          web-1
  Namespace:     shop
  UID:           u-1
Kind:            Event
Last Timestamp:  2026-01-02T03:06:05Z
Message:         0/2 nodes are available: 2 cannot allocate all claims.
Metadata:
  Creation Timestamp:  2026-01-02T03:04:05Z
  Resource Version:    44
  UID:                 u-9
Reason:                FailedScheduling
Source:
  Component:  default-scheduler
Type:         Warning
Events:       <none>
"""


def read(tmp_path, text):
    path = tmp_path / "notes.txt"
    path.write_text(text)
    with open_history([path], ReadOptions(rules=RULES)) as history:
        return list(history.records()), [str(problem) for _, problem in history.refused_places]


def test_page_of_an_event_has_the_fields_before_its_metadata(tmp_path):
    (record,), refused = read(tmp_path, EVENT_PAGE)
    event = record.object
    assert (record.name, record.namespace, record.uid) == ("web-1.157e0a42f7ead471", "shop", "u-9")
    assert event["message"] == "0/2 nodes are available: 2 cannot allocate all claims."
    assert event["involvedObject"] == {
        "apiVersion": "v1", "kind": "Pod", "name": "web-1", "namespace": "shop", "uid": "u-1",
    }  # fmt: skip
    assert (event["count"], event["reason"]) == (12, "FailedScheduling")
    assert event["firstTimestamp"] == "2026-01-02T03:04:05Z"
    assert event["lastTimestamp"] == "2026-01-02T03:06:05Z"
    assert refused == []


def test_name_of_an_event_is_without_the_kind_before_it(tmp_path):
    text = (
        "NAMESPACE   LAST SEEN   TYPE      REASON   OBJECT      SUBOBJECT   SOURCE   "
        "MESSAGE   FIRST SEEN   COUNT   NAME\n"
        "shop        3m          Warning   Failed   pod/web-1               kubelet  "
        "no device   3m           1       event/web-1.157e0a42f7ead471\n"
    )
    (record,), refused = read(tmp_path, text)
    assert (record.kind, record.name) == ("Event", "web-1.157e0a42f7ead471")
    assert refused == []


OF_KUEUE = (
    "NAME            QUEUE   RESERVED IN   ADMITTED   FINISHED   AGE\n"
    "job-a-af81b     users   cluster-a     True                  2m5s\n"
)
OF_VOLCANO = (
    "NAME   STATUS    MINMEMBER   RUNNINGS   AGE\npg-1   Running   1           1          5m\n"
)


@pytest.mark.parametrize(("plural", "table"), [("workloads", OF_KUEUE), ("podgroups", OF_VOLCANO)])
def test_table_of_another_project_is_none_of_the_kind_of_the_same_name(tmp_path, plural, table):
    with pytest.raises(InputError, match=NO_KIND):
        read(tmp_path, f"$ kubectl get {plural} -n shop\n{table}")
    own = f"$ kubectl get {plural} -n shop\nNAME   AGE\nown    5m\n"
    (record,), _ = read(tmp_path, own)
    assert (record.group, record.resource, record.name) == ("scheduling.k8s.io", plural, "own")


POD_PAGE = """\
Name:             web-1
Namespace:        shop
Node:             <none>
Status:           Pending
Containers:
  app:
    Image:  x
Events:
  Type     Reason            Age   From               Message
  ----     ------            ----  ----               -------
  Warning  FailedScheduling  3m    default-scheduler  0/2 nodes are available: 2 gone
  Normal   Note              2m    kubelet            Image: x
"""


NEXT_PAGE = """\
Name:    b
Node:    n1/10.0.0.2
Status:  Running
Containers:
  c:
    Image:  x
Events:  <none>
"""


@pytest.mark.parametrize("gap", [r"^ +", r"^ +| +"], ids=["set out", "and single blanks"])
def test_events_without_the_indentation_of_their_page_are_read(tmp_path, gap):
    whole, _ = read(tmp_path, POD_PAGE)
    page, events = POD_PAGE.split("Events:\n")
    rows = [re.sub(gap, lambda match: " " * bool(match.start()), row) for row in events.split("\n")]
    records, refused = read(tmp_path, "\n".join([f"{page}Events:", *rows]))
    assert [record.object for record in records] == [record.object for record in whole]
    assert [record.kind for record in records] == ["Pod", "Event", "Event"]
    assert refused == []


def test_page_behind_events_without_indentation_is_one_of_its_own(tmp_path):
    page, events = POD_PAGE.split("Events:\n")
    rows = re.sub(r"(?m)^ +", "", events)
    records, _ = read(tmp_path, f"{page}Events:\n{rows}{NEXT_PAGE}")
    assert [record.name for record in records if record.kind == "Pod"] == ["web-1", "b"]
    assert sum(record.kind == "Event" for record in records) == 2
