"""Errors of the driver as sentences of ours: each names the cause, most name a cure."""

import asyncpg
import pytest
from asyncpg.exceptions._base import DataError as UnusableArgument

from app.adapters.postgres import problems
from app.domain.errors import LogUnavailable, NotStorable, WrongDatabase

ROWS = [
    (asyncpg.DiskFullError("could not extend file"), LogUnavailable, "disk .* is full"),
    (asyncpg.TooManyConnectionsError("sorry"), LogUnavailable, "no more connections"),
    (asyncpg.ReadOnlySQLTransactionError("cannot"), LogUnavailable, "read-only"),
    (asyncpg.LockNotAvailableError("lock timeout"), LogUnavailable, "another session holds"),
    (asyncpg.QueryCanceledError("statement timeout"), LogUnavailable, "longer than allowed"),
    (asyncpg.AdminShutdownError("terminating"), LogUnavailable, "is being stopped"),
    (asyncpg.CannotConnectNowError("recovering"), LogUnavailable, "starting or stopping"),
    (asyncpg.ConnectionDoesNotExistError("closed"), LogUnavailable, "connection .* was lost"),
    (asyncpg.InterfaceError("connection is closed"), LogUnavailable, "connection .* was lost"),
    (ConnectionRefusedError(111, "refused"), LogUnavailable, "no database server answers"),
    (FileNotFoundError(2, "no socket"), LogUnavailable, "no database server answers"),
    (ConnectionResetError(104, "reset"), LogUnavailable, "cannot be reached"),
    (TimeoutError(), LogUnavailable, "did not answer in time"),
    (
        asyncpg.ConnectionDoesNotExistError("could not write: No space left on device"),
        LogUnavailable,
        "disk .* is full",
    ),
    (asyncpg.UndefinedTableError("log_heads"), WrongDatabase, "run `redra migrate`"),
    (asyncpg.UndefinedColumnError("clock"), WrongDatabase, "run `redra migrate`"),
    (asyncpg.InvalidCatalogNameError("redra"), WrongDatabase, "does not exist"),
    (asyncpg.InsufficientPrivilegeError("denied"), WrongDatabase, "may not do this"),
    (asyncpg.InvalidPasswordError("no"), WrongDatabase, "refused the password"),
    (asyncpg.CharacterNotInRepertoireError("0x00"), NotStorable, "a character"),
    (asyncpg.NumericValueOutOfRangeError("bigint"), NotStorable, "a number"),
    (UnusableArgument("value out of int64 range"), NotStorable, "int64"),
    (asyncpg.DivisionByZeroError("1 / 0"), LogUnavailable, "leaves out appended events"),
    (
        asyncpg.CardinalityViolationError("odd"),
        LogUnavailable,
        r"refused a statement \(SQLSTATE 21000\)",
    ),
]


@pytest.mark.parametrize(("problem", "kind", "text"), ROWS)
def test_sentence(problem: Exception, kind: type[Exception], text: str):
    found = problems.translate(problem)
    assert type(found) is kind
    with pytest.raises(kind, match=text):
        raise found
    if kind is LogUnavailable:
        assert str(problem) not in str(found) or not str(problem), (
            "callers wait, and can do nothing"
        )


@pytest.mark.parametrize("state", ["23514", "53100", "08006", "42P01", "22021"])
def test_values_in_the_details_of_an_error_are_not_repeated(state: str):
    fields = {"C": state, "M": "it failed", "D": "Failing row contains (secret).", "H": "try"}
    problem = asyncpg.PostgresError.new(fields)
    assert "secret" in str(problem)
    assert "secret" not in str(problems.translate(problem))
    assert "it failed" in str(problem)
    assert "secret" not in str(problem), "a traceback shows it"


@pytest.mark.parametrize(
    ("problem", "kind"),
    [
        (asyncpg.InvalidCatalogNameError("redra"), LogUnavailable),
        (asyncpg.InvalidSchemaNameError("public"), LogUnavailable),
        (asyncpg.UndefinedTableError("log_heads"), LogUnavailable),
        (asyncpg.UndefinedColumnError("clock"), LogUnavailable),
        (asyncpg.InsufficientPrivilegeError("denied"), LogUnavailable),
        (asyncpg.InvalidPasswordError("no"), WrongDatabase),
        (asyncpg.InvalidAuthorizationSpecificationError("no"), WrongDatabase),
        (asyncpg.DataCorruptedError("page"), WrongDatabase),
        (asyncpg.IndexCorruptedError("index"), WrongDatabase),
    ],
)
def test_database_that_was_ours_is_waited_for_while_it_is_restored(problem, kind):
    awaited = problems.translate(problem, was_ours=True)
    assert type(awaited) is kind
    if kind is LogUnavailable:
        assert "run `redra migrate`" not in str(awaited), "it is as before in a moment"
        assert str(problem) not in str(awaited)
    assert type(problems.translate(problem)) is WrongDatabase


def test_what_is_ours_passes_untouched():
    with pytest.raises(KeyError), problems.translated():
        raise KeyError("ours")


def test_translation_keeps_the_cause():
    cause = asyncpg.DiskFullError("x")
    with pytest.raises(LogUnavailable) as caught, problems.translated():
        raise cause
    assert caught.value.__cause__ is cause


@pytest.mark.parametrize(
    "address",
    [
        "postgresql://redra@/redra?host=/run/a:b",
        "postgresql://u:p%40:1@[::1]:5432/x",
        "postgresql://u:p@one,two:2,three/x?port=1,2",
        "postgres://",
        "nonsense",
    ],
)
def test_address_whose_parts_can_be_read_is_left_to_the_driver(address: str) -> None:
    problems.check_address(address)


@pytest.mark.parametrize("password", ["opense#same", "opense/same", "opense?same", "opense[same"])
def test_address_with_a_special_character_in_the_password_is_told_without_it(
    password: str,
) -> None:
    with pytest.raises(WrongDatabase) as caught:
        problems.check_address(f"postgresql://user:{password}@host/name")
    assert "opense" not in str(caught.value)
    assert "percent" in str(caught.value)
