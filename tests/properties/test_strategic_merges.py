"""A strategic merge of a keyed list equals the result of a model of its rules, item by item.

The model keeps items in a dictionary and finds the place of each item that the patch does not name;
it shares no code with the merge. Parity: api.md 8.
"""

from dataclasses import dataclass, field
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from app.domain.values import patches
from app.domain.values.json_tree import JsonObject

KEYS = ("a", "b", "c", "d", "e")
SCALARS = st.sampled_from((True, False, 0, 1, 1.5, "", "x"))
VALUES = SCALARS | st.lists(SCALARS, max_size=2)
PARTS = VALUES | st.none() | st.dictionaries(st.sampled_from("pq"), VALUES | st.none(), max_size=2)


def items(values: st.SearchStrategy[Any], *, unique: bool) -> st.SearchStrategy[list[JsonObject]]:
    """The items of a list that merges by `k`."""
    item = st.fixed_dictionaries(
        {"k": st.sampled_from(KEYS)}, optional={"v": values, "w": values, "x": values}
    )
    by = (lambda one: one["k"]) if unique else None
    return st.lists(item, max_size=5, unique_by=by)


OLD = items(VALUES | st.dictionaries(st.sampled_from("pq"), VALUES, max_size=2), unique=True)
GONE = st.fixed_dictionaries({"k": st.sampled_from(KEYS), "$patch": st.just("delete")})
ORDER = st.none() | st.lists(st.sampled_from(KEYS), unique=True)


@dataclass(frozen=True)
class Place:
    """A place of a schema in which only `list` is known; it merges by `k`."""

    fields: dict[str, "Place"] = field(default_factory=dict)
    merge_key: str = ""
    strategies: frozenset[str] = frozenset()

    @property
    def items(self) -> "Place":
        return Place()


SCHEMA = Place(fields={"list": Place(merge_key="k", strategies=frozenset({"merge"}))})


def laid_over(old: Any, new: Any) -> Any:
    """The merged value of a patch and the value before."""
    if not isinstance(new, dict):
        return new
    kept = dict(old) if isinstance(old, dict) else {}
    for key, value in new.items():
        if value is None:
            kept.pop(key, None)
        else:
            kept[key] = laid_over(kept.get(key), value)
    return kept


def placed(known: dict[str, Any], wanted: list[str], before: list[str]) -> list[str]:
    """The remaining keys in their order.

    Keys named by the patch have the order of the patch. Each other key is placed before the first
    named key that followed it before, but never before another such key that preceded it.
    """
    named = [key for key in dict.fromkeys(wanted) if key in known]
    others = sorted((key for key in known if key not in named), key=before.index)
    result, last = list(named), 0
    for count, key in enumerate(others):
        follower = next(
            (
                number
                for number, name in enumerate(named)
                if number >= last and name in before and before.index(name) > before.index(key)
            ),
            len(named),
        )
        last = follower
        result.insert(follower + count, key)
    return result


@settings(deadline=None, max_examples=300)
@given(old=OLD, new=items(PARTS, unique=False), gone=st.lists(GONE, max_size=2), order=ORDER)
def test_merge_of_a_keyed_list_is_that_of_the_model(
    old: list[JsonObject],
    new: list[JsonObject],
    gone: list[JsonObject],
    order: list[str] | None,
) -> None:
    patch: JsonObject = {"list": [*gone, *new]}
    before = [item["k"] for item in old]
    wanted = [item["k"] for item in new]
    if order is not None:
        # Clients name in it all that they bring.
        order = list(dict.fromkeys([*order, *wanted]))
        patch["$setElementOrder/list"] = [{"k": key} for key in order]
    merged = patches.apply_strategic({"list": old, "other": 1}, patch, SCHEMA)

    known = {item["k"]: item for item in old}
    for item in gone:
        known.pop(item["k"], None)
    for item in new:
        known[item["k"]] = laid_over(known.get(item["k"]), item)
    keys = placed(known, wanted if order is None else order, before)
    assert repr(merged) == repr({"list": [known[key] for key in keys], "other": 1})
