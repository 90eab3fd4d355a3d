"""Loops of a process: each start has a name of its own in leases, and each has its work."""

import os
import socket

import anyio

from app.bootstrap import serving, stores
from app.bootstrap.histories import open_histories
from app.settings import Settings
from tests.patience import PATIENCE_SECONDS


async def test_holder_differs_between_starts_with_one_host_and_number(monkeypatch):
    holders = []

    async def note(_runtime, setting):
        holders.append(setting.holder)

    monkeypatch.setattr(serving.supervisor, "run", note)
    monkeypatch.setattr(socket, "gethostname", lambda: "host")
    monkeypatch.setattr(os, "getpid", lambda: 1)
    settings = Settings()
    for count in (1, 2):
        store = stores.memory_store()
        async with open_histories(store, settings) as histories:
            serving.supervise(histories, store, settings, with_projector=False)
            await histories.create_cluster("default")
            with anyio.fail_after(PATIENCE_SECONDS):
                while len(holders) < count:
                    await anyio.lowlevel.checkpoint()
    assert len(set(holders)) == 2
    assert all(holder.startswith("host-") for holder in holders)


async def test_process_of_controllers_alone_keeps_no_chronicle(monkeypatch):
    """Each of several would fold what the server folds."""
    started = []

    async def note(runtime, _meter):
        started.append(runtime.info.name)

    async def nothing(*_):
        started.append("controllers")

    monkeypatch.setattr(serving.chronicling, "run", note)
    monkeypatch.setattr(serving.supervisor, "run", nothing)
    settings = Settings()
    for with_chronicles in (False, True):
        store = stores.memory_store()
        async with open_histories(store, settings) as histories:
            serving.supervise(
                histories, store, settings, with_projector=False, with_chronicles=with_chronicles
            )
            await histories.create_cluster("default")
            with anyio.fail_after(PATIENCE_SECONDS):
                while started.count("controllers") <= with_chronicles:
                    await anyio.lowlevel.checkpoint()
    assert sorted(started) == ["controllers", "controllers", "default"]
