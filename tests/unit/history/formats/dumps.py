"""Files that hold objects as they are: dumps, bundles, archives, mixtures."""

import base64
import bz2
import gzip
import html
import io
import itertools
import json
import lzma
import pprint
import re
import tarfile
import zipfile
from email.message import EmailMessage

import yaml
import zstandard

from tests.unit.history.formats import truth

GROUP_LIST = {"kind": "APIGroupList", "apiVersion": "v1", "groups": [{"name": "apps"}]}


def write(folder, files):
    """Write texts, bytes or values as JSON under their names; returns the folder."""
    for name, content in files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(as_bytes(content))
    return folder


def as_bytes(content):
    if isinstance(content, bytes):
        return content
    return (content if isinstance(content, str) else json.dumps(content, indent=2)).encode()


def one(folder, name, content):
    """One file and its path."""
    write(folder, {name: content})
    return folder / name


def listed(items):
    return {"apiVersion": "v1", "kind": "List", "items": items}


def dump_json(folder):
    return one(folder, "all.json", listed(truth.objects()))


def dump_yaml(folder):
    return one(folder, "all.yaml", yaml.safe_dump(listed(truth.objects())))


def dump_documents(folder):
    return one(folder, "all.yaml", yaml.safe_dump_all(truth.objects(), explicit_start=True))


def dump_utf16(folder):
    return one(folder, "all.txt", json.dumps(listed(truth.objects())).encode("utf-16"))


def typed_lists(folder):
    lists = [truth.typed_list(kind) for kind in truth.PLURALS]
    lists += [truth.typed_list("DaemonSet", is_empty=True), GROUP_LIST]
    return one(folder, "lists.json", "\n".join(json.dumps(each, indent=1) for each in lists))


def mixture(folder):
    """JSON documents with text between them, indented and not, and a YAML list at the end."""
    first, second, *rest = truth.objects()
    text = "\n".join(
        [
            "$ kubectl get namespace shop -o json",
            json.dumps(first, indent=4),
            'Error from server (NotFound): nodes "n2" not found',
            "",
            "$ kubectl get node n1 -o json # compact",
            json.dumps(second),
            "and the rest:",
            yaml.safe_dump(listed(rest)),
            "That is all, thank you.",
        ]
    )
    return one(folder, "notes.txt", text)


def structured_log(folder):
    """Lines of a controller's log as JSON, with the objects that it wrote about in a field."""
    begin = {"level": "info", "ts": "2026-01-01T00:00:00Z", "msg": "reconciling"}
    values = [begin, *(begin | {"context": {"object": tree}} for tree in truth.objects())]
    values.append(begin | {"object": {"name": "web", "namespace": "shop"}})
    return one(folder, "manager.log", "".join(json.dumps(value) + "\n" for value in values))


def chat(folder):
    """What a chat makes of it: its own quotes, and spaces that do not break."""
    first, second, *rest = truth.objects()
    parts = ["Jane  10:42", "it’s stuck, here is the “whole” thing:"]
    parts += [set_as_prose(json.dumps(first, indent=2)), "Bob  10:43", "and the node?"]
    text = yaml.safe_dump(second, default_style='"').replace("  ", "\xa0\xa0")
    text = re.sub(r'^([\s-]*)"([^"]+)":', r"\1\2:", text, flags=re.MULTILINE)
    parts += [set_as_prose(text), "Jane  10:44", set_as_prose(json.dumps(rest)), "thanks!"]
    return one(folder, "chat.txt", "\n".join(parts))


def sent_events(folder):
    """As a browser gets them from a server that sends events."""
    events = [
        f"event: ADDED\nid: {at}\ndata: {json.dumps(tree)}\n"
        for at, tree in enumerate(truth.objects())
    ]
    return one(folder, "stream.txt", "\n".join([": here they come\n", *events]))


def printed_by_python(folder):
    """On one line, and on many as `pprint` sets it."""
    first, *rest = truth.objects()
    texts = [f"2026-11-01 DEBUG the first is {first!r}", *map(pprint.pformat, rest)]
    return one(folder, "client.log", "\n".join([*texts, "done"]))


def commented(folder):
    """A comment behind each value and a comma before each bracket, beside text in a fence."""
    first, *rest = truth.objects()
    texts = [
        re.sub(
            r"(?<![\[{,])$(?=\n *[\]}])", ", // the last", json.dumps(tree, indent=2), flags=re.M
        )
        for tree in (first, listed(rest))
    ]
    return one(folder, "issue.md", "```json\n{}\n```\nand\n\n{}\n".format(*texts))


def admission_reviews(folder):
    """What a webhook logs that was asked about the deletion of each object."""
    lines = []
    for tree in truth.objects():
        resource = {"group": "", "version": "v1", "resource": truth.PLURALS[tree["kind"]]}
        request = {"uid": "r", "resource": resource, "operation": "DELETE", "userInfo": {}}
        request |= {"object": None, "oldObject": tree}
        lines.append({"kind": "AdmissionReview", "apiVersion": "admission.k8s.io/v1"})
        lines[-1]["request"] = request
    return one(folder, "webhook.log", "".join(json.dumps(line) + "\n" for line in lines))


def windows_text(folder):
    """The comment of an editor that writes other bytes than UTF-8."""
    text = f"# Jérôme’s copy\n{yaml.safe_dump_all(truth.objects())}"
    return one(folder, "pods.yaml", text.encode("cp1252"))


def set_as_prose(text):
    """Every other quote opens, the others close."""
    marks = itertools.cycle("“”")
    return re.sub('"', lambda _: next(marks), text)


def table_with_objects(folder):
    """What a server answers to `includeObject=Object` and a wish for tables."""
    rows = [{"cells": [tree["metadata"]["name"]], "object": tree} for tree in truth.objects()]
    columns = [{"name": "Name", "type": "string"}]
    table = {"kind": "Table", "apiVersion": "meta.k8s.io/v1", "metadata": {}}
    return one(folder, "table.json", table | {"columnDefinitions": columns, "rows": rows})


def markdown(folder):
    parts = ["# It hangs", "", "See the log:", "```", "panic: oh no", "```", "and what there is:"]
    for number, tree in enumerate(truth.objects()):
        indent = "  " * (number % 2)
        body = yaml.safe_dump(tree) if number % 3 else json.dumps(tree, indent=2)
        fenced = ["```yaml" if number % 3 else "~~~json", *body.splitlines(), "```"]
        parts += ["", f"{number}. the {tree['kind']}:", *(indent + line for line in fenced)]
    return one(folder, "issue.md", "\n".join(parts))


def letter(folder):
    """A letter with some of the objects in its text and the others attached, packed."""
    message = EmailMessage()
    message["From"], message["Subject"] = "a@example.com", "It hangs"
    text, attached = truth.objects()[:3], truth.objects()[3:]
    message.set_content(f"See:\n\n{yaml.safe_dump(listed(text))}", cte="base64")
    packed = gzip.compress(json.dumps(listed(attached)).encode())
    message.add_attachment(packed, "application", "gzip", filename="all.json.gz")
    return one(folder, "bug.eml", message.as_bytes())


def encoded(folder):
    """What a terminal carries: a packed file in letters."""
    packed = gzip.compress(json.dumps(listed(truth.objects())).encode())
    return one(folder, "all.txt", base64.encodebytes(packed))


def export_in_xml(folder):
    """Results of a search with JSON, and one with a part of a page."""
    first, *rest = (html.escape(json.dumps(tree)) for tree in truth.objects())
    page = html.escape(f"<p>See</p><pre>{first}</pre>")
    values = "".join(f"<v>{each}</v>\n" for each in (page, *rest))
    return one(folder, "all.xml", f"<?xml version='1.0'?>\n<results>\n{values}</results>\n")


def documents_with_texts(folder):
    """Cells of a notebook: what a command printed, and Markdown."""
    cells = [
        {"cell_type": "code", "outputs": [{"text": yaml.safe_dump(tree).splitlines(keepends=True)}]}
        for tree in truth.objects()[1:]
    ]
    fenced = f"It hangs\n```json\n{json.dumps(truth.objects()[0], indent=2)}\n```\n"
    cells.append({"cell_type": "markdown", "source": fenced.splitlines(keepends=True)})
    return one(folder, "notes.ipynb", {"cells": cells, "nbformat": 4})


def tracker(folder):
    """The description of an issue: macros, some of them around text on their own lines."""
    parts = ["h2. It hangs", "{quote}really{quote}"]
    for number, tree in enumerate(truth.objects()):
        body = yaml.safe_dump(tree) if number % 3 else json.dumps(tree, indent=2)
        macro = ("{code:yaml|title=x}", "{noformat}\n", "{code}\n")[number % 3]
        parts += [f"Object {number}:", f"{macro}{body}{macro.partition(':')[0].strip()}"]
        parts[-1] += "}" if macro.startswith("{code:") else ""
    return one(folder, "issue.txt", "\n".join(parts))


def folder_with_foreign_files(folder):
    return write(
        folder / "bug",
        {
            "objects.yaml": yaml.safe_dump(listed(truth.objects())),
            "values.yaml": "replicas: 3\nimage: {tag: v1}\n",
            "README.md": "# How it happened\n\nI do not know.\n",
            "screen.png": b"\x89PNG\r\n\x1a\n\0\0\0",
            "broken.json": '{"apiVersion": "v1", "kind": "Pod", "metadata": {"name"\n',
        },
    )


def troubleshoot(folder):
    """A support bundle: arrays of objects whose kind stands in the name of the folder or file."""
    root = "support-bundle-2026-01-02"
    files = {f"{root}/version.yaml": "apiVersion: troubleshoot.sh/v1beta2\nkind: SupportBundle\n"}
    for tree in truth.objects():
        plural = truth.PLURALS[tree["kind"]]
        namespace = tree["metadata"].get("namespace", "")
        name = f"{plural}/{namespace}.json" if namespace else f"{plural}.json"
        files[f"{root}/cluster-resources/{name}"] = [truth.bare(tree)]
    files[f"{root}/cluster-resources/pods-errors.json"] = []
    files[f"{root}/cluster-resources/groups.json"] = GROUP_LIST
    files[f"{root}/cluster-resources/auth-cani-list/shop.json"] = {"status": {"incomplete": False}}
    return _tar_of(folder, "bundle.tar.gz", files, gzip.compress)


def sonobuoy(folder):
    files = {"meta/config.json": {"Description": "x"}, "podlogs/shop/web-1/logs/main.txt": "hi\n"}
    for tree in truth.objects():
        group = truth.group(tree) or "core"
        version = tree["apiVersion"].rpartition("/")[2]
        namespace = tree["metadata"].get("namespace", "")
        place = f"resources/ns/{namespace}" if namespace else "resources/cluster"
        name = f"{place}/{group}_{version}_{truth.PLURALS[tree['kind']]}.json"
        files[name] = {"items": [truth.bare(tree)]}
    files["servergroups.json"] = GROUP_LIST
    return _tar_of(folder, "sonobuoy.tar.gz", files, gzip.compress)


def must_gather(folder):
    files = {"timestamp": "2026-01-02 03:04:00 +0000 UTC\n", "version": "must-gather\n4.20\n"}
    for tree in truth.objects():
        group = truth.group(tree) or "core"
        plural, name = truth.PLURALS[tree["kind"]], tree["metadata"]["name"]
        namespace = tree["metadata"].get("namespace", "")
        if tree["kind"] == "Pod":
            files[f"namespaces/{namespace}/pods/{name}/{name}.yaml"] = yaml.safe_dump(tree)
            files[f"namespaces/{namespace}/core/pods.yaml"] = yaml.safe_dump(listed([tree]))
        elif namespace:
            files[f"namespaces/{namespace}/{group}/{plural}.yaml"] = yaml.safe_dump(listed([tree]))
        else:
            path = f"cluster-scoped-resources/{group}/{plural}/{name}.yaml"
            files[path] = yaml.safe_dump(tree)
    files["namespaces/shop/pods/web-1/main/main/logs/current.log"] = "2026-01-02T03:04:05Z hi\n"
    inner = {f"quay-io-image-sha256/{name}": content for name, content in files.items()}
    page = "<!DOCTYPE html>\n<html><body><table><tr><td>Pulled</td></tr></table></body></html>\n"
    inner["event-filter.html"] = page
    return _tar_of(folder, "must-gather.tar.xz", inner, lzma.compress)


def insights(folder):
    """OpenShift insights: one object a file; compacted events that are no objects."""
    files = {
        "insights-operator/gathers.json": {"status_reports": []},
        "events/shop.json": {"items": [{"namespace": "shop", "reason": "Pulled", "message": "x"}]},
        "config/metrics": "# HELP up\nup 1\n",
    }
    for tree in truth.objects():
        plural = truth.PLURALS[tree["kind"]]
        namespace, name = tree["metadata"].get("namespace", ""), tree["metadata"]["name"]
        place = "/".join(part for part in (plural.removesuffix("s"), namespace, name) if part)
        files[f"config/{place}.json"] = truth.bare(tree) if tree["kind"] == "Node" else tree
    return _tar_of(folder, "insights.tar.gz", files, gzip.compress)


def cluster_info_files():
    files = {}
    for tree in truth.objects():
        namespace = tree["metadata"].get("namespace", "")
        plural = truth.PLURALS[tree["kind"]]
        name = f"{namespace}/{plural}.json" if namespace else f"{plural}.json"
        files[name] = truth.typed_list(tree["kind"])
    return files


def cluster_info_folder(folder):
    logs = {
        "shop/web-1/logs.txt": "==== START logs for container main of pod shop/web-1 ====\nhi\n"
    }
    return write(folder / "dump", cluster_info_files() | logs)


def cluster_info_stream(folder):
    text = "".join(json.dumps(each, indent=4) + "\n" for each in cluster_info_files().values())
    logs = (
        "==== START logs for container main of pod shop/web-1 ====\n"
        '{"kind": "Pod", "apiVersion": "v1", "metadata": {"name": "of-the-log"}}\n'
        "listening\n"
        "==== END logs for container main of pod shop/web-1 ====\n"
    )
    empty = json.dumps(truth.typed_list("CronJob", is_empty=True), indent=4)
    return one(folder, "cluster-info.txt", f"{logs}{text}{logs}{empty}\n")


def velero(folder):
    files = {"metadata/version": "1\n"}
    for tree in truth.objects():
        group = truth.group(tree)
        plural = truth.PLURALS[tree["kind"]] + (f".{group}" if group else "")
        namespace, name = tree["metadata"].get("namespace", ""), tree["metadata"]["name"]
        place = f"namespaces/{namespace}" if namespace else "cluster"
        for version in ("", "v1-preferredversion/"):
            files[f"resources/{plural}/{version}{place}/{name}.json"] = tree
    return _tar_of(folder, "backup.tar.gz", files, gzip.compress)


def archives_within_archives(folder):
    innermost = _tar({"all.json": listed(truth.objects())})
    zipped = io.BytesIO()
    with zipfile.ZipFile(zipped, "w") as archive:
        archive.writestr("inner/all.tar.zst", zstandard.compress(innermost))
        archive.writestr("inner/notes.txt", "nothing here")
    outer = bz2.compress(_tar({"middle.zip": zipped.getvalue()}))
    return one(folder, "outer.tar.bz2", outer)


def unsafe_archive(folder):
    """A tar whose other entries climb out, are absolute, or are links."""
    content = io.BytesIO()
    with tarfile.open(fileobj=content, mode="w") as archive:
        for name in ("../outside.json", "/etc/outside.json"):
            _add(archive, name, b'{"apiVersion": "v1", "kind": "Pod"}')
        link = tarfile.TarInfo("linked.json")
        link.type, link.linkname = tarfile.SYMTYPE, "/etc/passwd"
        archive.addfile(link)
        _add(archive, "all.json", as_bytes(listed(truth.objects())))
    return one(folder, "unsafe.tar", content.getvalue())


def simulator_export(folder):
    fields = {"pods": "Pod", "nodes": "Node", "namespaces": "Namespace"}
    fields |= {"resourceClaims": "ResourceClaim", "resourceSlices": "ResourceSlice"}
    fields |= {"deviceClasses": "DeviceClass"}
    tree = {
        name: [truth.bare(each) for each in truth.objects(kind)] for name, kind in fields.items()
    }
    return one(folder, "export.json", tree | {"pvs": None, "schedulerConfig": {}})


def autoscaler_snapshot(folder):
    (node,), (pod,) = truth.objects("Node"), truth.objects("Pod")
    tree = {"NodeList": [{"Node": truth.bare(node), "Pods": [truth.bare(pod)]}]}
    return one(folder, "snapshot.json", tree | {"StartTimestamp": "2026-01-02T03:04:05Z"})


def scheduler_snapshot(folder):
    tree = {"rawObjects": {"pods": [truth.bare(each) for each in truth.objects("Pod")]}}
    path = folder / "snapshot.zip"
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("snapshot.json", json.dumps(tree))
    return path


def tables(folder):
    text = """$ kubectl get pods -A -o wide
NAMESPACE   NAME    READY   STATUS    RESTARTS      AGE   IP         NODE   NOMINATED NODE
shop        web-1   1/1     Running   2 (3d ago)    4d    10.0.0.1   n1     <none>

$ kubectl get nodes
NAME   STATUS   ROLES           AGE   VERSION
n1     Ready    control-plane   9d    v1.36.2

$ kubectl get resourceslices
NAME     NODE   DRIVER            POOL   AGE
n1-gpu   n1     gpu.example.com   n1     9d

$ kubectl get deviceclasses
NAME   AGE
gpu    9d

$ kubectl -n shop get resourceclaim
NAME    STATE                AGE
claim   allocated,reserved   4d
"""
    return one(folder, "terminal.txt", text)


def descriptions(folder):
    text = """Name:             web-1
Namespace:        shop
Priority:         0
Node:             n1/192.168.0.1
Labels:           made/for=the-tests
Annotations:      <none>
Status:           Running
Containers:
  main:
    Container ID:   containerd://1
    Image:          web:1
Conditions:
  Type              Status
  Ready             True
Events:             <none>


Name:         claim
Namespace:    shop
Labels:       made/for=the-tests
API Version:  resource.k8s.io/v1
Kind:         ResourceClaim
Metadata:
  UID:  1
Spec:
  Devices:
Events:  <none>
"""
    return one(folder, "described.txt", text)


def terminal(folder):
    """What somebody pasted into an issue: a table, the claim described, and the claim as it is."""
    claim = """Name:         claim
Namespace:    shop
Labels:       made/for=the-tests
Annotations:  <none>
API Version:  resource.k8s.io/v1
Kind:         ResourceClaim
Metadata:
  Creation Timestamp:  2026-01-01T00:00:00Z
  Resource Version:    7
  UID:                 uid-claim
Spec:
  Devices:
    Requests:
      Exactly:
        Allocation Mode:    ExactCount
        Count:              1
        Device Class Name:  gpu
      Name:                 r
Events:                     <none>"""
    text = f"""## What happened?

```
root@node:~# kubectl get resourceclaim -n shop
NAME      STATE     AGE
claim     pending   5m
other     pending   5m
root@node:~# kubectl describe resourceclaim claim -n shop
{claim}
root@node:~# exit
```
"""
    return one(folder, "issue.md", text)


def _tar(files):
    content = io.BytesIO()
    with tarfile.open(fileobj=content, mode="w") as archive:
        for name, each in files.items():
            _add(archive, name, as_bytes(each))
    return content.getvalue()


def _add(archive, name, content):
    info = tarfile.TarInfo(name)
    info.size = len(content)
    archive.addfile(info, io.BytesIO(content))


def _tar_of(folder, name, files, pack):
    return one(folder, name, pack(_tar(files)))
