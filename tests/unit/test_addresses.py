"""The address in --listen: what is none is refused in one sentence."""

import pytest

from app.bootstrap.access import Address, parse_address
from app.domain.errors import InputError


@pytest.mark.parametrize(
    ("text", "host", "port"),
    [
        ("127.0.0.1:0", "127.0.0.1", 0),
        ("[::1]:65535", "::1", 65_535),
        ("localhost:80", "localhost", 80),
    ],
)
def test_address_has_a_host_and_a_port(text: str, host: str, port: int) -> None:
    assert parse_address(text) == Address(host=host, port=port)


@pytest.mark.parametrize(
    "text", ["", "localhost", ":80", "a:", "a:-1", "a:65536", "a:http", "a:²", "a:" + "9" * 5_000]
)
def test_text_that_is_no_address_is_refused(text: str) -> None:
    with pytest.raises(InputError, match="is not an address"):
        parse_address(text)
