"""The sides of a difference as short texts of one line."""

from itertools import takewhile, zip_longest

import msgspec

SIDE_MAX = 200
"""The characters that are printed of one side of a difference; the JSON has it whole."""


def sides(recorded: object, again: object) -> tuple[str, ...]:
    """The two sides of a difference in the first place in which they differ, as short texts."""
    first = first_difference(recorded, again)
    return _shortened(*(each if isinstance(each, str) else side(each) for each in first))


def side(value: object) -> str:
    """The value of one side, as JSON on one line."""
    return "nothing" if value is None else msgspec.json.encode(value).decode()


def first_difference(recorded: object, again: object) -> tuple[object, object]:
    """The first place in which two sides differ, as each side has it; None for nothing.

    A value below a field is given with the path of its fields: `{"status.phase": "Failed"}`.
    """
    if isinstance(recorded, list) and isinstance(again, list):
        for pair in zip_longest(recorded, again):
            if pair[0] != pair[1]:
                return first_difference(*pair)
    path: list[str] = []
    while isinstance(recorded, dict) and isinstance(again, dict):
        sides = recorded, again
        field = next((f for f in (*recorded, *again) if recorded.get(f) != again.get(f)), None)
        if field is None:
            break
        path.append(field)
        recorded, again = (side.get(field) for side in sides)
        if isinstance(recorded, list) and isinstance(again, list):
            recorded, again = first_difference(recorded, again)
            break
    place = ".".join(path)
    left, right = (
        {place: value} if path and value is not None else value for value in (recorded, again)
    )
    return left, right


def _shortened(*texts: str) -> tuple[str, ...]:
    """The texts, none longer than `SIDE_MAX`; of long ones the part in which they first differ."""
    same = 0
    if max(map(len, texts)) > SIDE_MAX:
        same = sum(
            1 for _ in takewhile(lambda each: len(set(each)) == 1, zip(*texts, strict=False))
        )
    start = max(0, same - SIDE_MAX // 2)
    return tuple(
        f"{'…' * bool(start)}{text[start:][:SIDE_MAX]}{'…' * (len(text) > start + SIDE_MAX)}"
        for text in texts
    )
