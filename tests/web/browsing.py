"""A browser of the system in front of a server in a thread of this process; all stories share both.

Debian's package `chromium` is enough. Without a browser the stories are skipped.
"""

import shutil
import socket
import threading
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial

import anyio
import pytest
import uvicorn
from playwright.sync_api import Browser, sync_playwright

from tests.api.serving import serving
from tests.web.planted import plant

BROWSER = shutil.which("chromium") or shutil.which("chromium-browser") or ""

FLAGS = (
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
)

needs_browser = pytest.mark.skipif(not BROWSER, reason="no browser: apt-get install chromium")


class _Uvicorn(uvicorn.Server):
    @contextmanager
    def capture_signals(self):
        yield


@dataclass
class Browsing:
    """The address of a server and a browser; `complaints` is what a page logged or fetched."""

    url: str
    browser: Browser
    complaints: list = field(default_factory=list)

    @contextmanager
    def page(self, **options):
        """A page of a fresh profile, watched."""
        self.complaints.clear()
        context = self.browser.new_context(**options)
        try:
            page = context.new_page()
            page.set_default_timeout(20_000)
            page.on("pageerror", lambda problem: self.complaints.append(f"error: {problem}"))
            page.on("console", self._hear)
            page.on("request", self._watch)
            yield page
        finally:
            context.close()
        assert not self.complaints

    def _hear(self, message):
        if message.type in ("error", "warning"):
            self.complaints.append(f"console {message.type}: {message.text}")

    def _watch(self, request):
        if not request.url.removeprefix("blob:").startswith(self.url):
            self.complaints.append(f"foreign request: {request.url}")


@contextmanager
def browsing(seed=None, **options):
    """A server over a planted history, or what a `store` holds, and a browser in front of it."""
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        listener.listen()
        url = f"http://127.0.0.1:{listener.getsockname()[1]}"
        fill = None if seed is None else partial(plant, seed=seed)
        with _serving_in_thread(listener, fill, options), sync_playwright() as playwright:
            browser = playwright.chromium.launch(executable_path=BROWSER, args=list(FLAGS))
            try:
                yield Browsing(url, browser)
            finally:
                browser.close()


@contextmanager
def _serving_in_thread(listener, fill, options):
    started, problems, servers = threading.Event(), [], []

    async def serve():
        async with serving(**options) as server:
            if fill is not None:
                await fill(server)
            config = uvicorn.Config(server.app, lifespan="off", log_config=None, ws="none")
            servers.append(_Uvicorn(config))
            started.set()
            await servers[0].serve(sockets=[listener])

    def run():
        try:
            anyio.run(serve)
        except BaseException as problem:
            problems.append(problem)
            started.set()

    thread = threading.Thread(target=run)
    thread.start()
    assert started.wait(60)
    try:
        assert not problems, problems
        yield
    finally:
        for server in servers:
            server.should_exit = True
        thread.join(60)
    assert not problems, problems
