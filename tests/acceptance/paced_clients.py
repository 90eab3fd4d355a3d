"""A client that follows the pods of a paced replay, as a program of its own.

    python -m tests.acceptance.paced_clients CLIENT URL

It writes a line of JSON when it begins, and one for each change of which its watch tells: when it
heard, the kind of the change, the name of the pod. When its input ends it writes what it believes,
and ends. Several clients in the threads of one process would wait for each other, not for the
server.
"""

import asyncio
import contextlib
import json
import os
import sys
import tempfile
import threading
import time
from pathlib import Path

import kr8s
import yaml

from tests.acceptance import test_paced_replay as paced

CLIENTS = ("asyncio", "informer", "kr8s", "lightkube")
KINDS = ("ADDED", "MODIFIED", "DELETED")


def put(value):
    """Print a value on a line of its own: threads of a client may print at once."""
    sys.stdout.write(f"{json.dumps(value)}\n")
    sys.stdout.flush()


def tell(kind, name):
    put({"at": time.time(), "kind": kind, "name": name})


class TellingFollowers(paced.Followers):
    """Followers that tell of each change when they hear of it."""

    def __init__(self, url, clients):
        self.believed = {}
        super().__init__(url, [name for name in clients if name in ("asyncio", "lightkube")])
        if "kr8s" in clients:
            self.believed["kr8s"] = {}
            threading.Thread(target=lambda: asyncio.run(self._follow_kr8s()), daemon=True).start()

    def _fold(self, who, kind, pod):
        tell(kind, pod.metadata.name)
        super()._fold(who, kind, pod)

    async def _follow_kr8s(self):
        path = Path(tempfile.mkdtemp(prefix="redra-kr8s-")) / "kubeconfig"
        path.write_text(yaml.safe_dump(paced.kubeconfig(self.url)))
        api = await kr8s.asyncio.api(kubeconfig=str(path))
        believed = self.believed["kr8s"]
        while True:
            # A watch that the server ends is begun again.
            with contextlib.suppress(Exception):
                async for kind, pod in api.watch("pods", namespace=kr8s.ALL):
                    tell(kind, pod.name)
                    if kind == "DELETED":
                        believed.pop(pod.name, None)
                    else:
                        believed[pod.name] = pod.raw.get("status", {}).get("phase")


def main(client, url):
    with contextlib.ExitStack() as stack:
        put({"begun": client})
        if client == "informer":
            informer = stack.enter_context(paced.informer_of(url))
            for kind in KINDS:
                informer.add_event_handler(
                    kind, lambda pod, kind=kind: tell(kind, pod.metadata.name)
                )
            sys.stdin.read()
            believed = {pod.metadata.name: pod.status.phase for pod in informer.cache.list()}
        else:
            followers = TellingFollowers(url, (client,))
            sys.stdin.read()
            believed = followers.believed[client]
        put({"believed": believed})
        # Threads of the client may still wait for the server.
        os._exit(0)


if __name__ == "__main__":
    main(*sys.argv[1:])
