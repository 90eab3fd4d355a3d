"""Authorization: the access question of a request, and the rules that answer it.

The rules are the present rules of the requested history, even for a read of its past. They also
apply to paths below `/redra/v1/histories/<history>`. The default history's rules apply to other
paths outside the Kubernetes API (`/redra/v1`, `/metrics`).
Parity: api.md 10 and 14.
"""

from collections.abc import Callable
from dataclasses import dataclass, field, replace

import anyio

from app.api.access import impersonation
from app.api.access.readers import EVERYTHING, WORKED_OUT_FROM, HistoryReader
from app.api.identity.authentication import Authenticator, Identity
from app.api.identity.service_tokens import ServiceTokens
from app.api.kubernetes import calls, paths
from app.api.kubernetes.paths import RequestedTimeline, ResourcePath
from app.api.server.messages import HttpRequest
from app.domain.errors import Forbidden, HistoryBroken, HistoryOpening, NotFound
from app.domain.log import Actor, Head, HistoryId, HistoryInfo, ObjectKey
from app.domain.objects import history_kinds
from app.domain.objects.access import defaults, escalation, rules
from app.domain.objects.access.escalation import GiverRights
from app.domain.objects.access.rules import AccessDecision, AccessRequest, Binding, Book, Grants
from app.domain.objects.kinds import claim_rights
from app.domain.objects.kinds.claim_rights import ClaimRights
from app.domain.objects.reader import ObjectsReader
from app.domain.objects.write.commands import PatchType
from app.domain.values import api_groups, selectors
from app.domain.values.bounded import Bounded
from app.domain.values.selectors import SelectorError
from app.service.histories import Histories
from app.service.runtime import HistoryRuntime
from projections.objects import ObjectsProjection

GRANULAR_GATE = "DRAResourceClaimGranularStatusAuthorization"

PolicyOf = Callable[[str], tuple[Binding, ...]]
"""Returns the bindings of a policy file for the history with a name."""

_REMEMBERED_MAX = 8_192
_QUESTION_LETTERS_MAX = 1_024
"""Longer questions are not cached: clients choose their content."""
_NAMED_VERBS = ("list", "watch", "deletecollection")

UNOPENED_KEPT_MAX = 16
"""The histories whose rules are kept; of more, which are opened at once, some are read again."""


@dataclass(slots=True, eq=False)
class _UnopenedBook:
    """The rules of a history at a head; None before they were read."""

    head: Head | None = None
    book: Book = field(default_factory=lambda: Book(()))
    turn: anyio.Lock = field(default_factory=anyio.Lock)


class _UnopenedBooks:
    """Reads the rules once for all requests that come while a history is being opened.

    Opening takes up to minutes; roles and bindings are read from the log by themselves. They hold
    as long as the head of the log is the same: any event may change a right, and a head names all
    events before it.
    """

    def __init__(self, histories: Histories, book_of: Callable[[ObjectsReader, str], Book]) -> None:
        """`book_of` gives the rules for the objects and the name of a history."""
        self._histories = histories
        self._book_of = book_of
        self._read: Bounded[tuple[HistoryId, str], _UnopenedBook] = Bounded(UNOPENED_KEPT_MAX)

    async def book(self, info: HistoryInfo) -> Book:
        """The present rules of a history. Raises LogError."""
        place = (info.id, info.name)
        read = self._read.recent(place)
        if read is None:
            read = self._read[place] = _UnopenedBook()
        async with read.turn:
            head = await self._histories.head(info)
            if read.head != head:
                objects = ObjectsProjection(tells_changes=False)
                async for event in self._histories.objects_at(info, head.revision, api_groups.RBAC):
                    objects.fold(event)
                read.book, read.head = self._book_of(objects, info.name), head
        return read.book


@dataclass(frozen=True, slots=True, kw_only=True)
class Authorization:
    """The rules in force: none (`is_open`: everything is allowed), RBAC objects, a policy."""

    is_open: bool = True
    by_roles: bool = False
    policy: PolicyOf | None = None


@dataclass(slots=True, kw_only=True)
class _Rights:
    """The rules of one history, with cached answers, until a role or binding changes."""

    revision: int = -1
    signature: tuple[int, ...] = ()
    book: Book = field(default_factory=lambda: Book(()))
    grants: Bounded[tuple[str, tuple[str, ...]], Grants] = field(
        default_factory=lambda: Bounded(_REMEMBERED_MAX)
    )
    decisions: Bounded[tuple[str, tuple[str, ...], AccessRequest], AccessDecision] = field(
        default_factory=lambda: Bounded(_REMEMBERED_MAX)
    )


class Authorizer:
    """Answers access questions by the rules of a history."""

    def __init__(self, setting: Authorization) -> None:
        self._setting = setting
        self._rights: dict[int, _Rights] = {}
        self._open = rules.all_rights("")

    @property
    def is_open(self) -> bool:
        """Whether everything is allowed."""
        return self._setting.is_open

    def grants(self, runtime: HistoryRuntime, actor: Actor) -> Grants:
        """All rights of a user in a history."""
        if self._setting.is_open:
            return self._open
        rights = self._current(runtime)
        place = (actor.user, actor.groups)
        grants = rights.grants.get(place)
        if grants is None:
            grants = rights.grants[place] = rights.book.grants(*place)
        return grants

    def decide(
        self, runtime: HistoryRuntime, actor: Actor, question: AccessRequest
    ) -> AccessDecision:
        """The decision whether a user may do one thing in a history."""
        if self._setting.is_open:
            return self._open.decide(question)
        rights = self._current(runtime)
        place = (actor.user, actor.groups, question)
        decision = rights.decisions.get(place)
        if decision is None:
            if question.size > _QUESTION_LETTERS_MAX:
                return self.grants(runtime, actor).decide(question)
            decision = rights.decisions[place] = self.grants(runtime, actor).decide(question)
        return decision

    def check(self, runtime: HistoryRuntime, actor: Actor, question: AccessRequest) -> None:
        """Raise Forbidden unless the rules allow it."""
        decision = self.decide(runtime, actor, question)
        if not decision.allowed:
            raise rules.forbidden(question, actor.user, decision.reason)

    def reader(self, runtime: HistoryRuntime, actor: Actor) -> HistoryReader:
        """The reader of a history for a user."""
        return HistoryReader(
            user=actor.user,
            grants=self.grants(runtime, actor),
            is_unlimited=self.is_unlimited(actor),
        )

    def is_unlimited(self, actor: Actor) -> bool:
        """Whether a user may do everything in every history."""
        return self._setting.is_open or rules.MASTERS in actor.groups

    def check_is_known(self, actor: Actor, own: HistoryRuntime, runtime: HistoryRuntime) -> None:
        """Raise Forbidden for a service account of one history that wants to read another one.

        Its name may belong to somebody else there.
        """
        if runtime.info.id != own.info.id and rules.split_service_account(actor.user):
            raise Forbidden(
                f'{actor.user} is known only in history "{own.info.name}", and may not read '
                f'"{runtime.info.name}"'
            )

    def check_sees_everything(
        self, actor: Actor, own: HistoryRuntime, runtime: HistoryRuntime
    ) -> None:
        """Raise Forbidden for a user of one history who may not read everything in another one."""
        if not self.is_unlimited(actor):
            self.check_is_known(actor, own, runtime)
            self.reader(runtime, actor).check_all((EVERYTHING,))

    def rights(
        self, runtime: HistoryRuntime, identity: Identity, request: HttpRequest, path: ResourcePath
    ) -> ClaimRights | GiverRights | None:
        """The rights of the writer of a claim status, role or binding; None if they are unused."""
        if self._setting.is_open:
            return None
        if path.group == api_groups.RBAC:
            actor = identity.actor
            grants = self.grants(runtime, actor)
            return GiverRights(user=actor.user, groups=actor.groups, grants=grants)
        if not runtime.rules.profile.enabled(GRANULAR_GATE):
            return None
        nodes = identity.extra.get(claim_rights.NODE_NAME, ())
        return ClaimRights(
            user=identity.actor.user,
            node=nodes[0] if len(nodes) == 1 else "",
            verb=calls.verb_of(request, path),
            namespace=path.namespace,
            grants=self.grants(runtime, identity.actor),
        )

    def _current(self, runtime: HistoryRuntime) -> _Rights:
        objects = runtime.views.objects
        rights = self._rights.get(runtime.life)
        if rights is not None and rights.revision == objects.revision:
            return rights
        revision = objects.revision
        signature = rules.signature(objects) if self._setting.by_roles else ()
        if rights is None or rights.signature != signature:
            rights = _Rights(signature=signature, book=self.book(objects, runtime.info.name))
            self._rights[runtime.life] = rights
        rights.revision = revision
        return rights

    def book(self, objects: ObjectsReader, history: str) -> Book:
        """The rules of a history with these objects."""
        book = Book(defaults.EVERYBODY)
        if self._setting.by_roles:
            book = rules.read_book(objects, defaults.ROLES)
        if self._setting.policy is not None:
            book = book.joined(Book(self._setting.policy(history)))
        return book


class Gate:
    """Admits requests: identifies the user, impersonates, and checks the rights."""

    def __init__(
        self,
        histories: Histories,
        authenticator: Authenticator,
        authorizer: Authorizer,
        tokens: ServiceTokens,
    ) -> None:
        self._histories = histories
        self._tokens = tokens
        self._authenticator = authenticator
        self._authorizer = authorizer
        self._unopened = _UnopenedBooks(histories, authorizer.book)

    async def admit(self, request: HttpRequest, place: RequestedTimeline) -> Identity:
        """The authorized identity. Raises Unauthorized, Forbidden, BadRequest."""
        identity = await self._identify(request, place)
        wants_other = impersonation.is_wanted(request)
        if self._authorizer.is_open:
            if wants_other:
                impersonation.questions(request)
                identity = impersonation.impersonated(identity, request)
            return identity
        try:
            runtime = await self._judging(place)
        except HistoryOpening as opening:
            await self._check_unopened(request, place, identity.actor, opening.name)
            raise
        if wants_other:
            for question in impersonation.questions(request):
                self._authorizer.check(runtime, identity.actor, question)
            identity = impersonation.impersonated(identity, request)
        question = question_of(request, place.path)
        self._authorizer.check(runtime, identity.actor, question)
        if _may_create(request, question) and not _exists(runtime, question):
            self._authorizer.check(runtime, identity.actor, replace(question, verb="create"))
        return identity

    async def sees_history(self, name: str, actor: Actor) -> bool:
        """Whether a user may know that a history exists: may get its page."""
        if self._authorizer.is_unlimited(actor):
            return True
        path = f"/redra/v1/histories/{name}"
        question = AccessRequest(verb="get", path=path)
        place = RequestedTimeline(history=name, moment="", prefix="", path=path)
        try:
            runtime = await self._judging(place)
        except HistoryOpening as opening:
            grants = await self._grants_unopened(opening.name, actor)
            return grants.decide(question).allowed
        return self._authorizer.decide(runtime, actor, question).allowed

    async def check_may_make(self, actor: Actor) -> None:
        """Raise Forbidden unless a user may create histories by the default history's rules."""
        if not self._authorizer.is_unlimited(actor):
            runtime = await self._histories.open(paths.DEFAULT_HISTORY)
            question = AccessRequest(verb="post", path="/redra/v1/histories")
            self._authorizer.check(runtime, actor, question)

    async def _check_unopened(
        self, request: HttpRequest, place: RequestedTimeline, actor: Actor, judging: str
    ) -> None:
        """Raise Forbidden for a user without the right, before they learn of the opening.

        `judging` is the history whose rules apply, as in `_judging`.
        """
        if self._authorizer.is_unlimited(actor):
            return
        questions = [question_of(request, place.path)]
        if impersonation.is_wanted(request):
            # What the other user may do is seen when the history is open.
            questions = impersonation.questions(request)
        grants = await self._grants_unopened(judging, actor)
        for question in questions:
            decision = grants.decide(question)
            if not decision.allowed:
                raise rules.forbidden(question, actor.user, decision.reason)

    async def check_reads_unopened(self, name: str, actor: Actor) -> None:
        """Raise Forbidden unless a user may read the answers about a history being opened."""
        if not self._authorizer.is_unlimited(actor):
            grants = await self._grants_unopened(name, actor)
            HistoryReader(user=actor.user, grants=grants).check_all(WORKED_OUT_FROM)

    async def _grants_unopened(self, name: str, actor: Actor) -> Grants:
        """The rights of a user in a history that is being opened.

        As in `_judging`, those of the default history count if there is no such history.
        """
        info = await self._histories.find(name) or await self._histories.info(paths.DEFAULT_HISTORY)
        return (await self._unopened.book(info)).grants(actor.user, actor.groups)

    async def _judging(self, place: RequestedTimeline) -> HistoryRuntime:
        """The history whose rules apply.

        For a history that does not exist or cannot be opened the default history's rules apply, so
        that the answer reveals nothing to users without rights.
        """
        try:
            return await self._histories.open(place.history)
        except (NotFound, HistoryBroken):
            if place.history == paths.DEFAULT_HISTORY:
                raise
            return await self._histories.open(paths.DEFAULT_HISTORY)

    async def _identify(self, request: HttpRequest, place: RequestedTimeline) -> Identity:
        """The identity of the user. Tokens of service accounts are valid only in their history."""
        claims = self._tokens.claims_of(request)
        if claims is None:
            return self._authenticator.identify(request)
        try:
            runtime = await self._judging(place)
        except HistoryOpening as opening:
            info = await self._histories.info(opening.name)
            self._tokens.check_meant_for(info, claims)
            raise
        return self._authenticator.shown(self._tokens.identify(runtime, claims), request)


def question_of(request: HttpRequest, path: str) -> AccessRequest:
    """The access question of a request. Raises MethodNotAllowed.

    A collection request that selects one name is judged by that name. The question about a
    Namespace object has that namespace.
    """
    resource = paths.parse_resource(path)
    if resource is None or not resource.resource:
        return AccessRequest(verb=request.method.lower(), path=path)
    verb = calls.verb_of(request, resource)
    name = resource.name
    if not name and verb in _NAMED_VERBS:
        name = _selected_name(request)
    namespace = resource.namespace
    if not resource.group and resource.resource == "namespaces" and resource.name:
        namespace = resource.name
    return AccessRequest(
        verb=verb,
        group=resource.group,
        resource=resource.resource,
        subresource=resource.subresource,
        namespace=namespace,
        name=name,
    )


def is_judged_by_content(request: HttpRequest, path: ResourcePath) -> bool:
    """Whether the written content counts too: the status of a claim, roles and bindings."""
    if request.method not in ("POST", "PUT", "PATCH"):
        return False
    if escalation.is_judged(path.group, path.resource):
        return True
    return (path.group, path.resource, path.subresource) == (
        api_groups.RESOURCE,
        "resourceclaims",
        "status",
    )


def _selected_name(request: HttpRequest) -> str:
    text = request.parameter("fieldSelector")
    if not text:
        return ""
    try:
        selector = selectors.parse_fields(text)
    except SelectorError:
        return ""
    for requirement in selector.requirements:
        if requirement.field == "metadata.name" and requirement.equal:
            return requirement.value
    return ""


def _may_create(request: HttpRequest, question: AccessRequest) -> bool:
    """Whether the request is an apply of a whole object, which creates a missing object."""
    content_type = request.header(b"content-type")
    is_apply = content_type.partition(";")[0].strip() in (
        PatchType.APPLY.value,
        "application/apply-patch+cbor",
    )
    return question.verb == "patch" and is_apply and not question.subresource


def _exists(runtime: HistoryRuntime, question: AccessRequest) -> bool:
    kind = history_kinds.find(runtime.views.objects, question.group, question.resource)
    if kind is None:
        return False
    namespace = question.namespace if kind.namespaced else ""
    key = ObjectKey(kind.group, kind.plural, namespace, question.name)
    return runtime.views.objects.event(key) is not None
