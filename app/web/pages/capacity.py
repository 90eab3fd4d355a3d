"""What still fits: the largest claim of each class over time, stranded counters, copies."""

from collections.abc import Sequence

from markupsafe import Markup

from app.analysis.capacity import text
from app.analysis.capacity.answers import CapacityCourse, CapacityMoment, Fit, FitAnswer
from app.web import svg
from app.web.frame import Frame, render

WIDTH, HEIGHT = 900.0, 90.0
CLASSES_MAX = 12
"""Classes that are drawn; the tables have all."""

SUBJECTS_MAX = 100

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
    """The page; `fit` is None when no copies were asked about, or for what `problem` says."""
    names = [one.name for one in answer.present.classes]
    return render(
        "capacity.html",
        frame=frame,
        answer=answer,
        pictures=[(name, course(answer.moments, name)) for name in names[:CLASSES_MAX]],
        undrawn=max(0, len(names) - CLASSES_MAX),
        names=names,
        cells=[_cells(moment, names) for moment in answer.moments],
        class_text=text.class_text,
        manifest=manifest,
        example=EXAMPLE,
        problem=problem,
        fits=() if fit is None else [_fit(one) for one in fit.items[:SUBJECTS_MAX]],
        fit=fit,
        order=text.ORDER,
    )


def course(moments: Sequence[CapacityMoment], name: str) -> Markup:
    """A column for each moment: the free devices, within them the largest claim that fits."""
    known = [
        next(((one.free, one.largest) for one in moment.classes if one.name == name), (0, 0))
        for moment in moments
    ]
    most = max((max(pair) for pair in known), default=0)
    width = WIDTH / max(1, len(moments))
    shapes: list[Markup] = []
    for number, (moment, (free, largest)) in enumerate(zip(moments, known, strict=True)):
        title = (
            f"{moment.time[:19].replace('T', ' ')}, revision {moment.revision}: the largest claim "
            f"has {largest}, {free} free"
        )
        parts = [svg.title(title)]
        for value, kind in ((free, "device fades"), (largest, "claim")):
            height = HEIGHT * value / most if most else 0
            parts.append(
                svg.element(
                    "rect", x=number * width + 1, y=HEIGHT - height, width=max(1.0, width - 2),
                    height=height, class_=kind,
                )
            )  # fmt: skip
        shapes.append(svg.element("g", *parts))
    label = f"Class {name}: the largest claim that fits within the free devices, at most {most}"
    return svg.picture(WIDTH, HEIGHT, label, *shapes)


def _cells(moment: CapacityMoment, names: Sequence[str]) -> dict[str, object]:
    by_name = {one.name: one for one in moment.classes}
    return {
        "moment": moment,
        "classes": [by_name.get(name) for name in names],
        "stranded": ", ".join(
            f"{one.counter} {one.stranded}" for one in moment.counters if one.stranded != "0"
        ),
    }


def _fit(one: Fit) -> dict[str, object]:
    return {"fit": one, "head": text.head(one), "limits": list(text.limit_lines(one))}
