"""Signed heads: making one of a history, and reading those of others."""

from collections.abc import Sequence
from pathlib import Path

from app.adapters import head_keys
from app.adapters.head_keys import HeadKey, open_head_key
from app.bootstrap.stores import Store, find_history, find_revision
from app.domain.errors import ChainBroken, InputError
from app.domain.log import Head, Revision
from app.domain.log.heads import SignedHead
from app.settings import Settings


def own_key(settings: Settings) -> HeadKey:
    """The key of the data folder, made when there is none."""
    return open_head_key(settings.data)


async def sign(store: Store, settings: Settings, name: str, moment: str) -> SignedHead:
    """The head of a history, or what it was at a moment, signed.

    Raises ChainBroken when the head row is not the end of the log.
    """
    info = await find_history(store, name)
    head = await store.log.head(info.id)
    revision = await find_revision(store, info, moment, option="--to")
    if moment and not revision:
        raise InputError(
            f"history {info.name!r} has no event up to {moment}",
            place="--to",
            cure="give a later moment",
        )
    if revision:
        last = await store.log.read(info.id, after=Revision(revision - 1), until=revision, limit=1)
        is_end = revision == head.revision
        if not last or (is_end and last[0].hash != head.hash):
            raise ChainBroken(revision, "the head row is not the end of the log")
        if not is_end:
            head = Head(revision=revision, hash=last[0].hash, time=last[0].stamp.time)
    return own_key(settings).sign(info.name, head)


def read(settings: Settings, file: Path, keys: Sequence[str]) -> list[SignedHead]:
    """The heads of a file. Raises InputError unless each is signed with a known key."""
    heads = head_keys.read_heads(file)
    head_keys.check_keys(heads, trusted(settings, keys), place=str(file))
    return heads


def trusted(settings: Settings, keys: Sequence[str]) -> frozenset[str]:
    """The keys that are believed: that of the data folder and `keys`, texts or files of keys."""
    known = {_key(text) for text in keys}
    if (settings.data / head_keys.FILE).exists():
        known.add(own_key(settings).public)
    return frozenset(known)


def _key(text: str) -> str:
    path = Path(text)
    if not path.is_file():
        return head_keys.parse_key(text, place="--head-key")
    try:
        return head_keys.parse_key(path.read_text(), place=text)
    except (OSError, UnicodeDecodeError) as problem:
        raise InputError("the key cannot be read", place=text) from problem
