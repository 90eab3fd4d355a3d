"""Ends a listening server without losing what it has just accepted.

A server of asyncio that is closed while it accepts connections (Python 3.11) neither serves nor
closes them.
"""

import asyncio

import anyio

TURNS = 5
"""Turns of the event loop until an accepted connection is known to its protocol."""


async def stop_listening(server):
    """Accepts nothing more, waits until what was accepted is known, and closes the server."""
    loop = asyncio.get_running_loop()
    for listener in server.sockets:
        loop.remove_reader(listener.fileno())
    with anyio.CancelScope(shield=True):
        for _ in range(TURNS):
            await anyio.lowlevel.checkpoint()
    server.close()
