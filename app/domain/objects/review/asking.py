"""The one place where writes are put before those who have a say in them."""

from app.domain.log import ObjectKey, Stamp
from app.domain.objects.commands import WriteOptions
from app.domain.objects.kind import Kind
from app.domain.objects.reader import ObjectsReader
from app.domain.objects.review import policies
from app.domain.objects.review.attributes import CREATE, DELETE, UPDATE, Attributes
from app.domain.objects.rules import Rules
from app.domain.values.json_tree import JsonObject

__all__ = ["CREATE", "DELETE", "UPDATE", "ask"]


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
    if rules.policy_rules is None or options.skips_review or not policies.are_bound(reader):
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
    return policies.check(attributes, reader, rules.policy_rules)
