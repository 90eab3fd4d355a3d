"""The errors of redra, as one tree.

    RedraError
    ├── Rejected                    the rules refuse a command; nothing was appended
    │   ├── BadRequest              400 the request cannot be read or contradicts itself
    │   ├── Unauthorized            401 the credentials are missing or unknown
    │   ├── Forbidden               403 known, but not allowed
    │   ├── NotFound                404 no such object, resource or history
    │   ├── MethodNotAllowed        405 the resource does not support the verb
    │   ├── NotAcceptable           406 no representation that the client accepts
    │   ├── AlreadyExists           409 an object of that name exists
    │   ├── Conflict                409 the object changed, or another manager owns a field
    │   │   └── ReviewOutdated      webhooks were asked about another state
    │   ├── Denied                  an admission webhook says no, with the code that it gives
    │   ├── Expired                 410 the revision asked for is no longer offered
    │   ├── TooLarge                413 a bound on the size of a request
    │   ├── UnsupportedMediaType    415 the body is in a form that is not read
    │   ├── Invalid                 422 the object breaks rules; carries one cause per field
    │   ├── TooManyRequests         429 come back later
    │   └── RevisionTooLarge        504 a revision that does not exist yet
    ├── LogError                    the log cannot take or give events
    │   ├── HeadMoved               another writer appended first; fold and decide again
    │   ├── StaleLease              the writer's lease has been taken over; it must stop
    │   ├── LogUnavailable          no connection, disk full, time-out; retry when the cause is gone
    │   ├── WrongDatabase           the database is not ours or not at our schema version
    │   ├── NotStorable             a text, number or time that no database holds
    │   ├── ChainBroken             a stored event does not fit its hash; names the revision
    │   ├── HistoryBroken           a history cannot be folded; the others are served
    │   └── HistoryOpening          a long history is being read; ask again
    ├── ClusterUnreachable          a real cluster's API gives no usable answer; try again
    ├── ServerUnreachable           a server of redra gives no usable answer; try again
    └── InputError                  a file, an argument or a setting; names place and cure
        ├── PlainSecrets            a history with Secrets in plain text, which must not leave it
        └── TooManyEvents           a run exceeds its bound; a smaller history may not

An error carries fields; the message is made from them. `app/api/kubernetes/status.py` turns
`Rejected` into a Kubernetes Status, the command line prints `InputError` and `LogError` as one
sentence.
"""

from dataclasses import dataclass


class RedraError(Exception):
    """The base class of all errors; never raised itself."""


@dataclass(frozen=True, slots=True, kw_only=True)
class StatusCause:
    """One reason why an object or request was refused.

    `reason` is a cause type of the Kubernetes Status (`FieldValueInvalid`, …), `field` a path such
    as `spec.devices.requests[0].name`, `message` the text without the path.
    """

    reason: str
    message: str
    field: str = ""


class Rejected(RedraError):
    """A command or request that the rules refuse. Nothing was appended.

    `code` and `reason` are those of the Kubernetes Status. `resource` is the plural (or the Kind
    for `Invalid`), `group` the API group, `name` the object's name; all may be empty. A generic
    error is explained by the HTTP code alone: its Status has details even if they are empty.
    `undecodable` is the reason why a body cannot be decoded as its kind; empty for other errors.
    `warnings` are returned beside the refusal. `by_policy` is true when the message comes from an
    admission policy, which may quote any object.
    """

    code: int = 500
    reason: str = "InternalError"

    def __init__(
        self,
        message: str,
        *,
        group: str = "",
        resource: str = "",
        name: str = "",
        uid: str = "",
        causes: tuple[StatusCause, ...] = (),
        retry_after_seconds: int = 0,
        is_generic: bool = False,
        undecodable: str = "",
    ) -> None:
        super().__init__(message)
        self.message = message
        self.group = group
        self.resource = resource
        self.name = name
        self.uid = uid
        self.causes = causes
        self.retry_after_seconds = retry_after_seconds
        self.is_generic = is_generic
        self.undecodable = undecodable
        self.warnings: tuple[str, ...] = ()
        self.by_policy = False


class BadRequest(Rejected):
    """The request cannot be read, or contradicts itself. Cure: change the request."""

    code = 400
    reason = "BadRequest"


class Unauthorized(Rejected):
    """Credentials are missing or unknown. Cure: a valid token or client certificate."""

    code = 401
    reason = "Unauthorized"


class Forbidden(Rejected):
    """The actor is known and may not do this. Cure: a role that allows it."""

    code = 403
    reason = "Forbidden"


class NotFound(Rejected):
    """The object, resource, subresource or history does not exist."""

    code = 404
    reason = "NotFound"


class MethodNotAllowed(Rejected):
    """The resource exists and does not support the verb."""

    code = 405
    reason = "MethodNotAllowed"


class NotAcceptable(Rejected):
    """No representation that the client accepts can be produced."""

    code = 406
    reason = "NotAcceptable"


class AlreadyExists(Rejected):
    """An object of that name exists already."""

    code = 409
    reason = "AlreadyExists"


class Conflict(Rejected):
    """The object is not at the revision that the writer expects, or a field has another owner.

    Cure: read the object again and repeat the write.
    """

    code = 409
    reason = "Conflict"


class ReviewOutdated(Conflict):
    """Admission webhooks were asked about another state of the object. Cure: ask them again."""


class Denied(Rejected):
    """An admission webhook refuses the write, with the code and reason that it gives."""

    def __init__(
        self,
        message: str,
        *,
        code: int = 400,
        reason: str = "BadRequest",
        group: str = "",
        resource: str = "",
        name: str = "",
        causes: tuple[StatusCause, ...] = (),
    ) -> None:
        super().__init__(message, group=group, resource=resource, name=name, causes=causes)
        self.code = code
        self.reason = reason


class Expired(Rejected):
    """The revision is no longer served; raised only with the setting that emulates compaction.

    `continue_token` continues a paged list at the present revision, as an inconsistent list.
    """

    code = 410
    reason = "Expired"

    def __init__(
        self,
        message: str,
        *,
        group: str = "",
        resource: str = "",
        name: str = "",
        continue_token: str = "",
    ) -> None:
        super().__init__(message, group=group, resource=resource, name=name)
        self.continue_token = continue_token


class TooLarge(Rejected):
    """The request exceeds a bound on its size, named in the message."""

    code = 413
    reason = "RequestEntityTooLarge"


class UnsupportedMediaType(Rejected):
    """The body has a media type that the server does not read."""

    code = 415
    reason = "UnsupportedMediaType"


class Invalid(Rejected):
    """The object breaks rules; `causes` names each with its field path."""

    code = 422
    reason = "Invalid"


class UnreadablePatch(Invalid):
    """A patch after which the object cannot be decoded as its kind.

    The message names no object, as in a cluster. `subject` names it (`nodes/node-1`), and `detail`
    is the message without the empty name.
    """

    def __init__(
        self,
        message: str,
        *,
        group: str = "",
        resource: str = "",
        name: str = "",
        subject: str = "",
        detail: str = "",
        causes: tuple[StatusCause, ...] = (),
    ) -> None:
        super().__init__(message, group=group, resource=resource, name=name, causes=causes)
        self.subject = subject
        self.detail = detail


class TooManyRequests(Rejected):
    """A disruption budget or a bound on concurrent work refuses the request. Cure: repeat later."""

    code = 429
    reason = "TooManyRequests"


class RevisionTooLarge(Rejected):
    """The requested revision does not exist yet."""

    code = 504
    reason = "Timeout"


class LogError(RedraError):
    """The log cannot append or read events; see the subclasses."""


@dataclass(eq=False)
class HeadMoved(LogError):
    """Another writer appended first. Cure: fold the missing events and decide again."""

    expected: int
    actual: int

    def __str__(self) -> str:
        return f"the log is at revision {self.actual}, not {self.expected}: another process wrote"


@dataclass(eq=False)
class StaleLease(LogError):
    """The lease of the writer has been taken over by another holder.

    Cure: stop deciding, acquire the lease again.
    """

    name: str
    epoch: int

    def __str__(self) -> str:
        return f"the lease {self.name!r} of epoch {self.epoch} has been taken over"


class LogUnavailable(LogError):
    """The log has no connection, a full disk or a time-out; the text names the cause.

    Cure: retry when the cause is gone.
    """


class WrongDatabase(LogError):
    """The database is not ours, or its schema is older or newer than this program."""


class NotStorable(LogError):
    """A text, number or time is outside the range of the database. Cure: use another value."""


@dataclass(eq=False)
class ChainBroken(LogError):
    """The event at `revision` does not match the hash chain: it or its predecessor was changed."""

    revision: int
    detail: str

    def __str__(self) -> str:
        return f"the hash chain breaks at revision {self.revision}: {self.detail}"


@dataclass(eq=False)
class HistoryBroken(LogError):
    """The history `name` cannot be opened or followed; the `cause` is in its log.

    The server tries again when the log has changed. Cure: import or restore the history again, or
    report the cause if it is a mistake of this program.
    """

    name: str
    cause: str

    def __str__(self) -> str:
        return f"the history {self.name!r} is broken: {self.cause}"


@dataclass(eq=False)
class HistoryOpening(LogError):
    """The history `name` is being opened, up to its event `last`. Cure: ask again."""

    name: str
    read: int
    last: int
    retry_seconds: int

    def __str__(self) -> str:
        return (
            f"the history {self.name!r} is being opened: {self.read:,} of {self.last:,} events "
            "are read"
        )


class ClusterUnreachable(RedraError):
    """A real cluster's API gives no answer, a late answer or an incomplete one. Cure: try later.

    `is_refused` is true when its certificate is not accepted: trying again does not help.
    `is_broken` is true when a connection came about and broke, or the server answers that it
    failed: trying again soon may help.
    """

    def __init__(self, message: str, *, is_refused: bool = False, is_broken: bool = False) -> None:
        super().__init__(message)
        self.is_refused = is_refused
        self.is_broken = is_broken


class ServerUnreachable(RedraError):
    """A server of redra gives a command no answer, a late answer or an unexpected one.

    Cure: start the server, or name the data folder instead.
    """


class InputError(RedraError):
    """A file, an argument or a setting cannot be used.

    `place` is the file, line, column or argument, `problem` the mistake, `cure` what to do. The
    command line prints the error as one sentence and ends with exit code 2.
    """

    def __init__(self, problem: str, *, place: str = "", cure: str = "") -> None:
        self.problem = problem
        self.place = place
        self.cure = cure
        text = f"{place}: {problem}" if place else problem
        super().__init__(f"{text}; {cure}" if cure else text)


class TooManyEvents(InputError):
    """A run of a history has more events than its bound. Cure: a shorter history."""


class PlainSecrets(InputError):
    """A history holds values of Secrets in plain text, as old programs stored them.

    A bundle without keys is refused; work that needs one is done where the history is.
    """
