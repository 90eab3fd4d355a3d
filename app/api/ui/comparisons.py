"""The pages that compare two histories, and a history with its rehearsal."""

from dataclasses import replace
from functools import partial

import msgspec

from app.analysis import profiles as releases
from app.analysis.diff.answers import ComparedPage, DiffForm
from app.analysis.explain.questions import Question
from app.api.access.authorization import Authorizer
from app.api.redra.inquiries import Inquiry
from app.api.redra.routes import RedraApi
from app.api.ui import framing
from app.api.ui.unready import UnreadyPages
from app.domain.errors import InputError, Rejected
from app.service.histories import Histories
from app.web import links
from app.web.pages import compare as compared_histories
from app.web.pages import rehearsal as rehearsed
from app.web.pages.compare import Tree


class ComparedPages:
    """The makers of these pages, whose answers may take as long as a run of the history."""

    def __init__(
        self, api: RedraApi, stored: Histories, authorizer: Authorizer, unready: UnreadyPages
    ) -> None:
        self._api = api
        self._histories = stored
        self._authorizer = authorizer
        self._unready = unready

    async def compare(self, inquiry: Inquiry) -> bytes:
        """The page of two histories. Raises Rejected, InputError."""
        request, own = inquiry.request, inquiry.runtime.info.name
        names = ("with", "withAt", "by", "within")
        parameters = {name: request.parameter(name) for name in names}
        others = [one.name for one in await self._api.histories(inquiry.actor) if one.name != own]
        compared: ComparedPage | None = None
        first: tuple[Tree, ...] = ()
        if parameters["with"]:
            check = partial(self._api.check_compared, inquiry.actor, inquiry.runtime)
            report_progress = partial(self._unready.report_progress, inquiry)
            answer = await self._api.diffs.answer(
                request,
                inquiry.runtime,
                check,
                inquiry.moment,
                inquiry.actor,
                DiffForm.PAGE,
                report_progress,
            )
            compared = msgspec.convert(answer, ComparedPage)
            first = await self._first(inquiry, compared, parameters["with"])
        frame = await framing.frame(self._api.answers, inquiry, "compare", parameters)
        return compared_histories.page(frame, others, parameters, compared, first)

    async def _first(
        self, inquiry: Inquiry, compared: ComparedPage, other: str
    ) -> tuple[Tree, ...]:
        """The reasons on both sides of the first difference, at the time of the decisions."""
        trees = []
        for witness in compared.first:
            runtime = inquiry.runtime
            if witness.is_b:
                runtime = await self._histories.open(other)
            if not witness.name:
                trees.append(Tree(links=links.Links(history=runtime.info.name), pod=None))
                continue
            there = replace(
                inquiry,
                runtime=runtime,
                moment=str(witness.revision),
                reader=partial(self._authorizer.reader, runtime, inquiry.actor),
            )
            question = Question(kind="pod", namespace=witness.namespace, name=witness.name)
            place = links.Links(history=runtime.info.name, moment=there.moment)
            answer, problem = None, ""
            try:
                answer = await self._api.answers.explained(there, question)
            except (Rejected, InputError) as refusal:
                problem = getattr(refusal, "message", "") or str(refusal)
            trees.append(Tree(links=place, pod=witness, answer=answer, problem=problem))
        return tuple(trees)

    async def rehearsal(self, inquiry: Inquiry) -> bytes:
        """The page of the inputs of a history under another release."""
        request = inquiry.request
        parameters = {name: request.parameter(name) for name in ("to", "gate", "quirk")}
        self._api.check_rehearsed(inquiry.actor, inquiry.runtime)
        report = None
        if parameters["to"]:
            runtime, report_progress = (
                inquiry.runtime,
                partial(self._unready.report_progress, inquiry),
            )
            shown = await self._api.rehearsals.report(
                request, runtime, inquiry.moment, report_progress
            )
            report = shown["page"]
        frame = await framing.frame(self._api.answers, inquiry, "rehearsal", parameters)
        return rehearsed.page(frame, releases.names(), parameters, report)
