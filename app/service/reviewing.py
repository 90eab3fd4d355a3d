"""Review of writes by webhooks: webhooks are called before the writer decides.

The order is upstream's: the object as it would be stored, mutating webhooks one after the other,
reinvocation where requested, validation and policies, then validating webhooks in parallel. No
webhook is called while the writer decides. Only the webhooks' patches reach the decision. If the
object is no longer the one that the webhooks saw, all of them are called again.
"""

import dataclasses
import logging
from collections.abc import Awaitable, Callable, Iterator
from functools import partial

import anyio
import msgspec

from app.domain.errors import Rejected, ReviewOutdated
from app.domain.log import Actor, Stamp
from app.domain.objects.review import changes, hooks
from app.domain.objects.review.attributes import Attributes
from app.domain.objects.review.changes import Review
from app.domain.objects.review.hooks import Hook, WebhookFailed, WebhookReview
from app.domain.objects.rules import Rules
from app.domain.objects.write import lifecycle
from app.domain.objects.write.commands import (
    BindPod,
    Command,
    CreateObject,
    DeleteObject,
    PatchObject,
    UpdateObject,
    verb_of,
)
from app.domain.objects.write.staging import StagedObjects
from app.domain.values.identifiers import Uid
from app.domain.values.timestamps import Instant
from app.ports import UidSource, WebhookCaller
from app.service.writing import WriteOutcome

_log = logging.getLogger("redra")

CHANGES_MAX = 5
"""The most attempts to have a write reviewed while its object keeps changing."""

Reviewable = CreateObject | UpdateObject | PatchObject | DeleteObject | BindPod


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class WebhookReviewer:
    """Calls the webhooks of one history. `objects` returns its present objects."""

    caller: WebhookCaller
    rules: Rules
    objects: Callable[[], StagedObjects]
    now: Callable[[], Instant]
    uids: UidSource

    def is_needed(self, command: Command) -> bool:
        """Whether any webhook may match the command."""
        return (
            isinstance(command, Reviewable)
            and not command.options.skips_review
            and hooks.are_there(self.objects())
        )

    async def submit(
        self,
        command: Command,
        actor: Actor,
        verb: str,
        send: Callable[[Command, Uid], Awaitable[WriteOutcome]],
    ) -> WriteOutcome:
        """Review, then `send` the command with the patches and the uid that webhooks have seen.

        Raises the error of a refusal, and Conflict for an object that keeps changing.
        """
        assert isinstance(command, Reviewable)
        for left in reversed(range(CHANGES_MAX)):
            uid = self.uids.uid()
            stamp = Stamp(time=self.now(), actor=actor, verb=verb or verb_of(command), uid=uid)
            asking = _ReviewAttempt(self)
            try:
                reviewed = await asking.review(command, stamp)
                outcome = await send(reviewed, uid)
            except ReviewOutdated:
                if not left:
                    raise
                continue
            except Rejected as refusal:
                refusal.warnings = (*asking.warnings, *refusal.warnings)
                raise
            return WriteOutcome(
                tree=outcome.tree,
                event=outcome.event,
                warnings=(*asking.warnings, *outcome.warnings),
                created=outcome.created,
            )
        raise AssertionError("the last attempt returns or raises")

    async def ask(self, attributes: Attributes) -> tuple[str, ...]:
        """Review a request that writes no object; returns its warnings. Raises if it is refused."""
        if not hooks.are_there(self.objects()):
            return ()
        asking = _ReviewAttempt(self)
        try:
            await asking.about(attributes)
        except Rejected as refusal:
            refusal.warnings = (*asking.warnings, *refusal.warnings)
            raise
        return tuple(asking.warnings)


class _ReviewAttempt:
    """One attempt to have a request reviewed."""

    def __init__(self, setting: WebhookReviewer) -> None:
        self._setting = setting
        self._write: tuple[Reviewable, Stamp] | None = None
        self._objects = setting.objects()
        self._review = Review()
        self._problem: Rejected | None = None
        self.warnings: list[str] = []

    async def about(self, attributes: Attributes) -> None:
        """Review a request that webhooks cannot change. Raises if it is refused."""
        self._review.after = attributes
        await self._mutate()
        await self._validate(attributes)

    async def review(self, command: Reviewable, stamp: Stamp) -> Reviewable:
        """Review a command; returns it with the patches. Raises if it is refused."""
        self._write = command, stamp
        self._decide()
        seen = self._review.before or self._review.after
        if seen is None:
            # The write was refused before the review, or would change nothing.
            if self._problem is not None:
                raise self._problem
            return command
        self._review.version = changes.version_of(seen.old)
        await self._mutate()
        if self._problem is not None:
            raise self._problem
        if self._review.after is not None:
            await self._validate(self._review.after)
        changed = Review(patches=self._review.patches, version=self._review.version)
        return _with(command, changed)

    def _decide(self) -> None:
        """Decide the write with the patches so far, and note the result."""
        assert self._write is not None, "only writes of objects are decided"
        command, stamp = self._write
        self._review.before = self._review.after = self._problem = None
        try:
            lifecycle.decide(
                self._objects, _with(command, self._review), stamp, self._setting.rules
            )
        except Rejected as problem:
            self._problem = problem

    def _seen(self) -> Attributes:
        change = self._review.before or self._review.after
        assert change is not None, "what was there in the first place stays there"
        return change

    async def _mutate(self) -> None:
        """Call mutating webhooks one by one, then again those that asked for reinvocation."""
        earlier: set[tuple[str, str]] = set()
        again: set[tuple[str, str]] = set()
        for is_again in (False, True):
            for configuration, webhook in hooks.mutating(self._objects):
                hook = self._hook_for(configuration, webhook, self._seen())
                if hook is None or (is_again and hook.id not in again):
                    continue
                if await self._apply(hook):
                    again |= earlier - {hook.id}
                if hook.is_reinvoked:
                    earlier.add(hook.id)
            if not again:
                return

    async def _apply(self, hook: Hook) -> bool:
        """Call one mutating webhook; returns whether it has changed the object."""
        seen = self._seen()
        verdict = await self._verdict(hook, seen, is_mutating=True)
        self.warnings += verdict.warnings
        if verdict.refusal is not None:
            raise verdict.refusal
        if verdict.patch is None:
            return False
        if seen.tree is None or seen.is_of_another_kind:
            raise changes.cannot_be_changed(hook.name)
        self._review.patches = (*self._review.patches, verdict.patch)
        self._decide()
        if self._review.before is None:
            assert self._problem is not None, "a write that webhooks see is refused with a reason"
            raise self._problem
        return self._review.before.tree != seen.tree

    async def _validate(self, attributes: Attributes) -> None:
        """Call all validating webhooks in parallel; the first refusal in their order counts."""
        validating = list(self._validating(attributes))
        verdicts: list[WebhookReview | Rejected | None] = [None] * len(validating)

        async def ask(position: int, hook: Hook) -> None:
            try:
                verdicts[position] = await self._verdict(hook, attributes, is_mutating=False)
            except Rejected as problem:
                verdicts[position] = problem

        async with anyio.create_task_group() as tasks:
            for position, hook in enumerate(validating):
                tasks.start_soon(partial(ask, position, hook))
        refusals: list[Rejected] = []
        for verdict in verdicts:
            if isinstance(verdict, Rejected):
                refusals.append(verdict)
            elif verdict is not None:
                self.warnings += verdict.warnings
                refusals += [verdict.refusal] if verdict.refusal is not None else []
        if refusals:
            raise refusals[0]

    def _validating(self, attributes: Attributes) -> Iterator[Hook]:
        for configuration, webhook in hooks.validating(self._objects):
            hook = self._hook_for(configuration, webhook, attributes)
            if hook is not None:
                yield hook

    def _hook_for(
        self, configuration: str, webhook: dict[str, object], attributes: Attributes
    ) -> Hook | None:
        rules = self._setting.rules
        return hooks.hook_for(configuration, webhook, attributes, self._objects, rules)

    async def _verdict(
        self, hook: Hook, attributes: Attributes, *, is_mutating: bool
    ) -> WebhookReview:
        """The verdict of a webhook; empty when it fails and its failure is to be ignored."""
        uid = self._setting.uids.uid()
        body = hooks.request_of(hook, attributes, uid)
        try:
            answer = await self._setting.caller.call(hook.target, body, seconds=hook.seconds)
            return hooks.verdict_of(hook, answer, uid, is_mutating=is_mutating)
        except WebhookFailed as problem:
            if hook.is_ignored_when_failing:
                _log.warning(
                    "%s: the write continues without it", hooks.failure_text(hook, problem)
                )
                return WebhookReview()
            raise changes.failed(hooks.failure_text(hook, problem)) from problem


def _with(command: Reviewable, review: Review) -> Reviewable:
    """The command with the review of webhooks in its options."""
    options = msgspec.structs.replace(command.options, review=review)
    return msgspec.structs.replace(command, options=options)
