"""The OpenAPI document of `/redra/v1`, generated from the models."""

from functools import lru_cache
from typing import Any

import msgspec
from pydantic import BaseModel
from pydantic.json_schema import models_json_schema

from app.api.redra import models, page_answers, replay_models
from app.api.redra.experiment_models import JobStatus
from app.api.redra.experiments import EXPERIMENTS, STARTING

_ROOT = "/redra/v1"
_LENGTHY = "/histories/{history}/rehearsal"
_AT = (
    "at",
    "string",
    "A revision, an instant, or a duration before the end; default: the end.",
)
_AFTER = ("after", "integer", "Only entries after this revision.")
_AFTER_MOMENT = ("after", "string", "Only entries after this revision or instant.")
_FROM_MOMENT = ("from", "string", "From this revision, instant or time before the end on.")
_LIMIT = ("limit", "integer", "Maximum number of entries.")
_SUBJECT = tuple(
    (name, "string", f"Only decisions with this {name}.")
    for name in ("controller", "resource", "namespace", "name", "outcome")
)

# path, method, summary, query parameters, body, answer (None: JSON lines)
_OPERATIONS: tuple[tuple[str, str, str, tuple[Any, ...], Any, Any], ...] = (
    ("", "get", "The resources of this API", (), None, models.Index),
    ("/histories", "get", "All histories", (), None, models.HistoryList),
    (
        "/histories",
        "post",
        "Create a history",
        (),
        models.NewHistory,
        models.History,
    ),
    ("/histories/{history}", "get", "One history", (), None, models.History),
    (
        "/histories/{history}",
        "delete",
        "Delete a history with its events, views and snapshots; a tombstone remains",
        (),
        None,
        models.DeletedHistory,
    ),
    (
        "/histories/{history}/rename",
        "post",
        "Rename a history",
        (),
        models.NewName,
        models.History,
    ),
    (
        "/histories/{history}/copy",
        "post",
        "Copy a history, or its beginning",
        (),
        models.NewCopy,
        models.History,
    ),
    (
        "/histories/{history}/fork",
        "post",
        "Create a history that continues from a moment of this one, without copying it",
        (),
        models.NewFork,
        models.ForkedHistory,
    ),
    (
        "/histories/{history}/replay",
        "get",
        "The state of a paced replay, and its conflicts with writes of clients",
        (),
        None,
        replay_models.Replay,
    ),
    (
        "/histories/{history}/replay",
        "post",
        "Change the pace of a paced replay, or move it to another moment",
        (),
        replay_models.ReplayOrder,
        replay_models.Replay,
    ),
    ("/deleted", "get", "The tombstones of deleted histories", (), None, models.DeletedHistoryList),
    (
        "/histories/{history}/events",
        "get",
        "The log as JSON lines; with follow, also new events",
        (
            _AFTER_MOMENT,
            _FROM_MOMENT,
            _LIMIT,
            _AT,
            ("follow", "boolean", "Continue with new events."),
            ("timeoutSeconds", "integer", "Seconds to follow; 0 or absent: no limit."),
            ("form", "string", "bundle: the form of events in bundles and of `redra log`."),
        ),
        None,
        None,
    ),
    (
        "/histories/{history}/decisions",
        "get",
        "Recorded decisions",
        (_AFTER, _LIMIT, _AT, *_SUBJECT),
        None,
        models.DecisionList,
    ),
    (
        "/histories/{history}/controllers",
        "get",
        "The controllers, whether they are on, and which process runs each",
        (),
        None,
        models.ControllerList,
    ),
    ("/histories/{history}/views", "get", "The views that can be read", (), None, models.ViewList),
    (
        "/histories/{history}/views/{view}",
        "get",
        "The rows of a view",
        (_AT, _LIMIT),
        None,
        models.Rows,
    ),
    (
        "/histories/{history}/why",
        "get",
        "The reasons for the state of an object",
        (
            ("kind", "string", "Kind, plural or short name."),
            ("name", "string", "Name of the object."),
            ("namespace", "string", "Its namespace (default: `default`); `*`: in no known one."),
            ("node", "string", "Only the reasons of this node."),
            ("help", "boolean", "Search for the smallest changes that would help."),
            _AT,
        ),
        None,
        models.Why,
    ),
    (
        "/histories/{history}/findings",
        "get",
        "The findings of a history, ranked",
        (
            ("namespace", "string", "Only findings about objects of this namespace."),
            (
                "wait",
                "integer",
                "Seconds to wait for a log that is not read to its end, at most "
                "REDRA_FINDINGS_WAIT_SECONDS, which is the default; 0 answers at once with what "
                "has been read, and `note` says up to which revision.",
            ),
            _AT,
        ),
        None,
        page_answers.FindingList,
    ),
    (
        "/histories/{history}/find",
        "get",
        "Objects whose name contains the query",
        (("q", "string", "NAME, NAMESPACE/NAME or KIND/NAME; a part of the name is enough."), _AT),
        None,
        page_answers.HitList,
    ),
    (
        "/histories/{history}/object",
        "get",
        "An object with its fields, versions and relations",
        (
            ("kind", "string", "Kind, plural or short name."),
            ("name", "string", "Name of the object."),
            ("namespace", "string", "Namespace of the object; default: `default`."),
            _AT,
        ),
        None,
        page_answers.ObjectHistory,
    ),
    (
        "/histories/{history}/lanes",
        "get",
        "States of pods, their claims, devices and nodes over time",
        (
            ("namespace", "string", "Only objects of this namespace."),
            (
                "name",
                "string",
                "Only objects whose name contains this text, and the objects that belong to them.",
            ),
            ("since", "string", "Only states that lasted beyond this revision or instant."),
            ("until", "string", "Only states that began before this revision or instant."),
            _AT,
        ),
        None,
        page_answers.LaneList,
    ),
    (
        "/histories/{history}/map",
        "get",
        "Pools and devices, with their holders",
        (
            ("driver", "string", "Only pools of this driver."),
            ("pool", "string", "Only pools whose name contains this text."),
            ("node", "string", "Only pools of this node."),
            ("labels", "string", "Only pools of nodes with these labels, a label selector."),
            _AT,
        ),
        None,
        page_answers.DeviceMap,
    ),
    (
        "/histories/{history}/attempts",
        "get",
        "The scheduler's attempts for a pod, with triggers, verdicts and back-off",
        (
            ("kind", "string", "pod"),
            ("name", "string", "Name of the pod."),
            ("namespace", "string", "Namespace of the object; default: `default`."),
            _AT,
        ),
        None,
        page_answers.AttemptList,
    ),
    (
        "/histories/{history}/pace",
        "get",
        "The time that pods took to start, step by step",
        (
            ("namespace", "string", "Only objects of this namespace."),
            ("name", "string", "Only pods whose name contains this text."),
            _AT,
        ),
        None,
        page_answers.StartPace,
    ),
    (
        "/histories/{history}/scan",
        "get",
        "The known defects and traps that occur in a history",
        (
            ("labels", "string", "A label selector; claims made for a pod count as the pod."),
            _AT,
        ),
        None,
        models.SightingList,
    ),
    (
        "/histories/{history}/trace",
        "get",
        "The history as tracks, in Chrome's JSON trace-event format",
        (_AT,),
        None,
        page_answers.Trace,
    ),
    (
        "/histories/{history}/timeline",
        "get",
        "Entries of the timeline, filtered, the newest first",
        (
            ("kind", "string", "Kind of the entry, such as PodUnschedulable."),
            ("resource", "string", "Plural of the object's kind."),
            ("namespace", "string", "Namespace of the object."),
            ("name", "string", "Name of the object."),
            ("actor", "string", "A part of the author, as the entries show it."),
            ("text", "string", "A part of the text."),
            ("decisions", "boolean", "Show recorded decisions too."),
            ("before", "integer", "Only entries before this revision."),
            _LIMIT,
            _AT,
        ),
        None,
        page_answers.TimelineEntries,
    ),
    (
        "/histories/{history}/entries",
        "get",
        "The timeline as JSON lines, then the number of entries; with follow, also new entries",
        (
            ("namespace", "string", "Only of this namespace, or about objects that its pods use."),
            ("name", "string", "Name of the object."),
            ("object", "string", "KIND/NAME of the object."),
            ("kinds", "string", "Kinds of entries, such as PodUnschedulable, separated by commas."),
            ("device", "string", "DRIVER/POOL/NAME of a device, or the end of that text."),
            ("node", "string", "Only entries that concern this node."),
            ("actor", "string", "A part of the author, as the entries show it."),
            ("labels", "string", "A label selector; claims made for a pod count as the pod."),
            ("since", *_FROM_MOMENT[1:]),
            ("until", "string", "Up to this revision, instant or time before the end."),
            ("last", "integer", "Number of latest entries; 0 or absent: all."),
            ("decisions", "boolean", "Show recorded decisions too."),
            ("follow", "boolean", "Continue with new events."),
        ),
        None,
        None,
    ),
    (
        "/histories/{history}/head",
        "get",
        "The head of a history up to a moment, signed by the server",
        (_AT,),
        None,
        models.SignedHistoryHead,
    ),
    (
        "/histories/{history}/blast",
        "get",
        "The effect of an existing DeviceTaintRule, compared with a state without it",
        (
            ("kind", "string", "devicetaintrule"),
            ("name", "string", "Name of the rule."),
            _AT,
        ),
        None,
        models.Blast,
    ),
    (
        "/histories/{history}/blast",
        "post",
        "The effects of proposed changes; nothing is written",
        (_AT,),
        models.Proposal,
        models.Blast,
    ),
    (
        "/histories/{history}/fit",
        "get",
        "How many more copies of a class or a template fit; default: of every class and template",
        (
            ("class", "string", "A DeviceClass: claims for devices of it."),
            ("count", "integer", "Devices of the class in each claim; default: 1."),
            ("template", "string", "A ResourceClaimTemplate."),
            ("namespace", "string", "Namespace of the template, or of the copies."),
            _AT,
        ),
        None,
        page_answers.FittingCopies,
    ),
    (
        "/histories/{history}/fit",
        "post",
        "How many more copies of claims, templates or pods fit; nothing is written",
        (("namespace", "string", "Namespace of objects that do not name one."), _AT),
        models.Wanted,
        page_answers.FittingCopies,
    ),
    (
        "/histories/{history}/capacity",
        "get",
        "The largest claim of each class that fits, and stranded counters, over time",
        (_AT,),
        None,
        page_answers.Capacities,
    ),
    (
        "/histories/{history}/diff",
        "get",
        "The different decisions of this history (A) and another one (B)",
        (
            ("with", "string", "The other history."),
            (
                "withAt",
                "string",
                "Moment of the other history, or end; default: the same instant, at most its end.",
            ),
            ("by", "string", "decisions (default), outcomes or objects."),
            (
                "within",
                "number",
                "Seconds by which a decision may be earlier or later; default: 1.",
            ),
            ("page", "boolean", "In the form that the page shows."),
            _AT,
        ),
        None,
        models.Diff,
    ),
    (
        _LENGTHY,
        "get",
        "A replay of recorded inputs under another release; 202 and its job for a long history",
        (
            ("wait", "number", "Wait up to this many seconds for a job; default: 10."),
            ("to", "string", "The release, such as 1.37."),
            ("gate", "string", "Feature gates to change: NAME=true, separated by commas."),
            ("quirk", "string", "Quirks to change: NAME=on, separated by commas."),
            _AT,
        ),
        None,
        models.Rehearsal,
    ),
    ("/workers", "get", "The histories of this process", (), None, models.WorkerList),
    *EXPERIMENTS,
)


@lru_cache(maxsize=256)
def parameters(method: str, path: tuple[str, ...]) -> frozenset[str] | None:
    """The names of an operation's query parameters; None where nothing is served.

    `path` is what stands behind `/redra/v1`.
    """
    for known, served, _, named, *_ in _OPERATIONS:
        steps = known.split("/")[1:]
        if served == method.lower() and len(steps) == len(path):
            pairs = zip(steps, path, strict=True)
            if all(step == given or step.startswith("{") for step, given in pairs):
                return frozenset(name for name, *_ in named)
    return None


def paths() -> list[str]:
    """All paths, for the index."""
    return sorted({_ROOT + path for path, *_ in _OPERATIONS} | {f"{_ROOT}/openapi.json"})


@lru_cache(maxsize=1)
def document() -> bytes:
    """The document as JSON."""
    paths: dict[str, Any] = {}
    for path, method, summary, parameters, body, answer in _OPERATIONS:
        paths.setdefault(_ROOT + path, {})[method] = _operation(
            path, method, summary, parameters, body, answer
        )
    shapes = [(model, "serialization") for model in _models()]
    _, schemas = models_json_schema(
        shapes,  # type: ignore[arg-type]  # the pairs are as the function wants them
        ref_template="#/components/schemas/{model}",
    )
    return msgspec.json.encode(
        {
            "openapi": "3.1.0",
            "info": {"title": "redra", "version": "v1"},
            "paths": paths,
            "components": {"schemas": schemas["$defs"]},
        }
    )


def _models() -> list[type[BaseModel]]:
    models_used: dict[type[BaseModel], None] = {}
    for *_, body, answer in _OPERATIONS:
        for model in (body, answer):
            if model is not None and model is not bytes:
                models_used[model] = None
    return list(models_used)


def _operation(
    path: str, method: str, summary: str, parameters: tuple[Any, ...], body: Any, answer: Any
) -> dict[str, Any]:
    words = [part.strip("{}") for part in path.split("/") if part]
    named = [part.strip("{}") for part in path.split("/") if part.startswith("{")]
    content: dict[str, Any] = {"application/x-ndjson": {"schema": {"type": "string"}}}
    if answer is bytes:
        content = {"application/octet-stream": {"schema": {"type": "string", "format": "binary"}}}
    elif answer is not None:
        content = {"application/json": {"schema": _ref(answer)}}
    code = "200"
    if body in (models.NewHistory, models.NewCopy, models.NewFork):
        code = "201"
    elif body in STARTING:
        code = "202"
    operation: dict[str, Any] = {
        "operationId": "".join([method, *(word.title() for word in words)]),
        "summary": summary,
        "parameters": [
            {"name": name, "in": "path", "required": True, "schema": {"type": "string"}}
            for name in named
        ]
        + [
            {"name": name, "in": "query", "description": text, "schema": {"type": kind}}
            for name, kind, text in parameters
        ],
        "responses": {code: {"description": summary, "content": content}} | _started(path),
    }
    if body is not None:
        operation["requestBody"] = {
            "required": True,
            "content": {"application/json": {"schema": _ref(body)}},
        }
    return operation


def _started(path: str) -> dict[str, Any]:
    """The other answer to a question that a job may answer."""
    content = {"application/json": {"schema": _ref(JobStatus)}}
    return {"202": {"description": "Its job", "content": content}} if path == _LENGTHY else {}


def _ref(model: type[BaseModel]) -> dict[str, str]:
    return {"$ref": f"#/components/schemas/{model.__name__}"}
