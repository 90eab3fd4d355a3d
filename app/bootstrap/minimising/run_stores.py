"""Stores for histories that were run in this process, one for each."""

from app.bootstrap.stores import Store, memory_store
from app.domain.errors import LogError
from app.domain.log import chain
from app.service.replays.trials import Ran


async def stored(ran: Ran, name: str) -> Store:
    """Store the history of a run in a store that holds nothing else."""
    store = memory_store()
    beginning = chain.genesis_of(ran.info)
    info = await store.log.create_history(
        name,
        seed=ran.info.seed,
        settings=ran.info.settings,
        created=ran.info.created,
        hash=beginning,
    )
    head = await store.log.head(info.id)
    try:
        await store.log.append(info.id, expected=head, events=ran.events)
    except LogError as problem:
        raise AssertionError(f"a run makes no history: {problem}") from problem
    return store
