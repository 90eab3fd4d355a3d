"""The question of a request about a history: its reader, its moment, its parameters."""

from collections.abc import Awaitable, Callable, Iterable
from dataclasses import dataclass

import msgspec

from app.analysis import device_map
from app.analysis import lanes as lane_picture
from app.analysis.explain.questions import Question, placed
from app.analysis.timeline_pages import Filter
from app.analysis.views import LiveViews
from app.api.access.readers import HistoryReader
from app.api.server.messages import HttpRequest, Response, Stream
from app.domain.errors import BadRequest
from app.domain.log import Actor, Event, ObjectKey
from app.domain.objects import history_kinds
from app.service import moments
from app.service.explaining import find_key
from app.service.runtime import HistoryRuntime


@dataclass(frozen=True, slots=True, kw_only=True)
class Inquiry:
    """A request about a part of one history at `moment` (empty: the present).

    `reader` returns the user's present rights to read.
    """

    request: HttpRequest
    runtime: HistoryRuntime
    rest: str
    moment: str
    reader: Callable[[], HistoryReader]
    actor: Actor

    def seen(self, events: Iterable[Event]) -> list[Event]:
        """The events that the reader may see."""
        reader = self.reader()
        return [event for event in events if reader.sees_event(event)]

    def required(self, name: str) -> str:
        """A parameter of the query. Raises BadRequest when it is missing."""
        value = self.request.parameter(name)
        if not value:
            raise BadRequest(f"the parameter {name} is missing")
        return value


def question_of(inquiry: Inquiry) -> Question:
    """The why question in the parameters."""
    request, kind = inquiry.request, inquiry.required("kind")
    namespace = request.parameter("namespace") or "default"
    namespace, name = placed(kind, inquiry.required("name"), namespace)
    return Question(
        kind=kind,
        namespace=namespace,
        name=name,
        node=request.parameter("node"),
        help=request.flag("help"),
    )


async def object_of(inquiry: Inquiry, views: LiveViews) -> ObjectKey:
    """The object in the parameters, also of a kind that the history defines, or only keeps."""
    plural, _, group = inquiry.required("kind").partition(".")
    kind = history_kinds.find(views.objects, group, plural)
    namespace = inquiry.request.parameter("namespace")
    if kind is not None:
        group, plural = kind.group, kind.plural
        namespace = (namespace or "default") if kind.namespaced else ""
    elif (group, plural) not in views.objects.resources():
        return await subject_of(inquiry)
    return ObjectKey(group, plural, namespace, inquiry.required("name"))


def filter_of(inquiry: Inquiry) -> Filter:
    """The filter of a timeline in the parameters."""
    request = inquiry.request
    names = ("kind", "resource", "namespace", "name", "actor", "text")
    texts = {name: request.parameter(name) for name in names}
    return Filter(**texts, decisions=request.flag("decisions"))


STRETCH = ("since", "until")
"""The parameters of a stretch of time, which hold moments beside `at`."""


def lanes_wanted(inquiry: Inquiry) -> lane_picture.LanesRequest:
    """The requested lanes in the parameters."""
    request = inquiry.request
    return lane_picture.LanesRequest(
        namespace=request.parameter("namespace"), name=request.parameter("name")
    )


def pools_wanted(inquiry: Inquiry) -> device_map.DeviceMapRequest:
    """The requested pools in the parameters."""
    names = ("driver", "pool", "node", "labels")
    return device_map.DeviceMapRequest(**{name: inquiry.request.parameter(name) for name in names})


async def subject_of(inquiry: Inquiry) -> ObjectKey:
    """The object in the parameters `kind`, `namespace` and `name`."""
    runtime = inquiry.runtime
    return await find_key(runtime.log, runtime.info, question_of(inquiry), runtime.views.objects)


def integer(request: HttpRequest, name: str, default: int) -> int:
    """A parameter as a number. Raises BadRequest for other texts."""
    text = request.parameter(name)
    if not text:
        return default
    if not text.isascii() or not text.isdigit():
        raise BadRequest(f'{name} must be a number, not "{text[:64]}"')
    if len(text) > 18:
        raise BadRequest(f"{name} must be a number of at most 18 digits")
    return int(text)


SIGNED = "head"
"""The part of the answers that is signed, and has no further field."""


async def with_meanings(
    inquiry: Inquiry, part: str, answering: Awaitable[Response | Stream]
) -> Response | Stream:
    """The answer, with the meanings of relative moments."""
    end = inquiry.runtime.end
    answer = await answering
    if part == SIGNED or not isinstance(answer, Response):
        return answer
    request = inquiry.request
    given = (inquiry.moment, *(request.parameter(name) for name in STRETCH))
    return msgspec.structs.replace(answer, body=moments.with_meaning(answer.body, given, end))


def with_meaning(runtime: HistoryRuntime, moment: str, answer: Response) -> Response:
    """The answer about a moment, with its meaning if it is relative."""
    return msgspec.structs.replace(
        answer, body=moments.with_meaning(answer.body, [moment], runtime.end)
    )
