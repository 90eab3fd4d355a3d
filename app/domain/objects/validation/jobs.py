"""Validation of Jobs and CronJobs. The selector and a started Job's template are immutable.

Parity: objects.md 15.1; the messages are upstream's; a template is printed as it was written, not
with upstream's field names.
"""

from typing import Any

from app.domain.objects.field_errors import (
    FieldError,
    immutable,
    invalid,
    not_supported,
    required,
)
from app.domain.objects.validation import label_selectors
from app.domain.objects.validation.context import Context
from app.domain.objects.validation.pods import specs
from app.domain.objects.validation.workloads import UNMATCHED
from app.domain.values import json_tree
from app.domain.values.fields import meta
from app.domain.values.json_tree import JsonObject, JsonView

CRON_NAME_MAX = 52
"""The longest name of a CronJob in characters: the name of its Job has a suffix of 11 more."""

_POLICIES = ("OnFailure", "Never")
_MODES = ("Indexed", "NonIndexed")
_CONCURRENCY = ("Allow", "Forbid", "Replace")
_NUMBERS = ("parallelism", "completions", "backoffLimit", "ttlSecondsAfterFinished")
_FROZEN = (
    *("completionMode", "podFailurePolicy", "backoffLimitPerIndex", "successPolicy"),
    "managedBy",
)
_PLACING = ("affinity", "nodeSelector", "schedulingGates", "tolerations")
"""Fields of a template's spec that may change while a suspended Job never started."""
_CRON_FIELDS = 5


def create(tree: JsonView, _context: Context) -> list[FieldError]:
    """Checks a new Job."""
    spec = meta.spec(tree)
    errors = _spec(spec, "spec")
    selector = json_tree.mapping(spec, "selector")
    labels = json_tree.labels(spec, "template", "metadata", "labels")
    if not label_selectors.is_empty(selector) and not label_selectors.matches(selector, labels):
        errors.append(invalid("spec.template.metadata.labels", labels, UNMATCHED))
    return errors


def update(tree: JsonView, old: JsonView, subresource: str, _context: Context) -> list[FieldError]:
    """Checks a changed Job."""
    if subresource:
        return []
    spec, before = meta.spec(tree), meta.spec(old)
    errors = _spec(spec, "spec")
    if _completions_are_frozen(spec, before):
        errors.append(immutable("spec.completions", spec.get("completions")))
    if spec.get("selector") != before.get("selector"):
        errors.append(immutable("spec.selector", spec.get("selector")))
    has_begun = not json_tree.flag(before, "suspend") or json_tree.get(old, "status", "startTime")
    template = _compared(spec.get("template"), has_begun=bool(has_begun))
    if template != _compared(before.get("template"), has_begun=bool(has_begun)):
        errors.append(immutable("spec.template", spec.get("template")))
    errors += [
        immutable(f"spec.{name}", spec.get(name))
        for name in _FROZEN
        if spec.get(name) != before.get(name)
    ]
    return errors


def create_cron_job(tree: JsonView, _context: Context) -> list[FieldError]:
    """Checks a new CronJob."""
    spec = meta.spec(tree)
    name = meta.name(tree)
    errors = _cron_spec(spec)
    if len(name) > CRON_NAME_MAX:
        detail = f"must be no more than {CRON_NAME_MAX} characters"
        errors.append(invalid("metadata.name", name, detail))
    return errors


def update_cron_job(
    tree: JsonView, _old: JsonView, subresource: str, _context: Context
) -> list[FieldError]:
    """Checks a changed CronJob."""
    return [] if subresource else _cron_spec(meta.spec(tree))


def _cron_spec(spec: JsonView) -> list[FieldError]:
    errors: list[FieldError] = []
    schedule = json_tree.text(spec, "schedule")
    fields = schedule.split()
    if not schedule:
        errors.append(required("spec.schedule"))
    elif not schedule.startswith("@") and len(fields) != _CRON_FIELDS:
        shown = " ".join(fields)
        detail = f"expected exactly {_CRON_FIELDS} fields, found {len(fields)}: [{shown}]"
        errors.append(invalid("spec.schedule", schedule, detail))
    errors += label_selectors.not_negative(spec, "startingDeadlineSeconds", "spec")
    policy = json_tree.text(spec, "concurrencyPolicy")
    if policy not in _CONCURRENCY:
        errors.append(not_supported("spec.concurrencyPolicy", policy, _CONCURRENCY))
    errors += _spec(json_tree.mapping(spec, "jobTemplate", "spec"), "spec.jobTemplate.spec")
    for name in ("successfulJobsHistoryLimit", "failedJobsHistoryLimit"):
        errors += label_selectors.not_negative(spec, name, "spec")
    return errors


def _spec(spec: JsonView, path: str) -> list[FieldError]:
    errors: list[FieldError] = []
    for name in _NUMBERS:
        errors += label_selectors.not_negative(spec, name, path)
    deadline = json_tree.integer(spec, "activeDeadlineSeconds")
    if deadline is not None and deadline < 0:
        detail = label_selectors.NEGATIVE_TEXT
        errors.append(invalid(f"{path}.activeDeadlineSeconds", deadline, detail))
    mode = json_tree.text(spec, "completionMode")
    if mode and mode not in _MODES:
        errors.append(not_supported(f"{path}.completionMode", mode, _MODES))
    elif mode == "Indexed" and spec.get("completions") is None:
        detail = "when completion mode is Indexed"
        errors.append(required(f"{path}.completions", detail))
    template = json_tree.mapping(spec, "template")
    errors += specs.check_template(template, f"{path}.template")
    if json_tree.text(template, "spec", "restartPolicy") not in _POLICIES:
        detail = 'valid values: "OnFailure", "Never"'
        errors.append(required(f"{path}.template.spec.restartPolicy", detail))
    return errors


def _completions_are_frozen(spec: JsonView, before: JsonView) -> bool:
    """Whether changed completions are refused; in an Indexed Job they may equal parallelism."""
    if spec.get("completions") == before.get("completions"):
        return False
    follows = spec.get("completions") == spec.get("parallelism")
    return json_tree.text(before, "completionMode") != "Indexed" or not follows


def _compared(template: Any, *, has_begun: bool) -> JsonObject:
    """The immutable part of a template; until the Job starts, without labels and placement."""
    compared: JsonObject = dict(template) if isinstance(template, dict) else {}
    if has_begun:
        return compared
    written, spec = dict(compared.get("metadata") or {}), dict(compared.get("spec") or {})
    for name in ("annotations", "labels"):
        written.pop(name, None)
    for name in _PLACING:
        spec.pop(name, None)
    return compared | {"metadata": written, "spec": spec}
