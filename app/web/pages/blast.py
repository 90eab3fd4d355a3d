"""The page of a change's effects: takes objects as YAML and shows the affected objects."""

from dataclasses import dataclass

from app.analysis.blast import text
from app.analysis.blast.radius import BlastRadius
from app.domain.controllers.resources import claim_key, pod_key
from app.domain.values import durations
from app.web.frame import Frame, render

ROWS_MAX = 100
"""Rows of one table that are shown; the JSON has all."""

EXAMPLE = """\
apiVersion: resource.k8s.io/v1beta2
kind: DeviceTaintRule
metadata:
  name: maintenance
spec:
  deviceSelector:
    driver: gpu.example.com
  taint:
    key: example.com/maintenance
    effect: NoExecute
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Typed:
    """The input of the form: objects, names of objects to delete, nodes to cordon and to drain.

    `name` is that of a fork with this change.
    """

    manifest: str = ""
    delete: str = ""
    cordon: str = ""
    drain: str = ""
    name: str = ""


def page(frame: Frame, typed: Typed, answer: BlastRadius | None, problem: str = "") -> bytes:
    """The page. `answer` is None before the form is sent, or because of `problem`."""
    return render(
        "blast.html",
        frame=frame,
        typed=typed,
        example=EXAMPLE,
        answer=answer,
        problem=problem,
        summary=[] if answer is None else [one.text for one in text.reasons(answer, 0)],
        tables=[] if answer is None else _tables(answer),
        rows_max=ROWS_MAX,
        pod_key=pod_key,
        claim_key=claim_key,
        deletion=text.claim_deletion,
        outlook=text.outlook,
        lasting=durations.rounded,
    )


def _tables(answer: BlastRadius) -> list[dict[str, object]]:
    """The tables without links: title, headings, rows."""
    pools = [
        (
            f"{one.driver}/{one.pool}",
            _change(one.state_before, one.state_after)
            + (f": {one.problem}" if one.problem else ""),
            _change(one.before.allocatable, one.after.allocatable),
            _change(one.before.free, one.after.free),
            ", ".join(
                f"{name} {amount.before} → {amount.after}"
                for name, amount in {**one.capacity, **one.counters}.items()
            ),
        )
        for one in answer.pools
    ]
    devices = [
        (one.device, one.change, ", ".join(one.taints), ", ".join(one.holders))
        for one in answer.devices
    ]
    classes = [
        (
            one.name,
            _change(one.before.devices, one.after.devices),
            _change(one.before.allocatable, one.after.allocatable),
            _change(one.before.free, one.after.free),
            one.problem,
        )
        for one in answer.classes
    ]
    limits = [
        (f"{one.namespace}/{one.quota}", one.name,
         _change(one.before or "no limit", one.after or "no limit"),
         (one.used or "unknown") + ": more than allowed" * one.is_over)
        for one in answer.quotas
    ]  # fmt: skip
    writes = [(text.write_fate(one),) for one in answer.writes]
    made = (
        ("Quotas", ("Quota", "Of", "Limit", "In use"), limits),
        ("Writes", ("What is refused or let pass",), writes),
        ("Pools", ("Pool", "State", "Allocatable", "Free", "Amounts"), pools),
        ("Devices", ("Device", "Change", "Taints", "Held by"), devices),
        ("Classes", ("Class", "Devices", "Allocatable", "Free", "Problem"), classes),
    )
    return [
        {"title": title, "headings": headings, "rows": rows[:ROWS_MAX], "count": len(rows)}
        for title, headings, rows in made
        if rows
    ]


def _change(before: object, after: object) -> str:
    return f"{before}" if before == after else f"{before} → {after}"
