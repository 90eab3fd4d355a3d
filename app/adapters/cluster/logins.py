"""The login of a kubeconfig's context, for requests without the client library."""

import ssl

from app.adapters.clock import SystemClock
from app.adapters.cluster.credentials import open_credentials
from app.adapters.running.credentials import (
    ServerLogin,
    may_have_credentials,
    of_address,
    origin,
)
from app.domain.errors import InputError


async def login_of(
    kubeconfig: str, context: str, *, seconds: float, address: str = ""
) -> ServerLogin:
    """The address, headers and TLS of a context; `address` replaces its own. Raises InputError.

    An exec plug-in is waited for `seconds`.

    Credentials are sent only to the server of the context, and without TLS only to a server on this
    machine.
    """
    async with open_credentials(kubeconfig, context, SystemClock(), seconds=seconds) as source:
        login = await source.login()
        chosen = login.configuration
        url = address.rstrip("/") or login.server
        if origin(url) != origin(login.server):
            raise InputError(
                f"the credentials of the context are for {login.server} and are not sent to {url}",
                place="--server",
                cure="leave out the context, or the address",
            )
        if login.headers and not may_have_credentials(url):
            raise InputError(
                f"the credentials of the context are not sent to {url}, which is not encrypted",
                place=source.place,
                cure="use an address with https",
            )
        if chosen.proxy:
            raise InputError(
                "the context uses a proxy, which redra does not support",
                place=source.place,
                cure="name the address with --server",
            )
        if not url.startswith("https://"):
            return ServerLogin(url=url, headers=login.headers)
        tls = of_address(url, token="", authority=None).tls
        assert tls is not None, "it is https"
        if chosen.ssl_ca_cert:
            tls = ssl.create_default_context(cafile=chosen.ssl_ca_cert)
        if not chosen.verify_ssl:
            tls.check_hostname = False
            tls.verify_mode = ssl.CERT_NONE
        if chosen.cert_file:
            tls.load_cert_chain(chosen.cert_file, chosen.key_file)
        name = chosen.tls_server_name or ""
        return ServerLogin(url=url, headers=login.headers, tls=tls, server_name=name)
