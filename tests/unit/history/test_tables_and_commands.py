"""Tables of kubectl in documents: which objects they show, the command above them tells."""

import pytest

from app.adapters.history.opening import open_history
from app.adapters.history.printouts import printed
from app.adapters.history.reading import ReadOptions
from app.bootstrap import rules
from app.domain.errors import InputError
from app.domain.log.records import Op
from app.domain.objects import profile
from tests.unit.history.test_wrapped_texts import CLAIM

RULES = rules.rules_for(profile.from_settings({}))
PODS = (
    "NAME   READY   STATUS    RESTARTS   AGE   NODE\nweb    1/1     Running   0          9s    n1\n"
)
CLAIMS = "NAME   STATE                AGE\none    allocated,reserved   9s\n"
GUESS = "printed objects taken to be in the namespace default, a guess: 1"


def read(folder, text, name="text.md"):
    """The objects by kind, namespace and name, the losses, and the notes."""
    path = folder / name
    path.write_text(text)
    with open_history([path], ReadOptions(rules=RULES)) as history:
        trees = {
            (record.kind, record.namespace, record.name): record.object
            for record in history.records()
        }
        lost = [f"{each.place}: {each.problem}" for each in history.refusals]
        return trees, lost, history.notes


COMMANDS = {
    "directly": "$ kubectl get po -n shop\n",
    "behind options": "$ kubectl --context dev -n shop get -o wide -l a=b pods\n",
    "glued": "kubectl get pods -nshop -owide\n",
    "in an earlier block": "```sh\nkubectl get pods -n shop\n```\n\nIt prints this:\n\n```\n",
    "in a sentence": "1. `kubectl get pods --namespace=shop` shows one:\n\n```\n",
    "before one for a page": "kubectl get pods -n shop\nkubectl describe pod -n other x\n",
    "behind another": "kubectl describe node x; oc get pods -n shop\n",
    "of a folder": "~$ /usr/local/bin/kubectl get pods -n shop | tee x\n",
    "all": "$ kubectl get all -n shop\n",
    "in JSON": '{"error": null, "ran": "kubectl get -o wide pod -n shop", "in": {"a": 1}}\n',
}


@pytest.mark.parametrize("name", COMMANDS)
def test_namespace_is_that_of_the_command(tmp_path, name):
    trees, lost, notes = read(tmp_path, COMMANDS[name] + PODS)
    assert list(trees) == [("Pod", "shop", "web")]
    assert lost == []
    assert GUESS not in notes


SLICES = (
    "NAME         NODE   DRIVER            POOL   AGE\n"
    "n1-gpu-abc   n1     gpu.example.com   n1     9s\n"
)
CLASSES = "NAME              AGE\ngpu.example.com   9s\n"


@pytest.mark.parametrize("prompt", ["$ ", "# ", "user@host:~$ ", "[root@host ~]# ", "PS C:\\> "])
def test_prompt_below_a_row_ends_the_table(tmp_path, prompt):
    """Nobody leaves a line free before the next command."""
    asked = f"{prompt}kubectl get"
    text = f"{asked} resourceslices\n{SLICES}{asked} deviceclasses\n{CLASSES}{prompt}\n"
    trees, lost, _ = read(tmp_path, text)
    assert list(trees) == [
        ("ResourceSlice", "", "n1-gpu-abc"),
        ("DeviceClass", "", "gpu.example.com"),
    ]
    assert lost == []


OTHERS = {
    "without a namespace": "$ kubectl get pods\n",
    "for another kind": "$ kubectl get resourceclaims -n shop\n",
    "that prints no table": "$ kubectl get pods -n shop -o yaml\n",
    "of another program": "$ kubectl get pods -n shop\n$ ./show-pods.sh\n",
    "far above": "$ kubectl get pods -n shop\n" + "a line of prose\n" * 12,
    "that is none": "we get pods -n shop\n",
}


@pytest.mark.parametrize("name", OTHERS)
def test_namespace_that_no_command_tells_is_a_guess(tmp_path, name):
    trees, _, notes = read(tmp_path, OTHERS[name] + PODS)
    assert list(trees) == [("Pod", "default", "web")]
    assert GUESS in notes


@pytest.mark.parametrize(
    ("name", "namespace"),
    [
        ("kubectl_get_pods_-n_shop", "shop"),
        ("kubectl_--kubeconfig_.etc.kubernetes.admin.conf_get_-o_wide_pods_-n_shop.txt", "shop"),
        ("oc_get_pods_-n_shop", "shop"),
        ("kubectl_get_pods_--all-namespaces", "default"),
        ("pods_-n_shop", "default"),
    ],
)
def test_name_of_a_file_may_be_the_command(tmp_path, name, namespace):
    trees, lost, _ = read(tmp_path, PODS, name)
    assert (list(trees), lost) == ([("Pod", namespace, "web")], [])


def test_row_that_is_cut_is_no_other_object(tmp_path):
    """A name, a state or a number of which only the beginning is left would be another one."""
    whole = f"$ kubectl get pods -n shop\n{PODS}"
    row = "other  1/1     Running   0          9s    n1"
    for kept in range(1, row.index("9s")):
        trees, lost, _ = read(tmp_path, whole + row[:kept])
        assert list(trees) == [("Pod", "shop", "web")]
        assert lost == [f"text.md:4: {printed.CUT_ROW}"]
    assert len(read(tmp_path, whole + row)[0]) == 2


@pytest.mark.parametrize("titles", ["", "LAST SEEN   TYPE      REASON    OBJECT      MESSAGE\n"])
def test_row_of_an_event_that_is_cut_is_about_no_other_object(tmp_path, titles):
    """What it is about is followed by a message."""
    row = "9s          Warning   Failed    pod/web-1   no device\n"
    cut = "8s          Warning   BackOff   pod/web-2   again"
    problem = printed.CUT_EVENT if titles else printed.NO_EVENT_TITLES
    for kept in range(cut.index("/") + 2, cut.index("again")):
        text = f"$ kubectl get events -n shop\n{titles}{row}{cut[:kept]}"
        trees, lost, _ = read(tmp_path, text)
        assert [tree["involvedObject"]["name"] for tree in trees.values()] == ["web-1"]
        assert lost == [f"text.md:{3 if not titles else 4}: {problem}"]


def test_tables_of_one_command_are_of_one_namespace(tmp_path):
    """With several kinds, the names have the kind before them."""
    claims = CLAIMS.replace("NAME   ", "NAME" + " " * 33).replace(
        "one    ", "resourceclaim.resource.k8s.io/one    "
    )
    pods = PODS.replace("NAME   ", "NAME      ").replace("web    ", "pod/web   ")
    rows = "".join(f"pod/web-{n}   1/1   Running   0   9s   n1\n" for n in range(20))
    trees, _, _ = read(tmp_path, f"$ kubectl get po,resourceclaim -n shop\n{pods}{rows}\n{claims}")
    assert {namespace for _, namespace, _ in trees} == {"shop"}
    assert ("ResourceClaim", "shop", "one") in trees
    assert len(trees) == 22


def test_object_without_namespace_is_the_one_that_is_shown_elsewhere(tmp_path):
    whole = CLAIM.replace("  name: one\n", "  name: one\n  uid: u1\n  resourceVersion: '4'\n")
    table = CLAIMS.replace("allocated,reserved", "pending           ")
    trees, _, notes = read(tmp_path, f"{table}\n```yaml\n{whole}```\n")
    assert list(trees) == [("ResourceClaim", "shop", "one")]
    assert GUESS not in notes
    assert "printed objects that another source shows whole, left out: 1" in notes


def test_pod_without_namespace_is_the_one_that_a_log_is_about(tmp_path):
    line = 'I0102 03:04:05.000006 1 a.go:1] "Attempting to schedule pod" pod="{}/web"\n'
    for namespaces in (["shop"], ["shop", "lab"]):
        log = "".join(map(line.format, namespaces))
        trees, _, notes = read(tmp_path, f"{log}\n{PODS}")
        is_guess = len(namespaces) == 2
        assert (("Pod", "default", "web") in trees, GUESS in notes) == (is_guess, is_guess)


def test_event_is_in_the_namespace_of_its_subject(tmp_path):
    table = (
        "LAST SEEN   TYPE      REASON             OBJECT                MESSAGE\n"
        "9s          Warning   FailedScheduling   resourceclaim/one     no device...\n"
        "9s          Normal    NodeReady          node/n1               ready\n"
    )
    command = "$ kubectl get resourceclaims -n shop\n"
    trees, lost, _ = read(tmp_path, f"{command}{CLAIMS}\nand then\n\n{table}")
    events = {namespace: tree for (kind, namespace, _), tree in trees.items() if kind == "Event"}
    assert events["shop"]["involvedObject"]["namespace"] == "shop"
    assert "namespace" not in events["default"]["involvedObject"]
    assert events["shop"]["message"] == "no device..."
    assert lost == []


def test_events_are_got_by_a_command_of_their_own(tmp_path):
    events = (
        "LAST SEEN           TYPE      REASON             OBJECT    MESSAGE\n"
        "9s (x5 over 9m)     Warning   FailedScheduling   Pod/web   0/3 nodes are available\n"
    )
    trees, _, notes = read(tmp_path, f"$ kubectl events -n shop --for pod/web\n{events}")
    ((kind, namespace, _),) = trees
    assert (kind, namespace) == ("Event", "shop")
    assert GUESS not in notes


def test_table_that_a_narrow_terminal_wrapped_is_said(tmp_path):
    wide = (
        "NAME                  READY   STATUS    RESTARTS   AGE   IP    \n"
        "       NODE   NOMINATED NODE\nweb-7d9f8c6b-abcde    1/1     Running   0     12m   10.24\n"
        "4.1.2  n1     <none>\n"
    )
    trees, lost, _ = read(tmp_path, f"$ kubectl get pods -o wide\n{wide}\n{CLAIMS}")
    assert list(trees) == [("ResourceClaim", "default", "one")]
    assert lost == ["text.md:2: the cells of the rows below these titles cannot be told apart"]


def test_manifest_has_what_a_table_shows_of_it(tmp_path):
    pod = (
        "apiVersion: v1\nkind: Pod\nmetadata: {name: web, namespace: shop}\nspec:\n"
        "  containers:\n  - {name: c, image: i, resources: {claims: [{name: gpu}]}}\n"
        "  resourceClaims:\n  - {name: gpu, resourceClaimName: one}\n"
    )
    trees, _, _ = read(tmp_path, f"```yaml\n{pod}```\n$ kubectl get pod web -n shop\n{PODS}")
    ((key, tree),) = trees.items()
    assert key == ("Pod", "shop", "web")
    assert (tree["spec"]["nodeName"], tree["status"]["phase"]) == ("n1", "Running")
    assert tree["spec"]["containers"][0]["resources"] == {"claims": [{"name": "gpu"}]}


@pytest.mark.parametrize("dots", ["...", "\u2026"])
def test_cut_cells_are_left_out_and_said(tmp_path, dots):
    cut = (
        PODS.replace("n1", f"ip-10{dots}")
        + f"api-7d{dots}  1/1     Running   0          9s    n1\n"
    )
    trees, lost, _ = read(tmp_path, f"$ kubectl get pods -n shop\n{cut}")
    assert list(trees) == [("Pod", "shop", "web")]
    assert "nodeName" not in trees["Pod", "shop", "web"].get("spec", {})
    assert lost == [
        "text.md:3: a cell of this row was cut",
        "text.md:4: the name in this row was cut, so its object is not known",
    ]


@pytest.mark.parametrize("indent", ["   ", "\t", ""])
@pytest.mark.parametrize("rule", ["-" * 30 + "\n", ""])
def test_table_that_is_set_in_or_ruled(tmp_path, indent, rule):
    titles, row = CLAIMS.splitlines(keepends=True)
    table = "".join(indent + line for line in (titles, rule, row) if line)
    command = f"{indent}$ kubectl get resourceclaims -n shop\n"
    trees, lost, _ = read(tmp_path, f"so:\n\n{command}\n{table}\nend\n")
    assert list(trees) == [("ResourceClaim", "shop", "one")]
    assert lost == []


LIKE_OTHERS = {
    "NAME    STATE      SIZE   AGE\npvc-1   attached   1Gi    9s\n": "volumes.longhorn.io",
    "NAME    STATE   AGE\nqueue   Open    9s\n": "queues",
    "NAME    STATUS   AGE\nrepro   Ready    9s\n": "computedomains",
    "NAME    AGE\nrepro   9s\n": "computedomains",
}


@pytest.mark.parametrize("table", LIKE_OTHERS)
def test_table_of_a_custom_kind_is_no_table_of_another(tmp_path, table):
    text = f"$ kubectl get {LIKE_OTHERS[table]} -n shop\n{table}\n$ kubectl get po -n shop\n{PODS}"
    trees, lost, _ = read(tmp_path, text)
    assert list(trees) == [("Pod", "shop", "web")]
    assert lost == []


def test_table_below_a_command_for_another_kind_is_its_own(tmp_path):
    trees, lost, notes = read(tmp_path, f"$ kubectl get pods -n shop\nsome lines\n{CLAIMS}")
    assert list(trees) == [("ResourceClaim", "default", "one")]
    assert GUESS in notes
    assert lost == []


def test_claims_below_the_classes_of_devices_are_claims(tmp_path):
    text = f"$ kubectl get deviceclasses\nNAME   AGE\ngpu    3d\n\n{CLAIMS}"
    trees, lost, _ = read(tmp_path, text)
    assert sorted(trees) == [("DeviceClass", "", "gpu"), ("ResourceClaim", "default", "one")]
    assert lost == []


def test_custom_columns_are_read_by_their_names_or_said(tmp_path):
    command = "$ kubectl get pods -n shop -o custom-columns=%s,NODE:.spec.nodeName\n"
    trees, lost, _ = read(
        tmp_path,
        f"{command % 'NAME:.metadata.name'}NAME   NODE\nweb    n1\n\n"
        f"{command % 'POD:.metadata.generateName'}POD   NODE\ndb    n1\n",
    )
    assert [(key, tree["spec"]) for key, tree in trees.items()] == [
        (("Pod", "shop", "web"), {"nodeName": "n1"})
    ]
    assert lost == [f"text.md:6: {printed.COLUMNS}"]


def test_custom_columns_are_the_fields_that_their_command_names(tmp_path):
    """The title of a column says nothing: here each is that of another field."""
    slices = (
        "NODE:.metadata.name,NAME:.spec.nodeName,pool:.spec.pool.name,G:{.spec.pool.generation}"
    )
    text = (
        "$ kubectl get pods -A -o 'custom-columns=Who:.metadata.name,NAME:.spec.nodeName,"
        "NODE:.metadata.namespace'\n"
        "Who    NAME     NODE\nweb    n1       shop\ndb     <none>   shop\n\n"
        f"$ kubectl get resourceslices -o=custom-columns={slices}\n"
        "NODE     NAME   pool   G\nn1-gpu   n1     p      7\n"
    )
    trees, lost, _ = read(tmp_path, text)
    assert {key: tree.get("spec") for key, tree in trees.items()} == {
        ("Pod", "shop", "web"): {"nodeName": "n1"},
        ("Pod", "shop", "db"): None,
        ("ResourceSlice", "", "n1-gpu"): {
            "nodeName": "n1",
            "pool": {"name": "p", "generation": 7},
        },
    }
    assert lost == []


def test_custom_columns_that_two_commands_may_have_printed_are_said(tmp_path):
    command = "$ kubectl get %s -n shop -o custom-columns=WHO:.metadata.name,UID:.metadata.uid\n"
    table = "WHO   UID\none   u-1\n"
    pods, claims = command % "pods", command % "resourceclaims"
    trees, lost, _ = read(tmp_path, f"{pods}{table}\n\n{pods}{claims}{table.replace('one', 'two')}")
    assert {key: tree["metadata"]["uid"] for key, tree in trees.items()} == {
        ("Pod", "shop", "one"): "u-1"
    }
    assert lost == [f"text.md:8: {printed.COLUMNS}"]


def test_custom_columns_of_events(tmp_path):
    command = (
        "$ kubectl get events -A --sort-by=.lastTimestamp -o custom-columns="
        "LastSeen:.lastTimestamp,N:.count,%sOBJECT:.involvedObject.name,"
        "NS:.metadata.namespace,REASON:.reason,TEXT:.message\n"
    )
    row = "2026-01-02T03:04:05Z   4   %sweb-1    shop   FailedScheduling   1 cannot allocate all\n"
    titles = "LastSeen               N   %sOBJECT   NS     REASON             TEXT\n"
    others = f"{command % ''}{titles % ''}{row % ''}"
    text = (
        f"{command % 'KIND:.involvedObject.kind,'}{titles % 'KIND   '}{row % 'Pod    '}\n{others}"
    )
    trees, lost, _ = read(tmp_path, text)
    [event] = trees.values()
    assert event["involvedObject"] == {
        "apiVersion": "v1",
        "kind": "Pod",
        "name": "web-1",
        "namespace": "shop",
    }
    assert (event["count"], event["lastTimestamp"]) == (4, "2026-01-02T03:04:05Z")
    assert (event["reason"], event["message"]) == ("FailedScheduling", "1 cannot allocate all")
    # Nothing says which kind the subject of the second table has.
    assert lost == [f"text.md:6: {printed.COLUMNS}"]


def test_damage_is_the_reason_where_nothing_is_read(tmp_path):
    with pytest.raises(InputError, match=r"text\.md:1: a table of kubectl get, but"):
        read(tmp_path, "NAME   AGE\nx      9s\n")


@pytest.mark.parametrize("titles", ["NAME    AGE", "NAME    STATE   OWNER   AGE"])
def test_table_of_which_nothing_tells_the_kind_is_said(tmp_path, titles):
    row = "   ".join("x" for _ in titles.split())
    _, lost, _ = read(tmp_path, f"$ ./show.sh\n{titles}\n{row}\n\n{PODS}")
    assert lost == ["text.md:2: a table of kubectl get, but nothing tells of which kind"]


def test_table_whose_rows_name_an_unknown_kind_is_said(tmp_path):
    """`kubectl get workloads,pods` puts the kind before each name."""
    table = "NAME                          AGE\nworkload.kueue.x-k8s.io/pod   5m"
    trees, lost, _ = read(tmp_path, f"{table}\n\n$ kubectl get pods -n shop\n{PODS}")
    assert list(trees) == [("Pod", "shop", "web")]
    assert lost == ["text.md:1: a table of kubectl get of a kind that redra does not know"]


def test_events_without_the_page_that_they_end_are_said(tmp_path):
    events = (
        "Events:\n  Type     Reason            Age   From               Message\n"
        "  Warning  FailedScheduling  9s    default-scheduler  0/1 nodes are available\n"
    )
    trees, lost, _ = read(tmp_path, f"$ kubectl describe pod -l app=web | tail\n{events}\n{PODS}")
    assert list(trees) == [("Pod", "default", "web")]
    said = "a table of events, but the object that they are about is not shown above it"
    assert lost == [f"text.md:3: {said}"]


PROMPTS = ["[root@h ~]# ", "u@h:~> ", "u@h ~ $ ", "PS C:\\> ", "\u279c  ~ ", "\u276f "]


@pytest.mark.parametrize("prompt", PROMPTS)
def test_another_program_behind_a_prompt_ends_the_commands(tmp_path, prompt):
    text = f"{prompt}kubectl get pods -n shop\nnothing\n{prompt}./show-pods.sh\n{PODS}"
    trees, _, notes = read(tmp_path, text)
    assert list(trees) == [("Pod", "default", "web")]
    assert GUESS in notes


@pytest.mark.parametrize("word", ["<namespace>", "$NS", '"${NS}"', "$(cat ns)", "YOUR_NS"])
def test_word_in_the_place_of_a_namespace_is_none(tmp_path, word):
    trees, _, notes = read(tmp_path, f"$ kubectl get pods -n {word}\n{PODS}")
    assert list(trees) == [("Pod", "default", "web")]
    assert GUESS in notes


TOGETHER = {
    "in lines": "kubectl get pods -n shop\nkubectl get pods -n other\n",
    "in lines and not in a namespace": "kubectl get pods -n shop\n\nkubectl get pods\n",
    "in one line": "$ kubectl get pods -n shop; kubectl get pods -n other\n",
    "in a sentence": "Compare `kubectl get pods -n shop` with `k get pods -n other`:\n",
}


@pytest.mark.parametrize("name", TOGETHER)
def test_which_of_several_commands_printed_a_table_is_not_known(tmp_path, name):
    trees, _, notes = read(tmp_path, f"{TOGETHER[name]}\n{PODS}\n{PODS.replace('web', 'web2')}")
    assert list(trees) == [("Pod", "default", "web"), ("Pod", "default", "web2")]
    assert GUESS.replace(": 1", ": 2") in notes


APART = {
    "for another kind": "kubectl get pods -n shop\nkubectl get resourceclaims -n other\n",
    "that was answered": "$ k get po -n other\nNo resources found\n$ kubectl get po -n shop\n",
    "with the same namespace": "kubectl get pods -n shop\nkubectl get pods -n shop -o wide\n",
    "that gets nothing": "Like `kubectl get pods -n shop`, not `kubectl logs -n other x`:\n",
    "beside an object of such a name": "kubectl get pods k -n shop\n",
}


@pytest.mark.parametrize("name", APART)
def test_command_is_known_beside_one(tmp_path, name):
    trees, _, notes = read(tmp_path, APART[name] + PODS)
    assert list(trees) == [("Pod", "shop", "web")]
    assert GUESS not in notes


def test_kind_is_not_known_below_commands_for_two_that_look_alike(tmp_path):
    commands = "kubectl get deviceclasses\nkubectl get resourceclaimtemplates -n shop\n"
    _, lost, _ = read(tmp_path, f"{commands}NAME   AGE\ngpu    9s\n\n$ kubectl get po\n{PODS}")
    assert lost == ["text.md:3: a table of kubectl get, but nothing tells of which kind"]


def test_events_are_not_in_the_namespace_of_a_command_for_another_kind(tmp_path):
    events = (
        "LAST SEEN   TYPE     REASON   OBJECT    MESSAGE\n"
        "9s          Normal   Pulled   pod/db    x\n"
    )
    trees, _, notes = read(tmp_path, f"$ kubectl get pods -n shop\n{PODS}\nand then\n{events}")
    assert {namespace for kind, namespace, _ in trees if kind == "Event"} == {"default"}
    assert GUESS in notes


@pytest.mark.parametrize(
    "table", ["NAME     READY   REASON\nsql-c    True    Ready\n", "NAME    KIND\nsql-c   Secret\n"]
)
def test_claims_of_another_group_are_none_of_devices(tmp_path, table):
    more = "NAME   STATE     AGE\nc      pending   5m\n"
    command = "$ kubectl get resourceclaims -n shop\n"
    trees, _, _ = read(tmp_path, f"{command}{table}\n{command}{more}")
    assert list(trees) == [("ResourceClaim", "shop", "c")]


NODES = """\
Name:               n1
Roles:              <none>
Taints:             example.com/dedicated=training:NoSchedule
Unschedulable:      true
Conditions:
  Type    Status   LastHeartbeatTime                 LastTransitionTime                Reason
  ----    ------   -----------------                 ------------------                ------
  Ready   Unknown  Wed, 05 Jul 2023 12:21:56 +0530   Wed, 05 Jul 2023 12:42:24 +0530   Lost
Events:              <none>


Name:               n2
CreationTimestamp:  Wed, 05 Jul 2023 12:00:00 +0530
Taints:             <none>
Unschedulable:      false
Capacity:
  cpu:  12
Allocatable:
  cpu:  12
System Info:
  Kernel Version:   6.8.0
  Kubelet Version:  v1.35.2
Events:              <none>
"""


def test_described_nodes_that_are_cordoned_and_that_reported_no_size(tmp_path):
    trees, lost, _ = read(tmp_path, f"$ kubectl describe nodes\n{NODES}")
    first, second = trees["Node", "", "n1"], trees["Node", "", "n2"]
    assert first["spec"]["unschedulable"] is True
    assert [taint["key"] for taint in first["spec"]["taints"]] == ["example.com/dedicated"]
    assert first["status"]["conditions"] == [{"type": "Ready", "status": "Unknown"}]
    assert "spec" not in second
    assert second["metadata"]["creationTimestamp"] == "2023-07-05T06:30:00Z"
    assert second["status"] == {
        "capacity": {"cpu": "12"},
        "allocatable": {"cpu": "12"},
        "nodeInfo": {"kubeletVersion": "v1.35.2"},
    }
    assert lost == []


PAGE = "Name:       {}\nNamespace:  shop\nNode:       <none>\nContainers:\n  c:\n    Image:  i\n"


def test_pages_of_several_objects_have_no_events_and_are_whole(tmp_path):
    pages = "\n\n".join(PAGE.format(name) for name in ("one", "two"))
    trees, lost, _ = read(tmp_path, f"$ kubectl describe pods -n shop\n{pages}")
    assert list(trees) == [("Pod", "shop", "one"), ("Pod", "shop", "two")]
    assert lost == []
    events = "Events:     <none>\n"
    cut = pages.replace("Image:  i\n", f"Image:  i\n{events}", 1)
    _, lost, _ = read(tmp_path, f"$ kubectl describe pod one; kubectl describe pod two\n{cut}")
    assert len(lost) == 1
    assert lost[0].endswith("the description ends before its Events, so it may be cut here")


ROWS = "NAME   READY   STATUS    RESTARTS   AGE   NODE\n"
CHANGES = {
    "placed": ("web 0/1 Pending 0 5s <none>", "web 1/1 Running 0 65s n1", False),
    "restarted": ("web 1/1 Running 0 5s n1", "web 0/1 CrashLoopBackOff 3 65s n1", False),
    "ending": ("web 1/1 Running 0 5s n1", "web 1/1 Terminating 0 65s n1", False),
    "made anew after its end": ("web 0/1 Completed 0 5s n1", "web 0/1 Pending 0 1s <none>", True),
    "made anew on another node": ("web 1/1 Running 0 5s n1", "web 1/1 Running 0 2s n2", True),
    "made anew": ("web 1/1 Terminating 0 5s n1", "web 1/1 Running 0 2s n1", True),
}


def phase_of(record):
    return record.object.get("status", {}).get("phase")


def table(row):
    return f"$ kubectl get pods -n shop -o wide\n{ROWS}{row.replace(' ', '   ')}\n\n"


def states(folder, *texts):
    for number, text in enumerate(texts):
        (folder / f"{number}.md").write_text(text)
    with open_history([folder], ReadOptions(rules=RULES)) as history:
        return [*history.records()]


@pytest.mark.parametrize("name", CHANGES)
def test_two_tables_of_a_text_that_differ_show_two_states(tmp_path, name):
    first, second, is_another = CHANGES[name]
    records = states(tmp_path, table(first) + table(second))
    live = [each for each in records if each.op is not Op.DELETED]
    alone = [states(tmp_path, table(row))[0] for row in (first, second)]
    assert [phase_of(each) for each in live] == [phase_of(each) for each in alone]
    assert len({each.uid for each in live}) == 1 + is_another
    assert any(each.op is Op.DELETED for each in records) is is_another


@pytest.mark.parametrize(
    "texts",
    [
        (table("web 1/1 Running 0 5s n1") * 2,),
        (table("web 0/1 Pending 0 5s <none>"), table("web 1/1 Running 0 65s n1")),
    ],
)
def test_tables_that_agree_or_whose_order_nothing_tells_show_one_state(tmp_path, texts):
    [record] = states(tmp_path, *texts)
    assert record.object["status"]["phase"] == "Running"
    assert record.object["spec"] == {"nodeName": "n1"}


def test_page_beside_a_table_adds_its_fields_to_the_same_state(tmp_path):
    page = (
        "Name:         web\nNamespace:    shop\nNode:         n1/10.0.0.1\nLabels:       a=b\n"
        "Status:       Running\nContainers:\n  c:\n    Image:  i\n"
        "Conditions:\n  Type    Status\n  Ready   True\nEvents:  <none>\n\n"
    )
    for text in (table("web 1/1 Running 0 5s n1") + page, page + table("web 1/1 Running 0 5s n1")):
        [record] = states(tmp_path, text)
        assert record.object["metadata"]["labels"] == {"a": "b"}
        types = {each["type"]: each["status"] for each in record.object["status"]["conditions"]}
        assert types == {"PodScheduled": "True", "Ready": "True"}


def test_rows_of_several_kinds_that_a_watch_mixes_are_told_apart(tmp_path):
    text = (
        "$ kubectl get pods,resourceclaims -n shop -w\n"
        "NAME      READY   STATUS    RESTARTS   AGE\npod/web   0/1     Pending   0          0s\n\n"
        "NAME                             STATE     AGE\n"
        "resourceclaim.resource.k8s.io/c   pending   0s\n"
        "pod/web   0/1     ContainerCreating   0          1s\n"
        "resourceclaim.resource.k8s.io/c   allocated,reserved   1s\n"
        "service/web   1.2.3.4\n"
        "pod/web   1/1     Running             0          3s\n"
    )
    (tmp_path / "text.md").write_text(text)
    with open_history([tmp_path / "text.md"], ReadOptions(rules=RULES)) as history:
        records = [*history.records()]
        lost = [each.problem for each in history.refusals]
    pods = [phase_of(each) for each in records if each.kind == "Pod"]
    claims = [each.object["status"] for each in records if each.kind == "ResourceClaim"]
    assert (pods, claims) == (["Pending", "Running"], [{}, {"allocation": {}}])
    assert lost == ["a row of another kind than its table, whose cells cannot be told apart"]


@pytest.mark.parametrize(
    ("command", "kind"),
    [
        ("kubectl -n shop describe pod web-2", "Pod"),
        ("$ oc describe -n shop pods/web-2", "Pod"),
        ("kubectl describe pod.v1. web-2 --show-events", None),
        ("kubectl get pod web-2", None),
        ("", None),
    ],
)
def test_page_that_was_shortened_is_of_the_kind_of_its_command(tmp_path, command, kind):
    page = (
        "Name:       web-2\nNamespace:  shop\nStatus:     Pending\nEvents:\n"
        "  Type     Reason            Age   From               Message\n"
        "  ----     ------            ----  ----               -------\n"
        "  Warning  FailedScheduling  2m    default-scheduler  0/1 nodes are available.\n"
    )
    trees, lost, _ = read(tmp_path, f"{command}\n{page}\n```\n{CLAIM}```\n")
    kinds = sorted(key[0] for key in trees if key[2].startswith("web-2"))
    assert kinds == (["Event", kind] if kind else [])
    assert bool(lost) is (kind is None)


def test_tables_of_a_category_and_a_kind_are_all_of_the_commands_namespace(tmp_path):
    shown = {
        "pod/web": ("READY   STATUS    RESTARTS   AGE", "1/1     Running   0          5m"),
        "service/web": ("TYPE        CLUSTER-IP   PORT(S)", "ClusterIP   10.9.0.1     443/TCP"),
        "deployment.apps/web": ("READY   UP-TO-DATE   AVAILABLE", "1/2     2            1"),
        "replicaset.apps/web-1": ("DESIRED   CURRENT   READY", "2         2         1"),
    }
    tables = [
        f"{'NAME'.ljust(len(name))}   {titles}\n{name}   {cells}\n"
        for name, (titles, cells) in shown.items()
    ]
    tables.append("NAME   STATE     AGE\none    pending   5m\n")
    trees, lost, notes = read(
        tmp_path, "$ kubectl get all,resourceclaims -n shop\n" + "\n".join(tables)
    )
    assert {namespace for _, namespace, _ in trees} == {"shop"}
    assert len(trees) == len(tables)
    assert (lost, [note for note in notes if "guess" in note]) == ([], [])


NAMES = "pod/web\nresourceclaim.resource.k8s.io/one\nnode/n1\n"


@pytest.mark.parametrize(
    ("command", "namespace"),
    [
        ("$ kubectl get po,resourceclaims,no -n shop -o name\n", "shop"),
        ("kubectl get all -oname\n", "default"),
    ],
)
def test_names_below_their_command_are_objects(tmp_path, command, namespace):
    trees, lost, _ = read(tmp_path, f"{command}{NAMES}and more\npod/other\n")
    assert lost == []
    assert set(trees) == {
        ("Pod", namespace, "web"),
        ("ResourceClaim", namespace, "one"),
        ("Node", "", "n1"),
    }


def test_names_of_all_namespaces_are_named_as_lost(tmp_path):
    trees, lost, _ = read(tmp_path, f"$ kubectl get all -A -o name\n{NAMES}")
    assert set(trees) == {("Node", "", "n1")}
    assert lost == [f"text.md:{line}: {printed.NO_NAMESPACE}" for line in (2, 3)]


@pytest.mark.parametrize(
    "before", ["", "$ kubectl apply -f x.yaml\n", "$ kubectl get po -o wide\n"]
)
def test_names_below_no_command_for_names_are_text(tmp_path, before):
    trees, lost, _ = read(tmp_path, f"{before}{NAMES}\n$ kubectl get po -n shop\n{PODS}")
    assert (set(trees), lost) == ({("Pod", "shop", "web")}, [])


@pytest.mark.parametrize(
    "output", ["jsonpath='{.items[*].status.phase}'", "go-template='{{.status.phase}}'"]
)
def test_output_of_a_template_is_named(tmp_path, output):
    text = f"$ kubectl get po web -o {output}\nRunning\n$ kubectl get po -n shop\n{PODS}"
    trees, lost, _ = read(tmp_path, text)
    assert set(trees) == {("Pod", "shop", "web")}
    assert lost == [f"text.md:2: {printed.TEMPLATE}"]


def test_log_that_begins_with_a_time_in_brackets_is_no_broken_document(tmp_path):
    (tmp_path / "dmesg.log").write_text("[ 1.0] NVRM: Xid 79\n")
    (tmp_path / "pods.txt").write_text(f"$ kubectl get po -n shop\n{PODS}")
    with open_history([tmp_path], ReadOptions(rules=RULES)) as history:
        assert [record.name for record in history.records()] == ["web"]
        assert not history.refusals
        assert ("dmesg.log", "it holds no objects, events or attempts") in history.left_out


PAGE_EVENTS = (
    "Events:\n  Type     Reason            Age                From               Message\n"
    "  ----     ------            ----               ----               -------\n"
    "  Warning  FailedScheduling  4s (x2 over 5s)    default-scheduler  0/3 nodes are available\n"
)


@pytest.mark.parametrize(
    ("command", "about"),
    [
        ("$ kubectl describe pod web -n shop", ("shop", "web")),
        ("k -n shop describe po/web", ("shop", "web")),
        ("$ oc describe pods web --namespace=shop | sed -n '/Events:/,$p'", ("shop", "web")),
        ("# kubectl describe po web", ("default", "web")),
    ],
)
def test_events_alone_are_about_the_object_of_the_command_above(tmp_path, command, about):
    trees, lost, _ = read(tmp_path, f"{command}\n\n{PAGE_EVENTS}")
    ((key, event),) = trees.items()
    assert key[0] == "Event"
    assert event["message"] == "0/3 nodes are available"
    involved = event["involvedObject"]
    assert (involved["kind"], involved["namespace"], involved["name"]) == ("Pod", *about)
    assert lost == []


@pytest.mark.parametrize("command", ["$ kubectl describe pod -n shop", "words", "$ kubectl get po"])
def test_events_alone_below_other_words_are_a_loss(tmp_path, command):
    _, lost, _ = read(tmp_path, f"{PODS}\n{command}\n{PAGE_EVENTS}")
    assert lost == [f"text.md:6: {printed.NO_SUBJECT}"]


def test_row_of_a_page_without_its_titles_is_one_loss(tmp_path):
    rows = PAGE_EVENTS.splitlines()[-1] + "\n"
    _, lost, _ = read(tmp_path, f"{PODS}\n$ kubectl describe pod web | tail -2\n{rows}{rows}")
    assert lost == [f"text.md:5: {printed.NO_EVENT_TITLES}"]
