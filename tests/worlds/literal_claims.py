"""Section 3 of allocator.md, transcribed: the checks before the search, and their results."""

from __future__ import annotations

from app.domain.values import quantity
from tests.worlds.literal_cluster import Abort


class Amount:
    """A requested amount; checking may enlarge it in place (Q20)."""

    def __init__(self, found):
        self.now = quantity.from_json(found)


class Wish:
    """A request or an alternative; `listed` is the fixed list of mode All."""

    def __init__(self, tree, name, main, place, cls):
        self.tree, self.name, self.main, self.place, self.cls = tree, name, main, place, cls
        self.inner = False
        self.result_name = main
        self.everything = tree["allocationMode"] == "All"
        self.count = 0 if self.everything else tree.get("count", 0)
        self.tolerations = tree.get("tolerations") or []
        self.admin = False
        self.listed, self.abort = [], ""
        asked = (tree.get("capacity") or {}).get("requests") or {}
        self.amounts = {key: Amount(value) for key, value in asked.items()}


def key_of(claim):
    metadata = claim["metadata"]
    return (
        f"{metadata['namespace']}/{metadata['name']}"
        if metadata.get("namespace")
        else (metadata["name"])
    )


def constraints_of(claim):
    return claim["spec"]["devices"].get("constraints") or []


class Checks:
    """One attempt's checks; `list_all(wish, claim number, request, alternative)` fills lists."""

    def __init__(self, classes, features, stable, quirks):
        self.classes, self.features = classes, features
        self.stable, self.quirks = stable, quirks

    def claim(self, number, claim, list_all, known):
        """The wishes per request. `known` keeps the amounts of earlier nodes."""
        key, made, least = key_of(claim), [], 0
        for r, tree in enumerate(claim["spec"]["devices"]["requests"]):
            wishes = self.request(key, tree, (number, r), list_all, known)
            made.append(wishes)
            least += min(wish.count for wish in wishes)
        if least > 32:
            raise Abort(
                f"claim {key}: number of requested devices {least} exceeds the claim limit of 32"
            )
        for i, tree in enumerate(constraints_of(claim)):
            distinct = None if self.stable else tree.get("distinctAttribute")
            if tree.get("matchAttribute") is None and distinct is None:
                problem = "empty constraint (unsupported constraint type?)"
                raise Abort(f"claim {key}, constraint #{i}: {problem}")
        return made

    def request(self, key, tree, place, list_all, known):
        name, inner = tree["name"], tree.get("firstAvailable") or []
        if inner and not self.features.prioritized_list:
            off = "has subrequests, but the DRAPrioritizedList feature is disabled"
            raise Abort(f"claim {key}, request {name}: {off}")
        if not self.features.consumable_capacity:
            off = "has capacity requests, but the DRAConsumableCapacity feature is disabled"
            if (tree.get("exactly") or {}).get("capacity") is not None:
                raise Abort(f"claim {key}, request {name}: {off}")
            for found in inner:
                if found.get("capacity") is not None:
                    raise Abort(f"claim {key}, subrequest {found['name']}: {off}")
        wishes = []
        for k, found in enumerate(inner or [tree["exactly"]]):
            wish = self.wish(
                key, found, found["name"] if inner else name, name, is_inner=bool(inner)
            )
            wish.amounts = known.setdefault((*place, k), wish.amounts)
            if wish.everything:
                try:
                    wish.listed = list_all(wish, *place, k)
                except Abort as abort:
                    if self.quirks.q11 or not inner:
                        raise
                    wish.abort = str(abort)
                wish.count = len(wish.listed)
            wishes.append(wish)
        return wishes

    def wish(self, key, tree, name, main, *, is_inner):
        place = f"claim {key}, request {name}"
        for i, selector in enumerate(tree.get("selectors") or []):
            if selector.get("cel") is None:
                problem = "CEL expression empty (unsupported selector type?)"
                raise Abort(f"{place}, selector #{i}: {problem}")
        admin = None if is_inner else tree.get("adminAccess")
        if admin is not None and not self.features.admin_access:
            raise Abort(f"{place}: admin access is requested, but the feature is disabled")
        cls = tree.get("deviceClassName")
        if not cls:
            raise Abort(f"{place}: missing device class name (unsupported request type?)")
        if cls not in self.classes:
            cause = f'deviceclass.resource.k8s.io "{cls}" not found'
            raise Abort(f"{place}: could not retrieve device class {cls}: {cause}")
        if tree.get("allocationMode") not in ("ExactCount", "All"):
            mode = tree.get("allocationMode") or ""
            raise Abort(f"{place}: unsupported count mode {mode}")
        wish = Wish(tree, name, main, place, self.classes[cls])
        wish.inner = is_inner
        wish.admin = admin is True
        if is_inner:
            wish.result_name = f"{main}/{name}"
        return wish
