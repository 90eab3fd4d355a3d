"""The pages of sweeps: the list with the form that starts one, and the runs of one."""

from collections.abc import Sequence
from dataclasses import dataclass

from app.analysis import profiles
from app.analysis.sweep import columns
from app.web import links
from app.web.frame import render
from app.web.pages.jobs import ShownJob
from app.web.pictures import runs

JOBS = links.JOBS

RUNS_MAX = 30
"""Runs that a page shows; the others are on the next ones."""

PICTURES_MAX = 8
FURTHER_MAX = 20
"""Measures that a page draws, and those of its second table; the file of the table has all."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TypedPlan:
    """The form of a sweep as it was typed; gates and behaviours are sets of them, one a line."""

    name: str = ""
    histories: Sequence[str] = ()
    profiles: Sequence[str] = ()
    gates: str = ""
    quirks: str = ""
    seeds: str = ""


def listed(
    jobs: Sequence[ShownJob], histories: Sequence[str], typed: TypedPlan, problem: str = ""
) -> bytes:
    """The list of jobs, the newest first, and the form. `problem` says why that was refused."""
    return render(
        "jobs.html",
        jobs=jobs,
        histories=histories,
        releases=profiles.names(),
        typed=typed,
        problem=problem,
        to_job=links.job,
        sweep=links.SWEEP,
    )


def page(job: ShownJob, first: int) -> bytes:
    """The page of a job: of a sweep its runs from the number `first` on, drawn and as tables."""
    names = columns.columns_of(job.rows)
    rows = job.rows[first : first + RUNS_MAX]
    flat = [columns.flat(row, names) for row in rows]
    measures = runs.measures([columns.flat(row, names) for row in job.rows], names)
    drawn = [name for name, _ in measures[:PICTURES_MAX]]
    further = [
        name
        for name in dict.fromkeys((*drawn, *names))
        if name not in columns.BRIEF and name != "cell"
    ]
    short = [columns.brief(row) for row in job.rows]
    return render(
        "sweep.html",
        job=job,
        jobs=JOBS,
        cancel=links.job(job.id),
        again=links.job(job.id, first),
        first=first,
        last=min(first + RUNS_MAX, len(job.rows)),
        before=links.job(job.id, max(0, first - RUNS_MAX)) if first else "",
        after=links.job(job.id, first + RUNS_MAX) if first + RUNS_MAX < len(job.rows) else "",
        # A column that is empty in each run would only make the table wider.
        brief=[name for name in columns.BRIEF if any(one[name] not in ("", None) for one in short)],
        rows=[columns.brief(row) | {"cell": row["cell"]} for row in rows],
        further=further[:FURTHER_MAX],
        omitted=len(further[FURTHER_MAX:]),
        flat=flat,
        pictures=[
            (runs.heading(name), runs.picture(name, flat, most))
            for name, most in measures[:PICTURES_MAX]
        ],
        lacks_values=any(
            runs.number(row.get(name)) is None
            for name, _ in measures[:PICTURES_MAX]
            for row in flat
        ),
        bases=columns.bases(job.rows),
        measured=runs.HEADINGS,
        worded=columns.worded,
        text=runs.text,
    )
