"""The one place where writes are put before those who have a say in them."""

from app.domain.errors import BadRequest
from app.domain.log import ObjectKey, Stamp
from app.domain.objects import registry
from app.domain.objects.kind import Kind
from app.domain.objects.reader import ObjectsReader
from app.domain.objects.review import policies
from app.domain.objects.review.attributes import CREATE, DELETE, UPDATE, Attributes
from app.domain.objects.review.changes import failed
from app.domain.objects.rules import Rules
from app.domain.objects.write import admission
from app.domain.objects.write.commands import FieldValidation, WriteOptions
from app.domain.values.json_tree import JsonObject

__all__ = ["CREATE", "DELETE", "UPDATE", "ask", "changed", "judged"]


def ask(
    reader: ObjectsReader,
    rules: Rules,
    stamp: Stamp,
    kind: Kind,
    key: ObjectKey,
    *,
    operation: str,
    group: str,
    version: str,
    subresource: str = "",
    tree: JsonObject | None,
    old: JsonObject | None,
    options: WriteOptions,
) -> tuple[str, ...]:
    """The warnings of the policies about a write; see `Attributes`. Raises what refuses it."""
    if options.skips_review:
        return ()
    review = options.review
    if review is None and (rules.policy_rules is None or not policies.are_bound(reader)):
        return ()
    attributes = Attributes(
        kind=kind,
        key=key,
        group=group,
        version=version,
        operation=operation,
        subresource=subresource,
        tree=tree,
        old=old,
        actor=stamp.actor,
        options=options,
    )
    if review is not None:
        review.check(old)
        review.after = attributes
    return judged(attributes, reader, rules)


def judged(attributes: Attributes, reader: ObjectsReader, rules: Rules) -> tuple[str, ...]:
    """The warnings of the policies about a write. Raises what refuses it."""
    if rules.policy_rules is None or not policies.are_bound(reader):
        return ()
    return policies.check(attributes, reader, rules.policy_rules)


def changed(
    rules: Rules,
    stamp: Stamp,
    kind: Kind,
    key: ObjectKey,
    *,
    operation: str,
    api_version: str,
    subresource: str = "",
    tree: JsonObject,
    old: JsonObject | None,
    options: WriteOptions,
) -> JsonObject:
    """The object with what webhooks have changed and its defaults; the same when nobody was asked.

    Its metadata is that which a client may set. Raises what keeps patches from being applied.
    """
    review = options.review
    if review is None or options.skips_review:
        return tree
    group, version = registry.split_api_version(api_version)
    attributes = Attributes(
        kind=kind,
        key=key,
        group=group,
        version=version,
        operation=operation,
        subresource=subresource,
        tree=tree,
        old=old,
        actor=stamp.actor,
        options=options,
    )
    found = review.changed(attributes)
    if not review.patches:
        return tree
    ignoring = WriteOptions(field_validation=FieldValidation.IGNORE)
    try:
        again, _ = admission.admit(
            kind, kind.group, kind.storage_version, found,
            options=ignoring, rules=rules, now=stamp.time,
        )  # fmt: skip
    except BadRequest as problem:
        raise failed(problem.message) from problem
    return again
