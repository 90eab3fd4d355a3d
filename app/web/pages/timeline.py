"""The timeline page: events, newest first, with a filter."""

from collections.abc import Collection, Sequence
from dataclasses import asdict
from typing import Any

from app.analysis import timeline_pages
from app.analysis.navigation import TROUBLES
from app.analysis.timeline_pages import Filter, TimelinePage
from app.domain.log import records
from app.web.frame import Frame, render

_OWN = ("system:serviceaccount:kube-system:", "system:")


def parameters_of(wanted: Filter) -> dict[str, str]:
    """The parameters of a URL for a filter."""
    values = {**asdict(wanted), "decisions": "true" if wanted.decisions else ""}
    return {name: str(value) for name, value in values.items() if value}


def page(
    frame: Frame,
    answer: TimelinePage,
    wanted: Filter,
    kinds: Sequence[str],
    before: int,
    unrecorded: Collection[int] = (),
) -> bytes:
    """The page. `kinds` are those that can be chosen; the page begins before revision `before`.

    `unrecorded` are the revisions of the entries about objects that are not stored by then.
    """
    parameters = parameters_of(wanted)
    links = frame.links
    if wanted.kind and wanted.kind not in kinds:
        kinds = [*kinds, wanted.kind]
    return render(
        "timeline.html",
        frame=frame,
        answer=answer,
        wanted=wanted,
        kinds=kinds,
        rows=[
            _row(frame, item, parameters, has_page=item["revision"] not in unrecorded)
            for item in answer.items
        ],
        is_filtered=bool(parameters),
        older=links.to("timeline", **parameters, before=answer.next) if answer.next else "",
        newest=links.to("timeline", **parameters) if before else "",
        again=links.to("timeline", **parameters),
    )


def _row(
    frame: Frame, item: dict[str, Any], parameters: dict[str, str], *, has_page: bool
) -> dict[str, Any]:
    by = records.shown_author(str(item["actor"]), item["kind"])
    for prefix in _OWN:
        by = by.removeprefix(prefix)
    return {
        **item,
        "subject": timeline_pages.subject_of(item),
        "has_page": has_page,
        "clock": str(item["time"])[:23].replace("T", " "),
        "by": by,
        "is_trouble": item["kind"] in TROUBLES,
        "same_kind": frame.links.to("timeline", **{**parameters, "kind": item["kind"]}),
    }
