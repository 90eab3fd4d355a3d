"""The page of remaining capacity: largest claims over time, stranded counters, copies."""

import re
from collections.abc import Callable, Sequence

from markupsafe import Markup

from app.analysis.capacity import text
from app.analysis.capacity.answers import CapacityCourse, CapacityMoment, Fit, FitAnswer
from app.web import svg
from app.web.frame import Frame, render
from app.web.pictures import axes

WIDTH, HEIGHT = 900.0, 90.0

CLASSES_MAX = 12
"""Classes that are drawn; the tables have all classes."""

SUBJECTS_MAX = 100

_UNITS = ("Ki", "Mi", "Gi", "Ti", "Pi", "Ei")
_STEP = 1_024
_BINARY = re.compile(rf"(\d+)({'|'.join(_UNITS)})")

EXAMPLE = """\
apiVersion: resource.k8s.io/v1
kind: ResourceClaim
metadata:
  name: two-gpus
spec:
  devices:
    requests:
    - name: gpus
      exactly:
        deviceClassName: gpu.example.com
        count: 2
"""


def page(
    frame: Frame, answer: CapacityCourse, manifest: str = "", fit: FitAnswer | None = None,
    problem: str = "",
) -> bytes:  # fmt: skip
    """The page. `fit` is None without a question about copies, or because of `problem`."""
    names = [one.name for one in answer.present.classes]
    return render(
        "capacity.html",
        frame=frame,
        answer=answer,
        pictures=[(name, course(answer.moments, name, frame.here)) for name in names[:CLASSES_MAX]],
        undrawn=max(0, len(names) - CLASSES_MAX),
        names=names,
        cells=[_cells(moment, names) for moment in answer.moments],
        class_text=text.class_text,
        amount=amount,
        manifest=manifest,
        example=EXAMPLE,
        problem=problem,
        fits=() if fit is None else [_fit(one) for one in fit.items[:SUBJECTS_MAX]],
        fit=fit,
        together=list(text.together_lines(fit.together)) if fit and fit.together else (),
        is_form=bool(fit or manifest or problem),
        order=text.ORDER,
    )


def course(
    moments: Sequence[CapacityMoment], name: str, to_moment: Callable[[object], str]
) -> Markup:
    """A column per moment: the free devices, and within them the largest claim that fits.

    A column is a link to its moment.
    """
    known = [
        next(((one.free, one.largest) for one in moment.classes if one.name == name), (0, 0))
        for moment in moments
    ]
    most = max((max(pair) for pair in known), default=0)
    width = (WIDTH - axes.LEFT) / max(1, len(moments))
    with_clock = axes.clocks_at([moment.time for moment in moments])
    shapes = [axes.level(str(most), 0.0, WIDTH)] if most else []
    shapes.append(axes.level("0", HEIGHT, WIDTH))
    shapes += [axes.day(moments[0].time, HEIGHT)] if moments else []
    for number, (moment, (free, largest)) in enumerate(zip(moments, known, strict=True)):
        title = (
            f"{moment.time[:19].replace('T', ' ')}, revision {moment.revision}: the largest claim "
            f"has {largest}, {free} free"
        )
        x = axes.LEFT + number * width
        area = svg.element("rect", x=x, y=0.0, width=width, height=HEIGHT, fill_opacity=0)
        parts = [svg.title(title), area]
        for value, kind in ((free, "device fades"), (largest, "claim")):
            height = HEIGHT * value / most if most else 0
            parts.append(
                svg.element(
                    "rect", x=x + 1, y=HEIGHT - height, width=max(1.0, width - 2),
                    height=height, class_=kind,
                )
            )  # fmt: skip
        there = to_moment(moment.revision)
        shapes.append(svg.element("a", *parts, href=there, aria_label=title, tabindex=-1))
        if number in with_clock:
            shapes.append(axes.clock(moment.time, x, WIDTH, HEIGHT))
    label = f"Class {name}: the largest claim that fits within the free devices, at most {most}"
    return svg.picture(WIDTH, HEIGHT + axes.BELOW, label, *shapes, role="group")


def amount(quantity_text: str) -> Markup:
    """A quantity as people write it, `281.4Gi` for `288128Mi`; a rounded one has the exact title.

    Others are shown as they are: counts, and amounts that a larger unit does not shorten.
    """
    match = _BINARY.fullmatch(quantity_text)
    if match is None:
        return Markup.escape(quantity_text)
    number, unit = float(match[1]), _UNITS.index(match[2])
    while number >= _STEP and unit + 1 < len(_UNITS):
        number, unit = number / _STEP, unit + 1
    shown = f"{number:.1f}".removesuffix(".0") + _UNITS[unit]
    if shown == quantity_text:
        return Markup.escape(quantity_text)
    return Markup('<span title="{}">{}</span>').format(quantity_text, shown)


def _cells(moment: CapacityMoment, names: Sequence[str]) -> dict[str, object]:
    by_name = {one.name: one for one in moment.classes}
    return {
        "moment": moment,
        "classes": [by_name.get(name) for name in names],
        "stranded": Markup(", ").join(
            Markup("{} {}").format(one.counter, amount(one.stranded))
            for one in moment.counters
            if one.stranded != "0"
        ),
    }


def _fit(one: Fit) -> dict[str, object]:
    return {"fit": one, "head": text.head(one), "limits": list(text.limit_lines(one))}
