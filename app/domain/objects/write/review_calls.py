"""The only place where writes are submitted to policies and webhooks."""

from app.domain.errors import BadRequest
from app.domain.objects.reader import ObjectsReader
from app.domain.objects.review import policies
from app.domain.objects.review.attributes import CREATE, DELETE, UPDATE, Attributes
from app.domain.objects.review.changes import failed
from app.domain.objects.rules import Rules
from app.domain.objects.write import admission
from app.domain.objects.write.commands import FieldValidation, WriteOptions
from app.domain.objects.write.context import WriteContext
from app.domain.values.json_tree import JsonObject

__all__ = ["CREATE", "DELETE", "UPDATE", "ask", "changed", "judged"]


def ask(
    write: WriteContext, operation: str, *, tree: JsonObject | None, old: JsonObject | None
) -> tuple[str, ...]:
    """Returns the policies' warnings about a write. Raises the refusal of a policy.

    The parameters are those of `Attributes`. With a review, it also records the attributes for
    webhooks. Raises ReviewOutdated if webhooks saw another version of the object.
    """
    options = write.options
    if options.skips_review:
        return ()
    reader, rules, review = write.reader, write.rules, options.review
    if review is None and (rules.policy_rules is None or not policies.are_bound(reader)):
        return ()
    attributes = _attributes(write, operation, tree, old)
    if review is not None:
        review.check(old)
        review.after = attributes
    return judged(attributes, reader, rules)


def judged(attributes: Attributes, reader: ObjectsReader, rules: Rules) -> tuple[str, ...]:
    """Returns the policies' warnings about a write. Raises the refusal of a policy."""
    if rules.policy_rules is None or not policies.are_bound(reader):
        return ()
    return policies.check(attributes, reader, rules.policy_rules)


def changed(
    write: WriteContext, operation: str, *, tree: JsonObject, old: JsonObject | None
) -> JsonObject:
    """Returns the object with webhooks' patches and defaults; `tree` itself if there are none.

    Its metadata has only fields that a client may set. Raises Rejected if a patch cannot be
    applied.
    """
    review = write.options.review
    if review is None or write.options.skips_review:
        return tree
    kind = write.kind
    attributes = _attributes(write, operation, tree, old)
    changed_tree = review.changed(attributes)
    if not review.patches:
        return tree
    ignoring = WriteOptions(field_validation=FieldValidation.IGNORE)
    try:
        again, _ = admission.admit(
            kind, kind.group, kind.storage_version, changed_tree,
            options=ignoring, rules=write.rules, now=write.stamp.time,
        )  # fmt: skip
    except BadRequest as problem:
        raise failed(problem.message) from problem
    return again


def _attributes(
    write: WriteContext, operation: str, tree: JsonObject | None, old: JsonObject | None
) -> Attributes:
    return Attributes(
        kind=write.kind,
        key=write.key,
        group=write.group,
        version=write.version,
        operation=operation,
        subresource=write.subresource,
        tree=tree,
        old=old,
        actor=write.stamp.actor,
        requester=write.options.requester,
        field_manager=write.options.field_manager,
        dry_run=write.options.dry_run,
    )
