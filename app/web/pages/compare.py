"""The page of two compared histories: the first difference with reasons, then consequences.

Releases are compared by a rehearsal, which has its own page.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace

from app.analysis import profiles
from app.analysis.diff.answers import ComparedPage, Witness
from app.analysis.explain.questions import ObjectExplanation
from app.analysis.explain.reasons import Reason
from app.web.frame import Frame, render
from app.web.links import Links, subject
from app.web.pages import why

WAYS = {
    "decisions": "decision by decision",
    "outcomes": "where pods are at the end",
    "objects": "all objects at the end",
}
OPEN_DEPTH = 1

TREE_REASONS_MAX = 60
"""Reasons of one side that are shown; the page of the object has more."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Tree:
    """The reasons of one side for the first pod that differs; `links` are those of its moment.

    `pod` is None when the side has no such pod, `answer` is None without an explanation: `problem`
    says why.
    """

    links: Links
    pod: Witness | None
    answer: ObjectExplanation | None = None
    problem: str = ""

    def frame(self, compared: Frame) -> Frame:
        """The frame of the page that explains the pod, for the links of its reasons."""
        parameters = {} if self.pod is None else subject(self.pod.key)
        return replace(compared, links=self.links, part="why", parameters=parameters)


def page(
    frame: Frame,
    names: Sequence[str],
    parameters: dict[str, str],
    compared: ComparedPage | None,
    first: Sequence[Tree] = (),
) -> bytes:
    """The page. `names` are the histories that can be chosen; `compared` is None before a choice.

    `first` holds the reasons of both sides for the first pod that differs.
    """
    reasons: object = ()
    if compared is not None:
        all_reasons = [Reason.from_json(each) for each in compared.reasons]
        reasons, _ = why.bounded(all_reasons, why.REASONS_MAX)
    return render(
        "compare.html",
        frame=frame,
        names=names,
        ways=WAYS,
        parameters=parameters,
        report=compared,
        reasons=reasons,
        first=[(letter, each, _reasons(each)) for letter, each in zip("AB", first, strict=False)],
        releases=profiles.names(),
        open_depth=OPEN_DEPTH,
        open_size=why.OPEN_SIZE,
    )


def _reasons(tree: Tree) -> object:
    if tree.answer is None:
        return ()
    reasons, _ = why.bounded(tree.answer.reason.children, TREE_REASONS_MAX)
    return reasons
