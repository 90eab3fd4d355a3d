"""`/redra/v1/histories/<history>/lint`: what is wrong with the published objects of a history."""

import anyio

from app.analysis.lint.linting import LintReport
from app.analysis.lint.subjects import TOLD
from app.api.redra.inquiries import Inquiry
from app.api.redra.server_parts import Lint
from app.api.server.limits import ApiLimits
from app.api.server.messages import HttpRequest
from app.domain.errors import NotFound, TooLarge
from app.domain.log import Revision
from app.domain.objects import registry

_KINDS = tuple(
    (kind.group, kind.plural)
    for name in sorted(TOLD)
    for kind in registry.find_name(name)
    if kind.kind == name
)
"""The kinds that findings name."""


class LintApi:
    """Lints histories, a bounded number at a time; the other requests wait for their turn."""

    def __init__(self, lint: Lint | None, limits: ApiLimits) -> None:
        self._lint = lint
        self._events_max = limits.lint_events_max
        self._turns = anyio.CapacityLimiter(limits.lints_at_once_max)

    async def report(self, inquiry: Inquiry, until: Revision) -> LintReport:
        """The findings of rules up to a revision, for users who may list all kinds that rules read.

        Raises TooLarge, Forbidden, InputError.
        """
        if self._lint is None:
            raise NotFound("this server does not lint histories")
        inquiry.reader().check_all(_KINDS)
        if until > self._events_max:
            raise TooLarge(f"{until} events are more than {self._events_max}: use redra lint")
        request, runtime = inquiry.request, inquiry.runtime
        async with self._turns:
            return await self._lint(
                runtime.log,
                runtime.info,
                until,
                profile=request.parameter("profile"),
                ignored=ignored_rules(request),
            )


def ignored_rules(request: HttpRequest) -> list[str]:
    """The rules that a request leaves out."""
    names = [name.strip() for name in request.parameter("ignore").split(",")]
    return [name for name in names if name]
