"""The OpenAPI document of `/redra/v1`, generated from the models."""

from functools import lru_cache
from typing import Any

import msgspec
from pydantic import BaseModel
from pydantic.json_schema import models_json_schema

from app.api.redra import models, page_answers, replay_models

_ROOT = "/redra/v1"
_AT = ("at", "string", "A revision, an instant, or how long before the end; absent: it.")
_AFTER = ("after", "integer", "Only what comes after this revision.")
_AFTER_MOMENT = ("after", "string", "Only what comes after this revision or instant.")
_LIMIT = ("limit", "integer", "How many at most.")
_SUBJECT = tuple(
    (name, "string", f"Only decisions with this {name}.")
    for name in ("controller", "resource", "namespace", "name", "outcome")
)

# path, method, summary, query parameters, body, answer (None: JSON lines)
_OPERATIONS: tuple[tuple[str, str, str, tuple[Any, ...], Any, Any], ...] = (
    ("", "get", "What is offered here", (), None, models.Index),
    ("/histories", "get", "All histories", (), None, models.HistoryList),
    (
        "/histories",
        "post",
        "Make an empty history",
        (),
        models.NewHistory,
        models.History,
    ),
    ("/histories/{history}", "get", "One history", (), None, models.History),
    (
        "/histories/{history}",
        "delete",
        "Delete a history with all that belongs to it; a tombstone stays",
        (),
        None,
        models.DeletedHistory,
    ),
    (
        "/histories/{history}/rename",
        "post",
        "Give a history another name",
        (),
        models.NewName,
        models.History,
    ),
    (
        "/histories/{history}/copy",
        "post",
        "Make a history of the same events",
        (),
        models.NewCopy,
        models.History,
    ),
    (
        "/histories/{history}/fork",
        "post",
        "Make a history that goes on where this one stood, without copying it",
        (),
        models.NewFork,
        models.ForkedHistory,
    ),
    (
        "/histories/{history}/replay",
        "get",
        "How a paced replay stands, and what clients' writes were in conflict with",
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
    ("/deleted", "get", "What is left of deleted histories", (), None, models.DeletedHistoryList),
    (
        "/histories/{history}/events",
        "get",
        "The log as JSON lines; with follow it goes on",
        (
            _AFTER_MOMENT,
            _LIMIT,
            _AT,
            ("follow", "boolean", "Go on with what is appended."),
            ("timeoutSeconds", "integer", "How long to follow; 0 or absent: without an end."),
            ("form", "string", "bundle: as `redra log` prints them and bundles have them."),
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
        "Which controllers run",
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
        "Why an object is as it is",
        (
            ("kind", "string", "Kind, plural or short name."),
            ("name", "string", "Name of the object."),
            ("namespace", "string", "Its namespace; absent: default."),
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
        "What is wrong in a history, ranked",
        (("namespace", "string", "Only what is about objects of this namespace."), _AT),
        None,
        page_answers.FindingList,
    ),
    (
        "/histories/{history}/find",
        "get",
        "Objects whose name holds the query",
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
            ("namespace", "string", "Its namespace; absent: default."),
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
            ("namespace", "string", "Only of this namespace."),
            ("name", "string", "Only of objects whose name holds this, with what is theirs."),
            ("since", "string", "Only what lasted after this revision or instant."),
            ("until", "string", "Only what lasted before this revision or instant."),
            _AT,
        ),
        None,
        page_answers.LaneList,
    ),
    (
        "/histories/{history}/map",
        "get",
        "Pools and devices with who holds them",
        (
            ("driver", "string", "Only pools of this driver."),
            ("pool", "string", "Only pools whose name holds this."),
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
        "What the scheduler tried for a pod, with triggers, verdicts and back-off",
        (
            ("kind", "string", "pod"),
            ("name", "string", "Name of the pod."),
            ("namespace", "string", "Its namespace; absent: default."),
            _AT,
        ),
        None,
        page_answers.AttemptList,
    ),
    (
        "/histories/{history}/pace",
        "get",
        "How quickly pods started, step by step",
        (
            ("namespace", "string", "Only of this namespace."),
            ("name", "string", "Only of pods whose name holds this."),
            _AT,
        ),
        None,
        page_answers.StartPace,
    ),
    (
        "/histories/{history}/scan",
        "get",
        "Which known defects and traps a history shows",
        (_AT,),
        None,
        models.SightingList,
    ),
    (
        "/histories/{history}/trace",
        "get",
        "Everything that happened as tracks, in Chrome's JSON trace-event format",
        (_AT,),
        None,
        page_answers.Trace,
    ),
    (
        "/histories/{history}/timeline",
        "get",
        "What happened, filtered, the newest first",
        (
            ("kind", "string", "What happened, such as PodUnschedulable."),
            ("resource", "string", "Plural of the object's kind."),
            ("namespace", "string", "Namespace of the object."),
            ("name", "string", "Name of the object."),
            ("actor", "string", "A part of the user name."),
            ("text", "string", "A part of the text."),
            ("decisions", "boolean", "Show recorded decisions too."),
            ("before", "integer", "Only what came before this revision."),
            _LIMIT,
            _AT,
        ),
        None,
        page_answers.TimelineEntries,
    ),
    (
        "/histories/{history}/entries",
        "get",
        "The whole timeline as JSON lines, then its count; with follow it goes on",
        (
            ("namespace", "string", "Of this namespace, or of what its pods use."),
            ("name", "string", "Name of the object."),
            ("object", "string", "KIND/NAME of the object."),
            ("kinds", "string", "What happened, such as PodUnschedulable; separated by commas."),
            ("device", "string", "DRIVER/POOL/NAME of a device, or the end of that."),
            ("node", "string", "Only what has to do with this node."),
            ("labels", "string", "A label selector; claims made for a pod count as the pod."),
            ("since", "string", "From this revision, instant or time before the end on."),
            ("until", "string", "Up to this revision, instant or time before the end."),
            ("last", "integer", "The last so many; 0 or absent: all."),
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
        "What a DeviceTaintRule that is there does, against a state without it",
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
        "What proposed changes would do; nothing is written",
        (_AT,),
        models.Proposal,
        models.Blast,
    ),
    (
        "/histories/{history}/fit",
        "get",
        "How many more copies fit of a class, a template, or of all that there are",
        (
            ("class", "string", "A DeviceClass: claims for devices of it."),
            ("count", "integer", "Devices of the class in each claim; 1."),
            ("template", "string", "A ResourceClaimTemplate."),
            ("namespace", "string", "Its namespace, or that of the copies."),
            _AT,
        ),
        None,
        page_answers.FittingCopies,
    ),
    (
        "/histories/{history}/fit",
        "post",
        "How many more copies fit of claims, templates or pods; nothing is written",
        (("namespace", "string", "Namespace of objects that name none."), _AT),
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
        "What this history (A) and another one (B) decided differently",
        (
            ("with", "string", "The other history."),
            ("withAt", "string", "Its moment; absent: that of this one."),
            ("by", "string", "decisions (default), outcomes or objects."),
            ("within", "number", "Seconds by which a decision may be earlier or later; 1."),
            _AT,
        ),
        None,
        models.Diff,
    ),
    (
        "/histories/{history}/rehearsal",
        "get",
        "What another release makes of the recorded inputs of this history",
        (
            ("to", "string", "The release, such as 1.37."),
            ("gate", "string", "Feature gates otherwise: NAME=true, separated by commas."),
            ("quirk", "string", "Quirks otherwise: NAME=on, separated by commas."),
            _AT,
        ),
        None,
        models.Rehearsal,
    ),
    ("/workers", "get", "The histories of this process", (), None, models.WorkerList),
)


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
        shapes,  # type: ignore[arg-type] # the pairs are as the function wants them
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
            if model is not None:
                models_used[model] = None
    return list(models_used)


def _operation(
    path: str, method: str, summary: str, parameters: tuple[Any, ...], body: Any, answer: Any
) -> dict[str, Any]:
    words = [part.strip("{}") for part in path.split("/") if part]
    named = [part.strip("{}") for part in path.split("/") if part.startswith("{")]
    content: dict[str, Any] = {"application/x-ndjson": {"schema": {"type": "string"}}}
    if answer is not None:
        content = {"application/json": {"schema": _ref(answer)}}
    code = "201" if body in (models.NewHistory, models.NewCopy) else "200"
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
        "responses": {code: {"description": summary, "content": content}},
    }
    if body is not None:
        operation["requestBody"] = {
            "required": True,
            "content": {"application/json": {"schema": _ref(body)}},
        }
    return operation


def _ref(model: type[BaseModel]) -> dict[str, str]:
    return {"$ref": f"#/components/schemas/{model.__name__}"}
