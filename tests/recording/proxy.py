"""A TCP proxy with faults: it delays, cuts or stalls connections, and loses or repeats lines.

It loses and repeats whole lines of a watch, which leaves the protocol intact: only the content
shows the fault.
"""

import asyncio
import random
import re
from contextlib import asynccontextmanager, suppress

from tests.recording.listening import stop_listening

CHUNK = re.compile(rb"[0-9a-f]+\r\n\{\"type\"[^\r]*\r\n|[0-9a-f]+\r\n\{[^\r]*\"type\":[^\r]*\r\n")
"""A line of a watch, as one chunk of the answer."""


class Proxy:
    """A proxy in front of a port. All chances of faults are 0 at first.

    `broken_next` connections are cut as soon as they come.
    """

    def __init__(self, port, seed=0):
        self.port = 0
        self.target = port
        self.random = random.Random(seed)
        self.cut = self.silent = self.repeat = self.lose = 0.0
        self.delay_seconds = 0.0
        self.broken_next = 0
        self.lost_name = self.silent_name = b""
        self.is_silent = asyncio.Event()
        self.has_lost = asyncio.Event()
        self.acts = {"cut": 0, "silent": 0, "repeat": 0, "lose": 0}
        self._writers = set()
        self._tasks = set()

    def calm(self):
        """Ends all faults; connections that are silent already stay so."""
        self.cut = self.silent = self.repeat = self.lose = self.delay_seconds = 0.0

    async def serve(self, reader, writer):
        """Forwards one connection."""
        task = asyncio.current_task()
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        if self.broken_next:
            self.broken_next -= 1
            writer.transport.abort()
            return
        try:
            up_reader, up_writer = await asyncio.open_connection("127.0.0.1", self.target)
        except OSError:
            writer.transport.abort()
            return
        self._writers |= {writer, up_writer}
        ways = [
            asyncio.ensure_future(self._carry(reader, up_writer, treats=False)),
            asyncio.ensure_future(self._carry(up_reader, writer, treats=True)),
        ]
        try:
            await asyncio.wait(ways, return_when=asyncio.FIRST_COMPLETED)
        finally:
            for way in ways:
                way.cancel()
            for each in (writer, up_writer):
                self._writers.discard(each)
                with suppress(RuntimeError):
                    each.transport.abort()

    def close(self):
        """Aborts all connections."""
        for writer in list(self._writers):
            writer.transport.abort()

    async def end(self):
        """Ends all connections, also those that are not yet forwarded."""
        while self._tasks:
            self.close()
            await asyncio.wait(self._tasks, timeout=0.05)

    async def _carry(self, reader, writer, *, treats):
        with suppress(OSError):
            while data := await reader.read(65_536):
                if treats:
                    data = await self._treat(data)
                    if data is None:
                        return
                writer.write(data)
                await writer.drain()

    async def _treat(self, data):
        if self.delay_seconds:
            await asyncio.sleep(self.random.uniform(0, self.delay_seconds))  # waits: is the fault
        if self._happens("cut", self.cut):
            return None
        is_named = bool(self.silent_name) and b'"name":"' + self.silent_name + b'"' in data
        if is_named:
            self.is_silent.set()
        if is_named or self._happens("silent", self.silent):
            await asyncio.sleep(3_600)  # waits: for the other side to notice the silence
        return CHUNK.sub(self._treat_line, data)

    def _treat_line(self, found):
        line = found.group()
        if self.lost_name and b'"name":"' + self.lost_name + b'"' in line and b'"ADDED"' in line:
            self.has_lost.set()
            return b""
        if b'"BOOKMARK"' not in line and self._happens("lose", self.lose):
            return b""
        return line * 2 if self._happens("repeat", self.repeat) else line

    def _happens(self, act, chance):
        happens = self.random.random() < chance
        self.acts[act] += happens
        return happens


@asynccontextmanager
async def proxying(source, seed=0):
    """Runs a proxy in front of a source."""
    proxy = Proxy(source.port, seed)
    server = await asyncio.start_server(proxy.serve, "127.0.0.1", 0)
    proxy.port = server.sockets[0].getsockname()[1]
    try:
        yield proxy
    finally:
        await stop_listening(server)
        await proxy.end()
