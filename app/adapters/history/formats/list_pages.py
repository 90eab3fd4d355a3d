"""The pages of a list, in one file or in several (`metadata.continue`, `remainingItemCount`).

All pages of a list have its resource version, and a page says how many items follow it:

    items: a, b   continue, 3 remain    ─┐ 2 items and 1 more are these 3
    items: c, d   continue, 1 remains   ─┤
    items: e                            ─┘

A page does not show whether another one came before it. A server lists in the order of its keys,
so pages that follow each other show which objects are gone behind their first item only.

Parity: history-formats.md 6.
"""

from collections.abc import Iterable
from dataclasses import dataclass, field

from app.adapters.history.reading import DumpedPage, Listing

NEXT_PAGE = "a list that goes on in another page, which does not follow in this file"


@dataclass(slots=True)
class Chains:
    """The lists that the pages of an import make together.

    `cut` are the pages whose next one is missing, and `partial` the lists that are not whole.
    `together` has the lists of each source that are one, and `begins` the first item of a list that
    other pages may precede.
    """

    cut: list[DumpedPage] = field(default_factory=list)
    partial: set[Listing] = field(default_factory=set)
    together: dict[Listing, frozenset[Listing]] = field(default_factory=dict)
    begins: dict[Listing, str] = field(default_factory=dict)


def order_key(namespace: str, name: str) -> str:
    """The text by which a server orders the items of a list."""
    return f"{namespace}/{name}" if namespace else name


def chains(pages: Iterable[DumpedPage]) -> Chains:
    """The pages that follow each other, by their versions and counts."""
    lists: dict[tuple[str, str, str], list[DumpedPage]] = {}
    for page in pages:
        lists.setdefault((page.group, page.resource, page.version), []).append(page)
    result = Chains()
    for same in lists.values():
        if all(page.more == 0 for page in same):
            continue
        listings = frozenset(page.listing for page in same)
        cut = [page for page in same if not _is_followed(page, same)]
        if cut:
            result.cut += cut
            result.partial |= listings
            continue
        begins = min(page.first for page in same)
        for listing in listings:
            result.together[listing] = listings
            result.begins[listing] = begins
    return result


def _is_followed(page: DumpedPage, same: list[DumpedPage]) -> bool:
    if page.more == 0 or page.is_followed:
        return True
    return any(
        page.more == other.items + other.more
        for other in same
        if other is not page and other.more is not None and page.more is not None
    )
