"""Opening of histories, with their views and bounds."""

from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from dataclasses import replace
from functools import cached_property
from typing import TYPE_CHECKING

from app.analysis.views import projections_of
from app.bootstrap.history_settings import history_settings, switches
from app.bootstrap.rules import rules_of
from app.bootstrap.stores import Store, find_history, find_revision
from app.domain.controllers import registry
from app.domain.devices.inventory import Inventory
from app.domain.errors import InputError
from app.domain.log import HistoryInfo
from app.domain.log.projection import Projection
from app.domain.objects import profile as profiles
from app.domain.objects import webhook_targets
from app.domain.objects.kinds import services
from app.domain.objects.prepared_creates import Forms
from app.domain.objects.rules import Rules
from app.domain.values import json_tree
from app.domain.values.json_tree import JsonView
from app.service.folding.projecting import FoldingBounds
from app.service.histories import DEFAULT_HISTORY, Histories
from app.service.runtime import RuntimeBounds
from app.service.writing import WriterBounds
from app.settings import Settings
from projections.objects import DECODED_MAX

if TYPE_CHECKING:  # heavy: only forks need them
    from app.bootstrap.control_planes import ForkPlanes
    from app.service.replays.deciding.replay import Proofs
    from app.service.replays.deciding.runs import ControlPlane
    from app.service.replays.replaying import ReplayBounds


@asynccontextmanager
async def open_histories(store: Store, settings: Settings) -> AsyncIterator[Histories]:
    """The histories of a store, which follow their logs until the context is left."""
    webhooks = webhook_targets.parse(settings.webhooks_allowed)
    ranges = services.parse_ranges(settings.service_addresses, settings.service_node_ports)
    keys = store.secrets

    def rules(info: HistoryInfo) -> Rules:
        secrets = None if keys is None else keys.cipher(info)
        forms = Forms(settings.write_forms_max)
        made = rules_of(info)
        return replace(made, services=ranges, secrets=secrets, webhooks=webhooks, forms=forms)

    ports = store.ports
    if not webhooks.is_empty:
        from app.adapters.webhooks import HttpsWebhooks

        ports = replace(ports, webhooks=HttpsWebhooks(bytes_max=settings.webhook_bytes_max))
    histories = Histories(
        ports=ports,
        rules=rules,
        bounds=runtime_bounds(settings),
        past_views_max=settings.past_views_max,
        objects_max=settings.past_objects_max,
        planes=_Planes(settings),
    )
    async with histories.running():
        yield histories


class _Planes:
    """The control planes for forks; their code is imported when the first fork is made."""

    def __init__(self, settings: Settings) -> None:
        self._settings = settings

    @cached_property
    def _made(self) -> "ForkPlanes":
        from app.bootstrap.control_planes import ForkPlanes

        return ForkPlanes(self._settings)

    def recorded(self, info: HistoryInfo) -> "tuple[ControlPlane, Proofs]":
        """The control plane of the recording, and the proofs that may be tried."""
        return self._made.recorded(info)

    def altered(self, info: HistoryInfo, seed: int) -> "ControlPlane":
        """The control plane of the changed world."""
        return self._made.altered(info, seed)

    @property
    def bounds(self) -> "ReplayBounds":
        """The bounds of reading and of runs."""
        return self._made.bounds


def views_of(
    settings: JsonView, *, decoded_max: int = DECODED_MAX, plain_max: int | None = None
) -> Callable[[], Sequence[Projection]]:
    """A function that makes new instances of every view, with the switches in the settings."""
    return projections_of(settings, decoded_max=decoded_max, plain_max=plain_max)


async def default_history(histories: Histories, settings: Settings) -> None:
    """Open the default history; made with the settings' profile when it is missing.

    Raises InputError when the history exists with a profile, gates or quirks other than the given
    ones: its decisions were made with its own, and the caller expects others.
    """
    info = await histories.find(DEFAULT_HISTORY)
    if info is not None:
        _check_settings(info, settings)
    await histories.open_or_create(DEFAULT_HISTORY, settings=history_settings(settings))


def _check_settings(info: HistoryInfo, settings: Settings) -> None:
    has = {**info.settings}
    wanted = {
        **has,
        "gates": {
            **json_tree.mapping(has, "gates"),
            **switches(settings.gates, place="--gate"),
        },
        "quirks": {
            **json_tree.mapping(has, "quirks"),
            **switches(settings.quirks.lower(), place="--quirk"),
        },
    }
    if "profile" in settings.given:
        wanted["profile"] = settings.profile
    try:
        before = profiles.from_settings(has)
    except InputError:
        return  # its problem is reported when it is opened
    after = profiles.from_settings(wanted)
    option = ""
    if (before.version, before.patch) != (after.version, after.patch):
        option = "--profile"
    elif before.open_gates != after.open_gates:
        option = "--gate"
    elif registry.options_from(has) != registry.options_from(wanted):
        option = "--quirk"
    if option:
        raise InputError(
            f"the history {info.name!r} imitates {before.patch or before.version} with gates "
            "and quirks of its own, and keeps them, because its decisions were made with them",
            place=option,
            cure="leave the option out, or use another folder with --data",
        )


def runtime_bounds(settings: Settings) -> RuntimeBounds:
    """The bounds of one history in one process."""
    return RuntimeBounds(
        writer=WriterBounds(
            batch_max=settings.batch_max,
            halved_min=settings.batch_halved_min,
            queue_max=settings.write_queue_max,
            retries_max=settings.write_retries_max,
            stop_seconds=settings.write_stop_seconds,
            object_bytes_max=settings.object_bytes_max,
        ),
        watch_queue_max=settings.watch_queue_max,
        recent_max=settings.recent_max,
        poll_seconds=settings.poll_seconds,
        snapshot_every=settings.snapshot_every,
        errands_max=settings.errands_max,
        observations_max=settings.observations_max,
        objects_plain_max=settings.objects_plain_max,
    )


def folding_bounds(settings: Settings) -> FoldingBounds:
    """The bounds of materialising views."""
    return FoldingBounds(
        page_max=settings.projector_batch_max,
        snapshot_every=settings.snapshot_every,
        rebuild_tries_max=settings.rebuild_tries_max,
    )


async def inventory_at(store: Store, settings: Settings, name: str, moment: str) -> Inventory:
    """The devices that are published in a history at `moment` (empty: now)."""
    info = await find_history(store, name)
    async with open_histories(store, settings) as histories:
        revision = await find_revision(store, info, moment, option="--at")
        return (await histories.devices_at(name, revision)).inventory
