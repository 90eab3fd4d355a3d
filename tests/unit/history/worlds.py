"""Builders for recorded lines: only what matters to a test is named."""

import json
from pathlib import Path

from app.adapters.history.opening import open_history
from app.adapters.history.reading import ReadOptions
from app.domain.log.records import Op, Record

CLAIMS = ("resource.k8s.io", "v1", "resourceclaims", "ResourceClaim")
PODS = ("", "v1", "pods", "Pod")
NAMESPACES = ("", "v1", "namespaces", "Namespace")


def tree(type_=CLAIMS, name="c1", namespace="default", uid="", rv="", metadata=None, **parts):
    group, version, _, kind = type_
    found = {
        "apiVersion": f"{group}/{version}" if group else version,
        "kind": kind,
        "metadata": {"name": name, "uid": uid or f"uid-{name}", **(metadata or {})},
    }
    if type_ is not NAMESPACES:
        found["metadata"]["namespace"] = namespace
    if rv:
        found["metadata"]["resourceVersion"] = str(rv)
    return {**found, **parts}


def audit(
    verb,
    response=None,
    *,
    type_=CLAIMS,
    name="",
    namespace="default",
    subresource="",
    code=None,
    request=None,
    second=0,
    level="RequestResponse",
    stage="ResponseComplete",
    uri="",
    user="alice",
    agent="kubectl/v1.37.1",
    uid="",
    **more,
):
    """One audit line as a value; `second` is its stage time."""
    group, version, resource, _ = type_
    event = {
        "kind": "Event",
        "apiVersion": "audit.k8s.io/v1",
        "level": level,
        "auditID": f"audit-{verb}-{second}",
        "stage": stage,
        "requestURI": uri or "/apis/x",
        "verb": verb,
        "user": {"username": user, "groups": ["system:authenticated"]},
        "userAgent": agent,
        "objectRef": {
            "resource": resource,
            "namespace": namespace,
            "name": name,
            "uid": uid,
            "apiGroup": group,
            "apiVersion": version,
            "subresource": subresource,
        },
        "responseStatus": {"metadata": {}, "code": code or (201 if verb == "create" else 200)},
        "requestReceivedTimestamp": f"2026-01-01T00:00:{second:02d}.000000Z",
        "stageTimestamp": f"2026-01-01T00:00:{second:02d}.500000Z",
        **more,
    }
    if response is not None:
        event["responseObject"] = response
    if request is not None:
        event["requestObject"] = request
    return event


def watch(type_, object_):
    return {"type": type_, "object": object_}


def write_lines(path: Path, values) -> Path:
    path.write_text("".join(json.dumps(value) + "\n" for value in values))
    return path


def read_records(*paths: Path, **options) -> list[Record]:
    with open_history(list(paths), ReadOptions(**options)) as recorded:
        return list(recorded.records())


def audit_records(folder: Path, *events, **options) -> list[Record]:
    return read_records(write_lines(folder / "audit.log", events), **options)


def brief(records, *, with_context=True):
    """Operation and name of each record."""
    return [
        (record.op.value, record.name)
        for record in records
        if with_context or record.op is not Op.CONTEXT
    ]
