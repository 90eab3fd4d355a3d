"""Validation of MutatingWebhookConfigurations and ValidatingWebhookConfigurations.

Parity: objects.md 15.1; the messages are upstream's.
"""

from collections.abc import Sequence
from urllib.parse import urlsplit

from app.domain.objects.field_errors import (
    FieldError,
    duplicate,
    invalid,
    not_supported,
    required,
)
from app.domain.objects.validation.admission import matching
from app.domain.objects.validation.context import Context
from app.domain.objects.validation.ports import PORT_MAX, RANGE_TEXT
from app.domain.values import json_tree, names
from app.domain.values.fields import entries
from app.domain.values.json_tree import JsonView

SIDE_EFFECTS = ("None", "NoneOnDryRun")
REVIEW_VERSIONS = ("v1", "v1beta1")
REINVOCATIONS = ("IfNeeded", "Never")
SECONDS_MAX = 30
NAME_SEGMENTS_MIN = 3
_FORM = "; desired format: https://host[/path]"


def create(tree: JsonView, context: Context) -> list[FieldError]:
    """Checks a new webhook configuration of either kind."""
    errors: list[FieldError] = []
    seen: set[str] = set()
    for index, webhook in enumerate(json_tree.objects(tree, "webhooks")):
        path = f"webhooks[{index}]"
        name = entries.name(webhook)
        errors += _webhook(webhook, path, context)
        versions = json_tree.texts(webhook, "admissionReviewVersions")
        errors += _versions(versions, f"{path}.admissionReviewVersions")
        if name and name in seen:
            errors.append(duplicate(f"{path}.name", name))
        seen.add(name)
    return errors


def _webhook(webhook: JsonView, path: str, context: Context) -> list[FieldError]:
    errors = _name(entries.name(webhook), f"{path}.name")
    for index, rule in enumerate(json_tree.objects(webhook, "rules")):
        errors += matching.operations_rule(rule, f"{path}.rules[{index}]")
    for name, choices in (
        ("failurePolicy", matching.FAILURE_POLICIES),
        ("matchPolicy", matching.MATCH_POLICIES),
    ):
        errors += matching.choice(webhook, name, path, choices)
    effects = json_tree.text(webhook, "sideEffects")
    if "sideEffects" not in webhook:
        text = f"must specify one of {', '.join(SIDE_EFFECTS)}"
        errors.append(required(f"{path}.sideEffects", text))
    elif effects not in SIDE_EFFECTS:
        errors.append(not_supported(f"{path}.sideEffects", effects, SIDE_EFFECTS))
    seconds = json_tree.integer(webhook, "timeoutSeconds")
    if seconds is not None and not 1 <= seconds <= SECONDS_MAX:
        text = f"the timeout value must be between 1 and {SECONDS_MAX} seconds"
        errors.append(invalid(f"{path}.timeoutSeconds", seconds, text))
    errors += matching.selectors(webhook, path)
    errors += matching.choice(webhook, "reinvocationPolicy", path, REINVOCATIONS)
    errors += _client(json_tree.mapping(webhook, "clientConfig"), f"{path}.clientConfig")
    return errors + matching.conditions(webhook, path, context)


def _name(name: str, path: str) -> list[FieldError]:
    if not name:
        return [required(path)]
    problems = names.subdomain(name)
    if problems:
        return [invalid(path, name, ",".join(problems))]
    if len(name.split(".")) < NAME_SEGMENTS_MIN:
        text = "should be a domain with at least three segments separated by dots"
        return [invalid(path, name, text)]
    return []


def _client(client: JsonView, path: str) -> list[FieldError]:
    if ("url" in client) == ("service" in client):
        return [required(path, "exactly one of url or service is required")]
    if "url" in client:
        return _url(json_tree.text(client, "url"), f"{path}.url")
    return _service(json_tree.mapping(client, "service"), f"{path}.service")


def _url(url: str, path: str) -> list[FieldError]:
    try:
        parts = urlsplit(url)
        _ = parts.port
    except ValueError as problem:
        return [required(path, f"url must be a valid URL: {problem}{_FORM}")]
    errors: list[FieldError] = []
    if parts.scheme != "https":
        text = f"'https' is the only allowed URL scheme{_FORM}"
        errors.append(invalid(path, parts.scheme, text))
    user, at, host = parts.netloc.rpartition("@")
    if not host:
        errors.append(invalid(path, host, f"host must be specified{_FORM}"))
    for has_part, value, noun in (
        (at, user, "user information is"),
        (parts.fragment, parts.fragment, "fragments are"),
        (parts.query, parts.query, "query parameters are"),
    ):
        if has_part:
            errors.append(invalid(path, value, f"{noun} not permitted in the URL"))
    return errors


def _service(service: JsonView, path: str) -> list[FieldError]:
    errors = [
        required(f"{path}.{name}", f"service {name} is required")
        for name in ("name", "namespace")
        if not json_tree.text(service, name)
    ]
    port = json_tree.integer(service, "port")
    if port is not None and not 0 < port <= PORT_MAX:
        errors.append(invalid(f"{path}.port", port, f"port is not valid: {RANGE_TEXT}"))
    return errors + _path(json_tree.text(service, "path"), f"{path}.path")


def _path(text: str, path: str) -> list[FieldError]:
    if text in ("", "/"):
        return []
    if text == "//":
        return [invalid(path, text, "segment[0] may not be empty")]
    errors = [] if text.startswith("/") else [invalid(path, text, "must start with a '/'")]
    for index, step in enumerate(text[1:].removesuffix("/").split("/")):
        if not step:
            errors.append(invalid(path, text, f"segment[{index}] may not be empty"))
            continue
        problems = names.subdomain(step)
        errors += [invalid(path, text, f"segment[{index}]: {detail}") for detail in problems]
    return errors


def _versions(versions: Sequence[str], path: str) -> list[FieldError]:
    known = ", ".join(REVIEW_VERSIONS)
    if not versions:
        return [required(path, f"must specify one of {known}")]
    errors: list[FieldError] = []
    for index, version in enumerate(versions):
        if version in versions[:index]:
            errors.append(duplicate(f"{path}[{index}]", version))
            continue
        problems = names.label_1035(version)
        errors += [invalid(f"{path}[{index}]", version, detail) for detail in problems]
    if not set(versions) & set(REVIEW_VERSIONS):
        text = f"must include at least one of {known}"
        errors.append(invalid(path, list(versions), text))
    return errors
