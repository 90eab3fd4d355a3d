"""Relative moments in a process of its own: which instants they name, and answers that say so."""

from app.bootstrap.asking.queries import ServedQuery
from app.bootstrap.stores import Store, find_end, find_history
from app.domain.values import moments as texts
from app.domain.values.moments import Resolved
from app.service import moments


async def resolved(store: Store, name: str, *moments_given: str) -> Resolved:
    """The moments of a history in absolute form, with what the relative ones name.

    Raises InputError.
    """
    if not texts.are_relative(moments_given):
        return Resolved(moments=moments_given)
    return moments.resolved(moments_given, await find_end(store, await find_history(store, name)))


async def with_meanings(store: Store, query: ServedQuery, body: bytes) -> bytes:
    """The body of an answer, with the meaning of a relative moment, as a server gives it."""
    texts = (query.at, *(query.parameters.get(name, "") for name in ("since", "until")))
    if not any(texts) or query.is_page or query.part == "head":
        return body
    info = await find_history(store, query.history)
    return moments.with_meaning(body, texts, await find_end(store, info))
