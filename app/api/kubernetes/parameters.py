"""Query parameters of requests, read and checked once. Parity: api.md 5 and 6."""

import json
from dataclasses import dataclass

import msgspec

from app.api.server.messages import HttpRequest
from app.domain.errors import BadRequest, Invalid, StatusCause
from app.domain.objects.write.commands import FieldValidation, PatchType, Propagation, WriteOptions
from app.domain.values import api_groups, json_tree
from app.domain.values.fields import meta
from app.domain.values.identifiers import NO_UID, Uid
from app.domain.values.json_tree import JsonObject

MANAGER_LENGTH_MAX = 128

_WITH_CONTINUE = "resourceVersionMatch is forbidden when continue is provided"

_VALIDATIONS = {"": FieldValidation.WARN} | {mode.value: mode for mode in FieldValidation}


@dataclass(frozen=True, slots=True, kw_only=True)
class ListOptions:
    """The options of a list or watch. `send_initial_events` is None when it is absent."""

    label_selector: str = ""
    field_selector: str = ""
    limit: int = 0
    continue_token: str = ""
    resource_version: str = ""
    resource_version_match: str = ""
    timeout_seconds: int | None = None
    watch: bool = False
    bookmarks: bool = False
    send_initial_events: bool | None = None

    @property
    def revision(self) -> int:
        """The resourceVersion as a number, 0 when it is absent. Raises BadRequest."""
        beginning = "" if self.watch else "invalid resource version: "
        return parse_revision(self.resource_version, beginning=beginning)


@dataclass(frozen=True, slots=True, kw_only=True)
class DeleteOptions:
    """The options of a delete."""

    grace_seconds: int | None = None
    propagation: Propagation | None = None
    uid: Uid = NO_UID
    resource_version: str = ""


def parse_revision(text: str, *, beginning: str = "") -> int:
    """A resourceVersion as a number; empty is 0. Raises BadRequest with `beginning` before it."""
    if not text:
        return 0
    if not text.isascii() or not text.isdigit() or len(text) > 18:
        raise BadRequest(
            f'{beginning}resourceVersion: Invalid value: "{text[:64]}": '
            f'strconv.ParseUint: parsing "{text[:64]}": invalid syntax'
        )
    return int(text)


def get_revision(request: HttpRequest) -> int:
    """The minimum revision of an object; 0 for any. Raises BadRequest."""
    return parse_revision(request.parameter("resourceVersion"))


def list_options(request: HttpRequest) -> ListOptions:
    """Read and check the options of a list or watch. Raises BadRequest or Invalid."""
    query = request.query
    if not query:
        return ListOptions()
    initial = request.flag("sendInitialEvents") if "sendInitialEvents" in query else None
    timeout = _number(request, "timeoutSeconds", signed=True)
    # Parity: api.md 7; a timeout that is not above zero counts as absent.
    timeout = timeout if timeout is None or timeout > 0 else None
    options = ListOptions(
        label_selector=request.parameter("labelSelector"),
        field_selector=request.parameter("fieldSelector"),
        limit=max(0, _number(request, "limit", signed=True) or 0),
        continue_token=request.parameter("continue"),
        resource_version=request.parameter("resourceVersion"),
        resource_version_match=request.parameter("resourceVersionMatch"),
        timeout_seconds=timeout,
        watch=request.flag("watch"),
        bookmarks=request.flag("allowWatchBookmarks"),
        send_initial_events=initial,
    )
    if options.resource_version_match or initial is not None:
        _check_match(options)
    return options


def write_options(request: HttpRequest, *, patch: PatchType | None, action: str) -> WriteOptions:
    """Read and check the options of a write; `action` is Create, Update, Patch or Delete."""
    query = request.query
    is_apply = patch is PatchType.APPLY
    if not query and not is_apply:
        return _PLAIN
    causes: list[StatusCause] = []
    dry_run = query.get("dryRun", [])
    causes.extend(_dry_run_causes(dry_run))
    validation = request.parameter("fieldValidation")
    mode = _VALIDATIONS.get(validation)
    if mode is None:
        allowed = ["", "Ignore", "Strict", "Warn"]
        causes.append(_unsupported("fieldValidation", validation, allowed))
    manager = request.parameter("fieldManager")
    causes.extend(_manager_causes(manager))
    force = request.flag("force")
    if is_apply and not manager:
        text = "Required value: is required for apply patch"
        causes.append(StatusCause(reason="FieldValueRequired", message=text, field="fieldManager"))
    if "force" in query and action == "Patch" and not is_apply:
        text = "Forbidden: may not be specified for non-apply patch"
        causes.append(StatusCause(reason="FieldValueForbidden", message=text, field="force"))
    if causes or mode is None:
        raise _invalid(f"{action}Options", causes)
    return WriteOptions(
        field_manager=manager, force=force, dry_run=bool(dry_run), field_validation=mode
    )


def delete_options(request: HttpRequest, body: JsonObject | None) -> tuple[DeleteOptions, bool]:
    """The options of a delete from its body or else its query; and whether it is a dry run."""
    if body:
        kind = meta.kind(body)
        if kind and kind != "DeleteOptions":
            raise BadRequest(f'the body of a delete must be DeleteOptions, not "{kind[:64]}"')
        grace = body.get("gracePeriodSeconds")
        policy = json_tree.text(body, "propagationPolicy")
        orphan = body.get("orphanDependents")
        dry_run = json_tree.texts(body, "dryRun")
    else:
        grace = _number(request, "gracePeriodSeconds", signed=True)
        policy = request.parameter("propagationPolicy")
        orphan = request.flag("orphanDependents") if "orphanDependents" in request.query else None
        dry_run = request.query.get("dryRun", [])
    causes = _dry_run_causes(dry_run)
    known = [mode.value for mode in (Propagation.FOREGROUND, Propagation.BACKGROUND)]
    known.append(Propagation.ORPHAN.value)
    if policy and policy not in known:
        causes.append(_unsupported("propagationPolicy", policy, [*known, "nil"]))
    if policy and orphan is not None:
        text = (
            f'Invalid value: "{policy}": orphanDependents and deletionPropagation cannot be both '
            "set"
        )
        causes.append(
            StatusCause(reason="FieldValueInvalid", message=text, field="propagationPolicy")
        )
    if grace is not None and (not isinstance(grace, int) or isinstance(grace, bool)):
        raise BadRequest("gracePeriodSeconds must be an integer")
    if causes:
        raise _invalid("DeleteOptions", causes)
    if orphan is not None:
        policy = (Propagation.ORPHAN if orphan else Propagation.BACKGROUND).value
    # A negative grace means one second. Parity: api.md 5.
    options = DeleteOptions(
        grace_seconds=max(1, grace) if isinstance(grace, int) and grace < 0 else grace,
        propagation=Propagation(policy) if policy else None,
        uid=Uid(json_tree.text(body or {}, "preconditions", "uid")),
        resource_version=json_tree.text(body or {}, "preconditions", "resourceVersion"),
    )
    return options, bool(dry_run)


def with_problems(options: WriteOptions, problems: tuple[str, ...]) -> WriteOptions:
    """The options with the problems found while decoding."""
    return msgspec.structs.replace(options, decoding_problems=problems) if problems else options


_PLAIN = WriteOptions()


def _number(request: HttpRequest, name: str, *, signed: bool = False) -> int | None:
    text = request.parameter(name)
    if not text:
        return None
    digits = text[1:] if signed and text.startswith("-") else text
    if not digits.isascii() or not digits.isdigit() or len(digits) > 18:
        raise BadRequest(f'strconv.ParseInt: parsing "{text[:64]}": invalid syntax')
    return int(text)


def _check_match(options: ListOptions) -> None:
    """The rules for resourceVersionMatch and sendInitialEvents."""
    match = options.resource_version_match
    causes: list[StatusCause] = []
    if options.watch:
        if options.send_initial_events is None:
            causes.append(
                _forbidden(
                    "resourceVersionMatch",
                    "resourceVersionMatch is forbidden for watch unless sendInitialEvents is "
                    "provided",
                )
            )
        elif match != "NotOlderThan":
            causes.append(
                _forbidden(
                    "resourceVersionMatch",
                    "sendInitialEvents requires setting resourceVersionMatch to NotOlderThan",
                )
            )
            if match:
                causes.append(_unsupported("resourceVersionMatch", match, ["NotOlderThan"]))
        if options.continue_token:
            causes.append(_forbidden("resourceVersionMatch", _WITH_CONTINUE))
    elif options.send_initial_events is not None:
        causes.append(_forbidden("sendInitialEvents", "sendInitialEvents is forbidden for list"))
    elif match not in ("Exact", "NotOlderThan"):
        causes.append(_unsupported("resourceVersionMatch", match, ["Exact", "NotOlderThan", ""]))
    else:
        if not options.resource_version:
            causes.append(
                _forbidden(
                    "resourceVersionMatch",
                    "resourceVersionMatch is forbidden unless resourceVersion is provided",
                )
            )
        if options.continue_token:
            causes.append(_forbidden("resourceVersionMatch", _WITH_CONTINUE))
        if match == "Exact" and options.resource_version == "0":
            causes.append(
                _forbidden(
                    "resourceVersionMatch",
                    'resourceVersionMatch "exact" is forbidden for resourceVersion "0"',
                )
            )
    if causes:
        raise _invalid("ListOptions", causes)


def _manager_causes(manager: str) -> list[StatusCause]:
    causes = []
    if len(manager) > MANAGER_LENGTH_MAX:
        text = f"Too long: may not be more than {MANAGER_LENGTH_MAX} bytes"
        causes.append(StatusCause(reason="FieldValueTooLong", message=text, field="fieldManager"))
    for position, character in enumerate(manager):
        if not character.isprintable():
            shown = json.dumps(manager[:64], ensure_ascii=False)
            where = f"invalid character U+{ord(character):04X} (at position {position})"
            text = f"Invalid value: {shown}: {where}"
            causes.append(
                StatusCause(reason="FieldValueInvalid", message=text, field="fieldManager")
            )
            break
    return causes


def _dry_run_causes(values: list[str]) -> list[StatusCause]:
    """The errors of `dryRun`. Parity: api.md 5; the message prints the value as a list."""
    if all(value == "All" for value in values):
        return []
    shown = json.dumps([value[:64] for value in values], ensure_ascii=False)
    text = f'Unsupported value: {shown}: supported values: "All"'
    return [StatusCause(reason="FieldValueNotSupported", message=text, field="dryRun")]


def _unsupported(field: str, value: str, allowed: list[str]) -> StatusCause:
    listed = ", ".join(f'"{item}"' for item in allowed)
    return StatusCause(
        reason="FieldValueNotSupported",
        message=f'Unsupported value: "{value[:64]}": supported values: {listed}',
        field=field,
    )


def _forbidden(field: str, text: str) -> StatusCause:
    return StatusCause(reason="FieldValueForbidden", message=f"Forbidden: {text}", field=field)


def _invalid(kind: str, causes: list[StatusCause]) -> Invalid:
    texts = [f"{cause.field}: {cause.message}" for cause in causes]
    listed = texts[0] if len(texts) == 1 else f"[{', '.join(texts)}]"
    return Invalid(
        f'{kind}.meta.k8s.io "" is invalid: {listed}',
        group=api_groups.META,
        resource=kind,
        causes=tuple(causes),
    )
