"""Who sees what below `/redra/v1`: readers, paths and histories, with the answer each must have.

Every object has a name that stands nowhere else, so what a reader got is found by searching the
answer for names; which names a reader may find is written down here, not worked out.
"""

import base64
import json
from contextlib import asynccontextmanager
from pathlib import Path
from urllib.parse import urlencode

import pytest
import yaml

from app.api.identity.authentication import Credentials
from app.domain.log import Actor, ObjectKey
from app.domain.objects.write.commands import CreateObject, RecordDecision, RecordFact
from tests import draws
from tests.api.serving import claim, pod, serving
from tests.api.test_authentication import ROLES

ROOT = Path(__file__).resolve().parent.parent.parent
RBAC = "/apis/rbac.authorization.k8s.io/v1"
DRA = "/apis/resource.k8s.io/v1"
RULES = "/apis/resource.k8s.io/v1beta2/devicetaintrules"
USERS = ("ann", "bob", "cat", "dan", "fay", "gus")
READERS = (*USERS, "root")
VALUE = base64.b64encode(b"value-of-the-secret").decode()

PATHS = {"nonResourceURLs": ["/redra/v1/*"], "verbs": ["get", "post"]}
LAB = {
    "apiGroups": ["", "resource.k8s.io"],
    "resources": ["pods", "resourceclaims", "events"],
    "verbs": ["get", "list"],
}
CLUSTER = [
    {"apiGroups": [""], "resources": ["nodes", "pods"], "verbs": ["list"]},
    {"apiGroups": ["resource.k8s.io"], "resources": ["*"], "verbs": ["list"]},
]
ONE_SECRET = {
    "apiGroups": [""], "resources": ["secrets"], "resourceNames": ["s-lab"], "verbs": ["get"],
}  # fmt: skip
ALL = {"apiGroups": ["*"], "resources": ["*"], "verbs": ["*"]}

NAMES = (
    "p-lab", "p-other", "c-lab", "c-other", "s-lab", "s-other", "m-lab", "node-one", "slice-one",
    "decided-summary", "import-report", "warned-lab", "warned-other", VALUE,
)  # fmt: skip
"""What is searched for: objects of both namespaces, and texts that tell of them."""

LAB_NAMES = {"p-lab", "c-lab", "warned-lab"}
CLUSTER_NAMES = {"p-lab", "p-other", "c-lab", "c-other", "node-one", "slice-one"}
EVERYTHING = set(NAMES)


def headers(user):
    return {"authorization": f"Bearer {user}-token"}


def known():
    actors = {f"{user}-token": Actor(user=user, groups=("system:authenticated",)) for user in USERS}
    root = Actor(user="root", groups=("system:masters", "system:authenticated"))
    return Credentials(tokens={**actors, "root-token": root}, anonymous=None)


async def bind(server, prefix, user, rules, namespace=""):
    """Give a user rules in a history, everywhere or in one namespace."""
    kind = "Role" if namespace else "ClusterRole"
    place = f"{prefix}{RBAC}/namespaces/{namespace}/" if namespace else f"{prefix}{RBAC}/"
    meta = {"metadata": {"name": f"{user}-{kind.lower()}"}}
    await server.post(f"{place}{kind.lower()}s", {**meta, "rules": rules}, **headers("root"))
    await server.post(
        f"{place}{kind.lower()}bindings",
        {
            **meta,
            "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": kind,
                        "name": meta["metadata"]["name"]},
            "subjects": [{"kind": "User", "name": user, "apiGroup": "rbac.authorization.k8s.io"}],
        },
        **headers("root"),
    )  # fmt: skip


async def fill(server, history):
    """Objects of two namespaces, a decision, warnings and an import's report."""
    prefix, root = f"/h/{history}", headers("root")
    await server.post(f"{prefix}/api/v1/nodes", {"metadata": {"name": "node-one"}}, **root)
    pool = {"name": "pool", "generation": 1, "resourceSliceCount": 1}
    spec = {"driver": "gpu.example.com", "nodeName": "node-one", "pool": pool, "devices": []}
    slice_ = {"metadata": {"name": "slice-one"}, "spec": spec}
    taint = {"key": "example.com/t", "value": "v", "effect": "NoSchedule"}
    selector = {"driver": "other.example.com"}
    rule = {"metadata": {"name": "rule-one"}, "spec": {"deviceSelector": selector, "taint": taint}}
    await server.post(f"{prefix}{RULES}", rule, **root)
    await server.post(f"{prefix}{DRA}/resourceslices", slice_, **root)
    runtime = await server.histories.open(history)
    for space in ("lab", "other"):
        if space != "lab" or history != "default":
            await server.post(f"{prefix}/api/v1/namespaces", {"metadata": {"name": space}}, **root)
        core = f"{prefix}/api/v1/namespaces/{space}"
        secret = {"metadata": {"name": f"s-{space}"}, "data": {"x": VALUE}}
        await server.post(f"{core}/secrets", secret, **root)
        await server.post(f"{core}/pods", pod(f"p-{space}"), **root)
        claims = f"{prefix}{DRA}/namespaces/{space}/resourceclaims"
        await server.post(claims, claim(f"c-{space}"), **root)
        warning = {
            "metadata": {"name": f"p-{space}.e"}, "type": "Warning", "reason": "FailedScheduling",
            "message": f"warned-{space}",
            "involvedObject": {"kind": "Pod", "namespace": space, "name": f"p-{space}"},
        }  # fmt: skip
        await server.post(f"{core}/events", warning, **root)
    core = f"{prefix}/api/v1/namespaces/lab"
    await server.post(f"{core}/configmaps", {"metadata": {"name": "m-lab"}}, **root)
    body = {"controller": "scheduler", "resource": "pods", "outcome": "Unschedulable",
            "summary": {"message": "decided-summary"}}  # fmt: skip
    await runtime.submit(
        RecordDecision(namespace="lab", name="p-lab", body=body), actor=Actor(user="redra")
    )
    report = {"phase": "finished", "message": "import-report"}
    key = ObjectKey("redra", "imports", "", history)
    fact = RecordFact(type="HistoryImported", key=key, body=report)
    await runtime.submit(fact, actor=Actor(user="redra"))


@asynccontextmanager
async def filled(**options):
    """Histories `default` and `one`, alike but for their rules."""
    async with serving(credentials=known(), authorization=ROLES, **options) as server:
        root = headers("root")
        await server.post("/redra/v1/histories", {"name": "one"}, **root)
        runtime = await server.histories.open("default")
        tree = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "lab"}}
        space = CreateObject(key=ObjectKey("", "namespaces", "", "lab"), version="v1", tree=tree)
        await runtime.submit(space, actor=Actor(user="redra"))
        for history in ("default", "one"):
            await fill(server, history)
        # ann: the one wide right of the default history, and no other.
        await bind(server, "", "ann", [PATHS])
        # The others have their rules in `one` alone.
        await bind(server, "/h/one", "bob", [PATHS])
        await bind(server, "/h/one", "bob", [LAB], namespace="lab")
        await bind(server, "/h/one", "cat", [PATHS, *CLUSTER])
        await bind(server, "/h/one", "dan", [PATHS])
        await bind(server, "/h/one", "dan", [ONE_SECRET], namespace="lab")
        await bind(server, "/h/one", "fay", [ALL])
        await bind(server, "/h/one", "gus", [PATHS, ALL])
        yield server


ONE, DEFAULT = "/redra/v1/histories/one", "/redra/v1/histories/default"
WHY = "why?kind=pod&namespace=lab&name=p-lab"
BLAST = {"objects": [], "delete": ["resourceslice/slice-one"]}
NOTHING: frozenset[str] = frozenset()
MEMBERS = ("bob", "cat", "dan")
"""Who may get the paths of `one`, and not everything there."""

# Path below `one`: reader → the names that must be found. Who is left out must be refused.
SEEN = {
    "": dict.fromkeys(MEMBERS, NOTHING),
    "/views": dict.fromkeys(MEMBERS, NOTHING),
    "/events": {
        "bob": LAB_NAMES,
        "cat": CLUSTER_NAMES | {"decided-summary"},
        "dan": {"s-lab", VALUE},
    },
    "/decisions": {"cat": {"p-lab", "decided-summary"}},
    "/views/decisions": {"cat": {"p-lab", "decided-summary"}},
    "/views/timeline": {
        "bob": LAB_NAMES,
        "cat": CLUSTER_NAMES | {"decided-summary"},
        "dan": {"s-lab"},
    },
    "/views/claims": {"bob": {"c-lab"}, "cat": {"c-lab", "c-other"}, "dan": NOTHING},
    "/views/claim_devices": dict.fromkeys(MEMBERS, NOTHING),
    "/views/pools": {"cat": {"node-one", "slice-one"}},
    "/views/devices": {"cat": NOTHING},
    "/views/counters": {"cat": NOTHING},
    "/views/taints": {"cat": NOTHING},
    "/views/taint_rules": {"cat": NOTHING},
    "/views/outcomes": {"cat": NOTHING},
    "/views/activity": dict.fromkeys(MEMBERS, NOTHING),
    f"/{WHY}": {"cat": {"p-lab", "node-one", "decided-summary"}},
    # Nobody has decided about this pod here, so what an Event says of it would be told.
    "/why?kind=pod&namespace=other&name=p-other": {"cat": {"p-other", "node-one"}},
    "/blast?kind=devicetaintrule&name=rule-one": {"cat": NOTHING},
    "/controllers": {},
    # Quotas and templates take part, which none of them may read everywhere.
    "/fit": {},
    "/capacity": {"cat": NOTHING},
    "/replay": dict.fromkeys(MEMBERS, NOTHING),
    "/diff?with=one": {},
    # They name whatever was written at any time.
    "/again?by=outcomes": {},
    "/rehearsal?to=1.36": {},
    "/findings": {"cat": {"p-lab", "p-other", "c-lab", "c-other"}},
    "/timeline?decisions=true": {
        "bob": LAB_NAMES,
        "cat": CLUSTER_NAMES | {"decided-summary"},
        "dan": {"s-lab"},
    },
    "/entries?decisions=true": {
        "bob": LAB_NAMES,
        "cat": CLUSTER_NAMES | {"decided-summary"},
        "dan": {"s-lab"},
    },
    # What the history is called, its length and its hash, which its page tells as well.
    "/head": dict.fromkeys(MEMBERS, NOTHING),
    "/lanes": {"cat": {"p-lab", "p-other", "c-lab", "c-other", "node-one", "decided-summary"}},
    "/map": {"cat": {"node-one"}},
    "/attempts?kind=pod&namespace=lab&name=p-lab": {"cat": {"p-lab"}},
    # It quotes Events, which none of them may read everywhere.
    "/scan": {},
    # Nobody has started one; tests of jobs start some.
    "/jobs": dict.fromkeys(MEMBERS, NOTHING),
    # No rule is broken; who lacks one of the kinds that rules read is refused.
    "/lint": {"cat": NOTHING},
    "/pace": {"cat": {"p-lab", "p-other"}},
    "/trace": {"cat": CLUSTER_NAMES | {"decided-summary"}},
    "/find?q=-": {
        "bob": {"p-lab", "c-lab"},
        "cat": CLUSTER_NAMES,
        "dan": {"s-lab"},
    },
    "/object?kind=pod&namespace=lab&name=p-lab": {"bob": {"p-lab"}, "cat": {"p-lab"}},
}


UNSERVED = {"/again?by=outcomes": 400}
"""What readers of all get where a server has no process that decides a history again."""

CHANGES = ("/copy", "/fork", "/rename")
"""Paths that change which histories there are; nothing is read there."""

OF_JOBS = ("/minimise", "/rehearse", "/export", "/jobs/{job}", "/jobs/{job}/files/{file}")
"""Paths that start a job, or need one."""


def found_in(text):
    return {name for name in NAMES if name in text}


@draws.in_turn("readers")
@pytest.mark.parametrize("reader", READERS)
async def test_reader_sees_what_the_rules_of_the_history_let_them_read(reader):
    async with filled() as server:
        outcomes, expected = {}, {}
        for part, table in SEEN.items():
            answer = await server.raw("GET", f"{ONE}{part}", **headers(reader))
            if reader in ("gus", "root"):
                outcomes[part], expected[part] = answer.status_code, UNSERVED.get(part, 200)
            elif reader in table:
                outcomes[part] = answer.status_code, found_in(answer.text)
                expected[part] = 200, set(table[reader])
            else:
                # The refusal repeats the path that was asked for, and says no more.
                asked = found_in(part)
                outcomes[part] = answer.status_code, found_in(answer.text) - asked
                expected[part] = 403, set()
        assert outcomes == expected


async def test_every_path_and_view_is_in_the_table():
    async with filled() as server:
        views = await server.get(f"{ONE}/views", **headers("root"))
        parts = {f"/views/{view['name']}" for view in views["items"]}
        index = (await server.get("/redra/v1", **headers("root")))["paths"]
        below = "/redra/v1/histories/{history}"
        parts |= {path.removeprefix(below) for path in index if path.startswith(below)}
        parts -= {"/views/{view}", *CHANGES, *OF_JOBS}
        assert parts == {part.partition("?")[0] for part in SEEN}


@pytest.mark.parametrize("reader", ["gus", "root"])
async def test_who_may_do_everything_sees_everything(reader):
    async with filled() as server:
        answer = await server.raw("GET", f"{ONE}/events", **headers(reader))
        assert found_in(answer.text) == EVERYTHING
        assert (
            len(answer.text.splitlines()) == (await server.get(ONE, **headers(reader)))["revision"]
        )


@draws.in_turn("readers")
@pytest.mark.parametrize("reader", USERS)
async def test_rules_of_one_history_open_no_other(reader):
    async with filled() as server:
        for part in SEEN:
            answer = await server.raw("GET", f"{DEFAULT}{part}", **headers(reader))
            if reader != "ann":
                assert answer.status_code == 403, (part, answer.text[:500])
            elif answer.status_code == 200:
                assert not found_in(answer.text), (part, answer.text[:500])


@pytest.mark.parametrize("reader", USERS)
async def test_lists_name_the_histories_that_a_reader_may_look_at(reader):
    async with filled() as server:
        for path in ("/redra/v1/histories", "/redra/v1/workers"):
            answer = await server.raw("GET", path, **headers(reader))
            if reader == "ann":
                found = [item.get("name") or item["history"] for item in answer.json()["items"]]
                assert found == ["default"]
            else:
                assert answer.status_code == 403
        names = await server.get("/redra/v1/histories", **headers("root"))
        assert [item["name"] for item in names["items"]] == ["default", "one"]


@pytest.mark.parametrize(
    "path",
    [
        "/redra/v1/histories/one//events",
        "/redra//v1/histories/one/events",
        "/redra/v1//histories//one/events/",
        "/redra/v1/histories/%6fne/events",
    ],
)
async def test_other_ways_to_write_a_path_open_nothing(path):
    async with filled() as server:
        answer = await server.raw("GET", path, **headers("ann"))
        assert answer.status_code in (403, 404), answer.text
        assert not found_in(answer.text)


async def test_role_of_the_page_opens_all_pages_and_no_secret():
    text = (ROOT / "docs/how-to/secure.md").read_text()
    (body,) = [part for part in text.split("```yaml\n")[1:] if part.startswith("apiVersion: rbac")]
    role = yaml.safe_load(body.partition("```")[0])
    async with filled() as server:
        await bind(server, "/h/one", "ann", role["rules"])
        for part in SEEN:
            answer = await server.raw("GET", f"{ONE}{part}", **headers("ann"))
            if part.startswith(("/again", "/diff", "/rehearsal")):
                assert answer.status_code == 403
                continue
            assert answer.status_code == 200, (part, answer.text)
            assert not found_in(answer.text) & {"s-lab", "s-other", VALUE}


@pytest.mark.parametrize("reader", USERS)
async def test_who_may_not_make_histories_changes_none(reader):
    async with filled() as server:
        for part in CHANGES:
            body = {"name": f"of-{reader}"}
            for history in (ONE, DEFAULT):
                found = await server.raw("POST", f"{history}{part}", body, **headers(reader))
                # ann may make histories, not read the default one; and that one keeps its name.
                refused = 409 if (reader, history, part) == ("ann", DEFAULT, "/rename") else 403
                assert found.status_code == refused, (history, part, found.text)
        assert (await server.raw("DELETE", ONE, **headers(reader))).status_code == 403
        names = await server.get("/redra/v1/histories", **headers("root"))
        assert [item["name"] for item in names["items"]] == ["default", "one"]


async def test_limit_counts_what_the_reader_sees():
    async with filled() as server:
        for limit in (1, 2):
            answer = await server.raw("GET", f"{ONE}/events?limit={limit}", **headers("bob"))
            assert len(answer.text.splitlines()) == limit
            assert found_in(answer.text) <= LAB_NAMES


async def test_history_that_is_not_there_is_told_to_those_of_the_default_history():
    async with filled() as server:
        for path in ("/redra/v1/histories/none/events", "/redra/v1/histories/none"):
            await server.get(path, 404, **headers("ann"))
            await server.get(path, 403, **headers("bob"))
            await server.get(path, 404, **headers("root"))
        await server.get("/h/none/api/v1/pods", 403, **headers("bob"))
        await server.get("/h/one/api/v1/pods", 403, **headers("ann"))


@pytest.mark.parametrize(
    ("reader", "code"), [("ann", 403), ("bob", 403), ("cat", 200), ("fay", 403)]
)
async def test_blast_of_a_proposal_needs_the_whole_cluster(reader, code):
    async with filled() as server:
        await server.call("POST", f"{ONE}/blast", BLAST, code, **headers(reader))


FITTING = {
    "apiGroups": ["", "resource.k8s.io"],
    "resources": ["resourcequotas", "resourceclaimtemplates"],
    "verbs": ["list"],
}
HIDDEN = {"k": "quoted-by-a-policy"}
QUOTING = {
    "paramKind": {"apiVersion": "v1", "kind": "ConfigMap"},
    "matchConstraints": {
        "resourceRules": [
            {"apiGroups": ["*"], "apiVersions": ["*"], "operations": ["*"],
             "resources": ["pods", "deviceclasses"]},
        ]
    },
    "validations": [
        {"expression": "false", "reason": "Forbidden",
         "messageExpression": "string(params.data.k)"},
    ],
}  # fmt: skip
ADMISSION = "admissionregistration.k8s.io/v1"
POLICY = {
    "apiVersion": ADMISSION, "kind": "ValidatingAdmissionPolicy", "metadata": {"name": "quoting"},
    "spec": QUOTING,
}  # fmt: skip
BINDING = {
    "apiVersion": ADMISSION, "kind": "ValidatingAdmissionPolicyBinding",
    "metadata": {"name": "quoting"},
    "spec": {
        "policyName": "quoting", "validationActions": ["Deny"],
        "paramRef": {"name": "hidden", "namespace": "other", "parameterNotFoundAction": "Deny"},
    },
}  # fmt: skip
CLASS = {
    "apiVersion": "resource.k8s.io/v1", "kind": "DeviceClass", "metadata": {"name": "c"},
    "spec": {},
}  # fmt: skip


@asynccontextmanager
async def quoted():
    """Histories where cat may ask what fits, and an object that only a policy could tell of."""
    async with filled() as server:
        await server.post(
            f"/h/one{RBAC}/clusterroles", {"metadata": {"name": "fit"}, "rules": [FITTING]},
            **headers("root"),
        )  # fmt: skip
        reference = {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "fit"}
        cat = {"apiGroup": "rbac.authorization.k8s.io", "kind": "User", "name": "cat"}
        bound = {"metadata": {"name": "fit"}, "roleRef": reference, "subjects": [cat]}
        await server.post(f"/h/one{RBAC}/clusterrolebindings", bound, **headers("root"))
        place = "/h/one/api/v1/namespaces/other/configmaps"
        hidden = {"metadata": {"name": "hidden"}, "data": HIDDEN}
        await server.post(place, hidden, **headers("root"))
        await server.get(f"{place}/hidden", 403, **headers("cat"))
        yield server


def form_of(*trees):
    return urlencode({"manifest": yaml.safe_dump_all(trees)}).encode()


FORM = {"content_type": "application/x-www-form-urlencoded"}


async def test_policy_that_a_reader_posts_quotes_no_object():
    async with quoted() as server:
        trees = [POLICY, BINDING, pod("wanted")]
        refused = await server.call("POST", f"{ONE}/fit", {"objects": trees}, 400, **headers("cat"))
        assert "ValidatingAdmissionPolicy of admissionregistration.k8s.io" in refused["message"]
        page = await server.raw(
            "POST", "/ui/h/one/capacity", form_of(*trees), **FORM, **headers("cat")
        )
        assert "ValidatingAdmissionPolicy of admissionregistration.k8s.io" in page.text
        assert HIDDEN["k"] not in page.text


@pytest.mark.parametrize("actions", [["Deny"], ["Warn"]])
async def test_policy_that_is_there_is_quoted_to_readers_of_everything_alone(actions):
    async with quoted() as server:
        root, group = headers("root"), f"/h/one/apis/{ADMISSION}"
        await server.post(f"{group}/validatingadmissionpolicies", POLICY, **root)
        bound = {**BINDING, "spec": {**BINDING["spec"], "validationActions": actions}}
        await server.post(f"{group}/validatingadmissionpolicybindings", bound, **root)
        texts = {}
        for reader in ("cat", "root"):
            own = headers(reader)
            answers = [
                await server.raw("POST", f"{ONE}/fit", {"objects": [pod("w")]}, **own),
                await server.raw("POST", f"{ONE}/blast", {"objects": [CLASS]}, **own),
                await server.raw("POST", "/ui/h/one/capacity", form_of(pod("w")), **FORM, **own),
                await server.raw("POST", "/ui/h/one/blast", form_of(CLASS), **FORM, **own),
            ]
            assert all(answer.status_code in (200, 403) for answer in answers)
            texts[reader] = [answer.text for answer in answers]
        quoting = [HIDDEN["k"] in text for text in texts["root"]]
        # What fits tells no warnings, and the page of a change tells those of no policy.
        assert quoting[:2] == ([True, True] if actions == ["Deny"] else [False, True])
        assert not any(HIDDEN["k"] in text for text in texts["cat"])
        said = ["an admission policy" in text for text in texts["cat"]]
        assert said == quoting


async def test_reasons_of_a_rule_tell_nothing_of_who_made_its_pods():
    """The pods of a rule name a ReplicaSet, and only that names a Deployment."""
    apps = "/h/one/apis/apps/v1/namespaces/lab"
    owned = {"apiVersion": "apps/v1", "controller": True}
    template = {"metadata": {"labels": {"a": "b"}}, "spec": pod("x")["spec"]}
    spec = {"selector": {"matchLabels": {"a": "b"}}, "template": template}
    async with filled() as server:
        root = headers("root")
        made = await server.post(
            f"{apps}/deployments", {"metadata": {"name": "d-hidden"}, "spec": spec}, **root
        )
        owner = {**owned, "kind": "Deployment", "name": "d-hidden", "uid": made["metadata"]["uid"]}
        meta = {"name": "r-set", "ownerReferences": [owner]}
        made = await server.post(f"{apps}/replicasets", {"metadata": meta, "spec": spec}, **root)
        owner = {**owned, "kind": "ReplicaSet", "name": "r-set", "uid": made["metadata"]["uid"]}
        core = "/h/one/api/v1/namespaces/lab/pods"
        held = pod("p-held", nodeName="node-one",
                   resourceClaims=[{"name": "g", "resourceClaimName": "c-held"}])  # fmt: skip
        held["metadata"] |= {"ownerReferences": [owner], "labels": {"a": "b"}}
        uid = (await server.post(core, held, **root))["metadata"]["uid"]
        claims = f"/h/one{DRA}/namespaces/lab/resourceclaims"
        wanted = await server.post(claims, claim("c-held"), **root)
        result = {"request": wanted["spec"]["devices"]["requests"][0]["name"],
                  "driver": "other.example.com", "pool": "pool", "device": "d"}  # fmt: skip
        wanted["status"] = {
            "allocation": {"devices": {"results": [result]}},
            "reservedFor": [{"resource": "pods", "name": "p-held", "uid": uid}],
        }
        await server.put(f"{claims}/c-held/status", wanted, **root)
        driver = {"driver": "other.example.com"}
        pool = {"name": "pool", "generation": 1, "resourceSliceCount": 1}
        slice_ = {"metadata": {"name": "slice-two"},
                  "spec": {**driver, "nodeName": "node-one", "pool": pool,
                           "devices": [{"name": "d"}]}}  # fmt: skip
        await server.post(f"/h/one{DRA}/resourceslices", slice_, **root)
        taint = {"key": "example.com/t", "effect": "NoExecute"}
        rule = {"metadata": {"name": "evicts"}, "spec": {"deviceSelector": driver, "taint": taint}}
        await server.post(f"/h/one{RULES}", rule, **root)
        named = {}
        for reader in ("cat", "root"):
            for part in ("why", "blast"):
                path = f"{ONE}/{part}?kind=devicetaintrule&name=evicts"
                answer = await server.raw("GET", path, **headers(reader))
                assert answer.status_code == 200, answer.text
                assert "p-held" in answer.text
                named[reader, part] = "d-hidden" in answer.text
        assert named == {
            ("cat", "why"): False, ("cat", "blast"): False,
            ("root", "why"): True, ("root", "blast"): True,
        }  # fmt: skip


async def test_reason_is_refused_in_the_words_of_the_real_server():
    async with filled() as server:
        refused = await server.get(f"{ONE}/{WHY}", 403, **headers("bob"))
        assert refused["message"] == (
            'nodes is forbidden: User "bob" cannot list resource "nodes" in API group "" at the '
            "cluster scope"
        )
        secret = f"{ONE}/why?kind=secret&namespace=lab&name=s-lab"
        refused = await server.get(secret, 403, **headers("cat"))
        assert 'cannot get resource "secrets"' in refused["message"]


async def test_attempts_name_no_trigger_that_the_reader_may_not_see():
    async with filled() as server:
        runtime = await server.histories.open("one")
        lines = (await server.raw("GET", f"{ONE}/events", **headers("root"))).text.splitlines()
        writes = {write["name"]: write["revision"] for write in map(json.loads, lines)}
        body = {"controller": "scheduling", "resource": "pods", "outcome": "Unschedulable",
                "summary": {"message": "again"}}  # fmt: skip
        for cause in ("s-other", "p-other"):
            await runtime.submit(
                RecordDecision(namespace="lab", name="p-lab", body=body),
                actor=Actor(user="redra"),
                cause=writes[cause],
            )
        path = f"{ONE}/attempts?kind=pod&namespace=lab&name=p-lab"
        triggers, woken = {}, {}
        for reader in ("cat", "root"):
            items = (await server.get(path, **headers(reader)))["items"]
            triggers[reader] = [item["trigger"] and item["trigger"]["name"] for item in items]
            why = (await server.raw("GET", f"{ONE}/{WHY}", **headers(reader))).text
            woken[reader] = [name for name in ("s-other", "p-other") if name in why]
        assert triggers == {"cat": [None, "p-other"], "root": ["s-other", "p-other"]}
        assert woken == {"cat": ["p-other"], "root": ["s-other", "p-other"]}


async def test_comparison_of_the_past_needs_the_rights_to_what_was_there_then():
    async with serving(credentials=known(), authorization=ROLES) as server:
        root = headers("root")
        await server.post("/redra/v1/histories", {"name": "one"}, **root)
        core = "/h/one/api/v1/namespaces"
        runtime = await server.histories.open("one")
        await server.post(core, {"metadata": {"name": "lab"}}, **root)
        map_ = {"metadata": {"name": "m"}, "data": {"key": "value-of-the-map"}}
        await server.post(f"{core}/lab/configmaps", map_, **root)
        then = runtime.views.revision
        await server.call("DELETE", f"{core}/lab/configmaps/m", None, 200, **root)
        rbac = ["roles", "rolebindings", "clusterroles", "clusterrolebindings"]
        present = {*(name for _, name in runtime.views.objects.resources()), *rbac}
        assert "configmaps" not in present
        rule = {"apiGroups": ["*"], "resources": sorted(present), "verbs": ["list"]}
        await bind(server, "/h/one", "dan", [PATHS, *CLUSTER, rule])
        path = f"{ONE}/diff?with=one&by=objects"
        await server.get(path, 200, **headers("dan"))
        for at in (f"at={then}&withAt=1", f"at=1&withAt={then}"):
            refused = await server.raw("GET", f"{path}&{at}", **headers("dan"))
            assert refused.status_code == 403, refused.text
            assert "value-of-the-map" not in refused.text


@pytest.mark.parametrize(
    ("user", "code"), [("system:serviceaccount:lab:spy", 403), ("person", 200)]
)
async def test_service_account_is_nobody_in_a_history_that_its_own_is_compared_with(user, code):
    """Whoever may make histories could make one with an account of that name."""
    async with filled() as server:
        meta = {"metadata": {"name": "reads-all"}}
        role = {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "reads-all"}
        subject = {"kind": "User", "name": user, "apiGroup": "rbac.authorization.k8s.io"}
        for prefix in ("", "/h/one"):
            rules = {**meta, "rules": [PATHS, ALL]}
            await server.post(f"{prefix}{RBAC}/clusterroles", rules, **headers("root"))
            binding = {**meta, "roleRef": role, "subjects": [subject]}
            await server.post(f"{prefix}{RBAC}/clusterrolebindings", binding, **headers("root"))
        asking = {**headers("root"), "impersonate_user": user}
        await server.get(f"{ONE}/diff?with=one", 200, **asking)
        await server.get(f"{ONE}/diff?with=default", code, **asking)
        page = await server.raw("GET", "/ui/h/one/compare?with=default", **asking)
        assert page.status_code == code


async def test_follower_loses_what_a_role_no_longer_gives():
    async with filled() as server:
        after = (await server.get(ONE, **headers("root")))["revision"]
        path = f"{ONE}/events?follow=true&after={after}"
        core = "/h/one/api/v1/namespaces/lab"
        async with server.watch(path, **headers("bob")) as following:
            await server.post(f"{core}/pods", pod("p-second"), **headers("root"))
            assert (await following.line())["name"] == "p-second"
            role = f"/h/one{RBAC}/namespaces/lab/roles/bob-role"
            events = {**LAB, "resources": ["events"]}
            body = {"metadata": {"name": "bob-role"}, "rules": [events]}
            await server.put(role, body, **headers("root"))
            await server.post(f"{core}/pods", pod("p-third"), **headers("root"))
            event = {
                "metadata": {"name": "e-last"},
                "involvedObject": {"kind": "Pod", "namespace": "lab", "name": "p"},
            }
            await server.post(f"{core}/events", event, **headers("root"))
            assert (await following.line())["name"] == "e-last"


async def test_missing_account_is_told_to_who_may_read_accounts_alone():
    async with filled() as server:
        core, root = "/h/one/api/v1/namespaces/lab", headers("root")
        await server.post(f"{core}/serviceaccounts", {"metadata": {"name": "there"}}, **root)
        await server.post(f"{core}/pods", pod("p-asks", serviceAccountName="ghost"), **root)
        await server.post(f"{core}/pods", pod("p-has", serviceAccountName="there"), **root)
        told = {}
        for user in ("cat", "gus"):
            answer = await server.get(f"{ONE}/findings", **headers(user))
            told[user] = [
                (one["count"], one["objects"][0]["name"])
                for one in answer["items"]
                if one["kind"] == "MissingAccounts"
            ]
            assert ("ghost" in json.dumps(answer)) == bool(told[user])
    assert told == {"cat": [], "gus": [(1, "p-asks")]}
