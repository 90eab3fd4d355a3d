"""Mistakes that the driver admits are lost connections to us."""

import asyncpg
import pytest

from app.adapters.postgres.problems import translated
from app.domain.errors import LogUnavailable


def test_driver_that_lost_count_means_a_lost_connection():
    with pytest.raises(LogUnavailable, match="connection to the database was lost"), translated():
        raise asyncpg.InternalClientError("cannot switch to state 12; another operation")
