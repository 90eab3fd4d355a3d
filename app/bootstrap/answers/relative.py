"""What a relative moment of a query names, said in the answer."""

from app.bootstrap.asking.queries import ServedQuery
from app.bootstrap.stores import Store, find_history
from app.service import moments


async def told(store: Store, query: ServedQuery, body: bytes) -> bytes:
    """The body of an answer, with the meaning of a relative moment, as a server gives it."""
    if not query.at or query.is_page or query.body is not None or query.part == "head":
        return body
    info = await find_history(store, query.history)
    return moments.with_meaning(body, query.at, (await store.log.head(info.id)).time)
