"""Signed heads: signs heads of histories, and reads signed heads of others."""

from collections.abc import Sequence
from pathlib import Path

from app.adapters import head_keys
from app.adapters.head_keys import HeadKey, open_head_key
from app.bootstrap.stores import Store, find_history
from app.domain.errors import InputError
from app.domain.log.heads import SignedHead
from app.service.replays import heads
from app.settings import Settings


def own_key(settings: Settings) -> HeadKey:
    """The key of the data folder, made when there is none."""
    return open_head_key(settings.data)


async def sign(store: Store, settings: Settings, name: str, moment: str) -> SignedHead:
    """Sign the head of a history, or its head at a moment.

    Raises ChainBroken when the head row does not match the end of the log.
    """
    info = await find_history(store, name)
    head = await heads.head_at(store.log, info, moment, store.ports.clock.now(), option="--to")
    return own_key(settings).sign(info.name, head)


def read(settings: Settings, file: Path, keys: Sequence[str]) -> list[SignedHead]:
    """Read the heads of a file. Raises InputError unless each is signed with a trusted key."""
    heads = head_keys.read_heads(file)
    head_keys.check_keys(heads, trusted(settings, keys), place=str(file))
    return heads


def trusted(settings: Settings, keys: Sequence[str]) -> frozenset[str]:
    """The trusted keys: the data folder's key, and `keys`, given as texts or files."""
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
