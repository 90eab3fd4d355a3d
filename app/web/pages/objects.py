"""The page of one object: fields with their writers, versions with their differences, relations."""

from collections.abc import Collection
from typing import Any

import msgspec

from app.analysis.object_history import ObjectHistory
from app.domain.log import ObjectKey
from app.domain.log.records import BASELINE_VERB
from app.web.frame import Frame, render
from app.web.pages.findings import EXPLAINED

FIELDS_MAX = 300
"""Fields that are shown; the JSON has all."""

RELATIONS_MAX = 60
VALUE_LETTERS_MAX = 400
"""The greatest length of a value; longer values are cut and marked."""


def page(frame: Frame, answer: ObjectHistory, unrecorded: Collection[ObjectKey] = ()) -> bytes:
    """The page. `unrecorded` are related objects that were never stored."""
    return render(
        "object.html",
        frame=frame,
        answer=answer,
        versions=[_version(one) for one in msgspec.to_builtins(answer.versions)],
        fields=[
            {**one, "value": value_text(one["value"])}
            for one in msgspec.to_builtins(answer.fields[:FIELDS_MAX])
        ],
        is_explained=answer.resource in EXPLAINED,
        relations_max=RELATIONS_MAX,
        unrecorded=unrecorded,
    )


def value_text(value: object) -> str:
    """A readable value: text as it is, other values as JSON."""
    text = value if isinstance(value, str) else msgspec.json.encode(value).decode()
    return text if len(text) <= VALUE_LETTERS_MAX else f"{text[:VALUE_LETTERS_MAX]} …"


def _version(one: dict[str, Any]) -> dict[str, Any]:
    changes = [
        {
            "path": change["path"],
            "old": None if change["old"] is None else value_text(change["old"]),
            "new": None if change["new"] is None else value_text(change["new"]),
        }
        for change in one["changes"]
    ]
    return {
        **one,
        "changes": changes,
        "clock": one["time"][:23].replace("T", " "),
        "is_first": one["type"] == "ObjectCreated",
        "is_baseline": one["verb"] == BASELINE_VERB,
    }
