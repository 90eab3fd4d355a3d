"""Values of SQL queries: as JSON where it has them, otherwise in PostgreSQL's spelling.

The driver reads dates, ranges, intervals and other types into values of Python, which have fewer
of them (there is no infinite date, no month in a duration), or no text of their own. So columns of
such types are asked for as text, and instants are read from the number that PostgreSQL sends.
"""

import math
import re
import sys
from collections.abc import Sequence
from contextlib import suppress
from datetime import UTC, datetime
from decimal import Decimal

import asyncpg
import msgspec
from asyncpg.pool import PoolConnectionProxy
from asyncpg.prepared_stmt import PreparedStatement

from app.domain.values import timestamps
from app.domain.values.timestamps import SECOND, Instant

_READ = frozenset({
    "bool", "int2", "int4", "int8", "oid", "float8", "numeric", "text", "varchar", "bpchar", "name",
    "uuid", "bytea", "json", "jsonb", "timestamptz",
})  # fmt: skip
"""Types whose values are read."""

_READ_IN_ARRAYS = _READ - {"bytea", "json", "jsonb"}

_NUMBER_OF_TEXT = {"float4": "::text::float8"}
"""Numbers that the driver reads with digits that PostgreSQL does not show."""

BLANK = r"(?:\s|--[^\n]*(?:\n|\Z)|/\*(?:(?!\*/).)*\*/)*"
"""Pattern of what may stand around a statement: blanks and comments, which may not be nested."""

_SEMICOLON = re.compile(rf";(?={BLANK}\Z)", re.DOTALL)
"""What can be the end of a statement; a string or comment at its end may have some, too."""

_ZERO = timestamps.from_datetime(datetime(2000, 1, 1, tzinfo=UTC))
"""The instant from which PostgreSQL counts, in microseconds."""

_INFINITE = {2**63 - 1: "infinity", -(2**63): "-infinity"}
_FIRST = timestamps.from_datetime(datetime(1, 1, 1, tzinfo=UTC))
_CYCLE = 146_097 * 86_400 * SECOND
"""The length of 400 years, after which the calendar repeats."""


async def read_instants(connection: PoolConnectionProxy) -> None:
    """Let the connection give instants as text; Python has no infinite ones."""
    await connection.set_type_codec(
        "timestamptz",
        schema="pg_catalog",
        format="tuple",
        encoder=lambda moment: (timestamps.from_datetime(moment) - _ZERO,),
        decoder=lambda sent: _instant(sent[0]),
    )


async def spelled(
    connection: PoolConnectionProxy, text: str, columns: Sequence[asyncpg.Attribute]
) -> PreparedStatement | None:
    """The statement with columns of other types as text; None when all are read.

    Order and number of rows are those of the statement.
    """
    casts = [_cast(column.type.name, column.type.kind) for column in columns]
    if not any(casts):
        return None
    names = [f"c{place}" for place in range(len(columns))]
    shown = ", ".join(name + cast for name, cast in zip(names, casts, strict=True))
    for inner in (text, *(text[: end.start()] for end in _SEMICOLON.finditer(text))):
        # The new line ends a comment at the end of the statement.
        outer = f"SELECT {shown} FROM ({inner}\n) AS statement ({', '.join(names)})"  # noqa: S608
        with suppress(asyncpg.PostgresSyntaxError):
            async with connection.transaction():
                return await connection.prepare(outer)
    return None


def value(read: object, *, is_json: bool) -> object:
    """A value of a row."""
    match read:
        case float() if not math.isfinite(read):
            return "NaN" if math.isnan(read) else "Infinity" if read > 0 else "-Infinity"
        case None | bool() | int() | float():
            return read
        case str() | bytes() if is_json:
            try:
                return msgspec.json.decode(read)
            except msgspec.DecodeError:
                # PostgreSQL allows numbers and characters that no value of ours can hold.
                return read if isinstance(read, str) else read.decode()
        case bytes():
            return read.hex()
        case Decimal():
            return _decimal(read)
        case list() | tuple():
            return [value(item, is_json=is_json) for item in read]
        case _:
            return str(read)


def _cast(name: str, kind: str) -> str:
    """The cast that makes a column of a type text; empty where its values are read."""
    if kind == "array":
        return "" if name.removesuffix("[]") in _READ_IN_ARRAYS else "::text"
    return "" if name in _READ else _NUMBER_OF_TEXT.get(name, "::text")


def _decimal(read: Decimal) -> object:
    if not read.is_finite():
        return str(read)
    if read != read.to_integral_value():
        return str(read)
    # Beyond this number of digits Python writes no integers.
    is_short = read.adjusted() < sys.int_info.default_max_str_digits
    return int(read) if is_short else f"{read:f}"


def _instant(sent: int) -> str:
    """The text of an instant that PostgreSQL sent; before the year 1 with BC, as it does."""
    if sent in _INFINITE:
        return _INFINITE[sent]
    cycles, rest = divmod(sent + _ZERO - _FIRST, _CYCLE)
    near = timestamps.micro_text(Instant(_FIRST + rest))
    year = int(near[:4]) + 400 * cycles
    return f"{year:04}{near[4:]}" if year > 0 else f"{1 - year:04}{near[4:]} BC"
