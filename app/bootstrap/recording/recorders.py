"""Recorders of real clusters: their sources and bounds, their start and end."""

import socket
from collections.abc import AsyncIterator, Callable, Iterable, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from functools import partial

import anyio

from app.adapters.cluster import discovery
from app.adapters.cluster.cluster import ClusterReader, open_requests
from app.adapters.cluster.credentials import check_kubeconfig
from app.adapters.cluster.requests import RequestBounds
from app.analysis.recordings import recorded_gates
from app.bootstrap.history_settings import check_new, history_settings
from app.bootstrap.recording.recording_request import Wanted
from app.bootstrap.rules import rules_for
from app.bootstrap.stores import Store
from app.domain.errors import ClusterUnreachable, InputError, Rejected, Unauthorized
from app.domain.log import HistoryInfo
from app.domain.objects import profile as profiles
from app.domain.objects import registry
from app.domain.values import api_groups, api_resources, counts
from app.domain.values.json_tree import JsonObject
from app.service import importing
from app.service.history_creation import check_name
from app.service.recording import recorder, resuming
from app.service.recording.following import FollowingBounds
from app.service.recording.journal import AlikeGaps, JournalBounds, NewGaps
from app.service.recording.recorder import FirstLook, Recorder, RecordingBounds, RecordingPorts
from app.service.recording.snapshot import SnapshotBounds
from app.service.recording.window import WindowBounds
from app.settings import Settings

_PROBLEMS_SECONDS = 1.0
_TOGETHER_SECONDS = 60.0
"""The time for which gaps that follow one like them are counted before they are said."""
_KINDS_NAMED_MAX = 3


@dataclass(frozen=True, slots=True, kw_only=True)
class Opened:
    """A cluster that answered: its identity, the kinds to record, and the history so far."""

    cluster: ClusterReader
    beginning: FirstLook
    settings: JsonObject
    info: HistoryInfo | None

    @property
    def denied(self) -> dict[str, str]:
        """The kinds that may not be read, with the reasons."""
        return self.beginning.probed.denied

    @property
    def kinds(self) -> list[str]:
        """The kinds that may be read."""
        return [each.name for each in self.beginning.kinds if each.name not in self.denied]

    @property
    def what(self) -> str:
        """A text for users: the number of kinds, and the cluster's release."""
        return f"{len(self.kinds)} kinds of a cluster {self.beginning.identity.release}"


def check_request(settings: Settings, wanted: Wanted) -> None:
    """Raises InputError for a history, kind, kubeconfig or context that cannot be.

    It reads only the kubeconfig, so a process checks this before it makes a data folder.
    """
    check_new(wanted.history, settings)
    discovery.choose(wanted.include, wanted.without)
    check_kubeconfig(wanted.kubeconfig or settings.kubeconfig(), wanted.context)


@asynccontextmanager
async def open_cluster(
    store: Store, settings: Settings, wanted: Wanted, *, note: Callable[[str], None]
) -> AsyncIterator[Opened]:
    """Connect to a cluster and probe it; nothing is written. Raises InputError.

    `note` is called with what is done, because a cluster may answer late.
    """
    check_name(wanted.history)
    choice = discovery.choose(wanted.include, wanted.without)
    info = await store.log.find_history(wanted.history)
    listed = frozenset() if info is None else await resuming.listed_kinds(store.log, info)
    clock = store.ports.clock
    async with open_requests(
        wanted.kubeconfig or settings.kubeconfig(), wanted.context, clock, request_bounds(settings)
    ) as requests:
        note(f"connecting to the cluster ({requests.place})")
        chosen = history_settings(settings) if info is None else info.settings
        make = partial(
            ClusterReader,
            requests,
            clock=clock,
            choice=choice,
            namespace=wanted.namespace,
            name=wanted.context or "cluster",
        )
        try:
            cluster = make(rules=rules_for(profiles.from_settings(chosen)))
            beginning = await recorder.look(cluster, recording_bounds(settings), listed, note=note)
        except Unauthorized as problem:
            raise InputError(
                f"the server does not accept the credentials: {problem}",
                place=requests.place,
                cure="log in again, and try the same with kubectl",
            ) from problem
        except (ClusterUnreachable, Rejected) as problem:
            raise InputError(
                str(problem), place=requests.place, cure="try the same with kubectl"
            ) from problem
        if info is None:
            chosen = _settings_of(beginning, settings)
            cluster = make(rules=rules_for(profiles.from_settings(chosen)))
        yield Opened(cluster=cluster, beginning=beginning, settings=chosen, info=info)


async def begin(
    store: Store,
    settings: Settings,
    wanted: Wanted,
    opened: Opened,
    *,
    note: Callable[[str], None],
    is_once: bool = False,
) -> HistoryInfo:
    """The history to record into; made from the existing objects if missing. Raises InputError.

    `note` is called with the reason why a store that takes nothing is waited for.
    """
    if is_once:
        await importing.check_name_is_free(store.log, wanted.history)
    elif (info := await store.log.find_history(wanted.history)) is not None:
        return info
    try:
        info = await recorder.begin(
            _ports(store),
            opened.cluster,
            opened.beginning,
            name=wanted.history,
            settings=opened.settings,
            secrets=None if store.secrets is None else store.secrets.cipher,
            bounds=recording_bounds(settings),
            is_once=is_once,
            note=lambda problem: note(f"{wanted.history}: not begun yet: {problem}"),
        )
    except (ClusterUnreachable, Rejected) as problem:
        raise InputError(str(problem), cure="nothing was recorded; try again") from problem
    starts = opened.beginning.probed.starts
    expired = {kind: start.reason for kind, start in starts.items() if start.reason}
    for line in recorder.together(expired):
        note(f"{wanted.history}: the first list is not whole: {line}")
    return info


class ScreenGaps:
    """The lines about gaps: the first of some that are alike at once, the others together.

    A cluster that has lost its changes again and again, or that answers 410 to each watch, makes a
    gap at each attempt. Gaps that follow one like them are counted for `_TOGETHER_SECONDS`.
    """

    def __init__(self) -> None:
        self._said: dict[str, float] = {}
        self._held: dict[str, AlikeGaps] = {}

    def lines(self, gaps: NewGaps, now: float) -> list[str]:
        """The lines to show now, after gaps that were stored since the last call."""
        lines: list[str] = []
        for shape, alike in gaps.alike.items():
            later = alike
            if shape not in self._said:
                self._said[shape] = now
                of = _of(alike.kinds)
                lines.append(f"gap{of}, the last: {alike.text}" if of else f"gap: {alike.text}")
                later = AlikeGaps(alike.text, alike.count - max(1, len(alike.kinds)))
            if later.count:
                self._held.setdefault(shape, AlikeGaps("", 0)).join(later)
        if more := gaps.count - sum(alike.count for alike in gaps.alike.values()):
            lines.append(f"{counts.of(more, 'more gap')}; redra findings names all")
        for shape in [each for each, at in self._said.items() if now - at >= _TOGETHER_SECONDS]:
            if shape in self._held:
                lines.append(_together(self._held.pop(shape)))
                self._said[shape] = now
            else:
                del self._said[shape]
        return lines

    def rest(self) -> list[str]:
        """The lines about all that is still counted, at the end."""
        lines = [_together(held) for held in self._held.values()]
        self._held.clear()
        return lines


def _together(held: AlikeGaps) -> str:
    of = _of(held.kinds)
    return f"gap, {held.count} more like it{of and ','}{of}, the last: {held.text}"


def _of(kinds: Sequence[str]) -> str:
    """The kinds of gaps, of which the first are named; empty for one kind."""
    if len(kinds) < 2:
        return ""
    more = len(kinds) - _KINDS_NAMED_MAX
    names = ", ".join(kinds[:_KINDS_NAMED_MAX]) + (f" and {more} more" if more > 0 else "")
    return f" of {counts.of(len(kinds), 'kind')} ({names})"


async def follow(
    store: Store,
    settings: Settings,
    opened: Opened,
    info: HistoryInfo,
    *,
    started: Callable[[], None],
    note: Callable[[str], None],
    stopped: anyio.Event,
) -> None:
    """Record until `stopped`; new problems and gaps are reported with `note`."""
    following = Recorder(
        _ports(store),
        opened.cluster,
        opened.beginning,
        info,
        secrets=None if store.secrets is None else store.secrets.cipher(info),
        bounds=recording_bounds(settings),
        is_new=opened.info is None,
    )
    gaps = ScreenGaps()
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(_report_problems, following, info.name, note, gaps)
        tasks.start_soon(_stop_when, stopped, following)
        if not await following.run(started):
            reasons = "; ".join(following.problems()) or "the log did not answer"
            note(
                f"{info.name}: stopped before everything was stored ({reasons}); the next recorder "
                "goes on from what is stored"
            )
        tasks.cancel_scope.cancel()
    for line in [*gaps.lines(following.new_gaps(), anyio.current_time()), *gaps.rest()]:
        note(f"{info.name}: {line}")


def recording_text(info: HistoryInfo, opened: Opened) -> str:
    """A text for users: the cluster and the history of a recording."""
    return f"recording {opened.beginning.identity.server} into {info.name}, {opened.what}"


async def _stop_when(stopped: anyio.Event, following: Recorder) -> None:
    await stopped.wait()
    following.stop()


async def _report_problems(
    following: Recorder, name: str, note: Callable[[str], None], gaps: ScreenGaps
) -> None:
    before: set[str] = set()
    was_uncompared = False
    while True:
        await anyio.sleep(_PROBLEMS_SECONDS)
        problems = set(following.problems())
        for problem in sorted(problems - before):
            note(f"{name}: {problem}")
        for line in gaps.lines(following.new_gaps(), anyio.current_time()):
            note(f"{name}: {line}")
        if before and not problems:
            note(f"{name}: all kinds are recorded again")
        before = problems
        uncompared = following.uncompared()
        if uncompared and not was_uncompared:
            note(
                f"{name}: a change that a watch loses stays unnoticed, as comparisons with the "
                f"cluster are refused: {'; '.join(uncompared)}"
            )
        if was_uncompared and not uncompared:
            note(f"{name}: comparisons with the cluster are made again")
        was_uncompared = bool(uncompared)


def _settings_of(beginning: FirstLook, settings: Settings) -> JsonObject:
    """Settings of the new history, with the cluster's release unless a profile was given."""
    release = beginning.identity.release.removeprefix("v").partition("-")[0].partition("+")[0]
    if "profile" not in settings.given and release.count(".") == 2:
        nearest = profiles.nearest_to(release)
        settings = replace(settings, profile=nearest)
    chosen = history_settings(settings)
    served = {(kind.group, kind.resource) for kind in beginning.kinds}
    if api_resources.DEVICE_TAINT_RULES in served:
        chosen = recorded_gates.served_rules(chosen)
    return chosen | {"recorded": True}


def _ports(store: Store) -> RecordingPorts:
    return RecordingPorts(
        log=store.log,
        leases=store.leases,
        clock=store.ports.clock,
        holder=f"{socket.gethostname()}-{store.ports.uids.uid()}",
    )


def request_bounds(settings: Settings) -> RequestBounds:
    """The bounds of requests to a cluster."""
    return RequestBounds(
        connect_seconds=settings.record_connect_seconds,
        answer_seconds=settings.record_answer_seconds,
        silence_seconds=settings.record_silence_seconds,
        page_bytes_max=settings.record_page_bytes_max,
        line_bytes_max=settings.record_line_bytes_max,
        retry_seconds_max=settings.record_retry_seconds_max,
        login_seconds=settings.record_login_seconds,
    )


def recording_bounds(settings: Settings) -> RecordingBounds:
    """The bounds of a recorder."""
    return RecordingBounds(
        snapshot=SnapshotBounds(page_max=settings.record_page_max),
        window=WindowBounds(
            seconds=settings.record_window_seconds, entries_max=settings.record_window_max
        ),
        following=FollowingBounds(
            page_max=settings.record_page_max,
            watch_seconds=settings.record_watch_seconds_max,
            pause_seconds_max=settings.record_pause_seconds_max,
            denied_seconds=settings.record_denied_seconds,
            audit_seconds=settings.record_audit_seconds,
            audit_pages_per_minute=settings.record_audit_pages_per_minute,
        ),
        journal=JournalBounds(
            report_seconds=settings.record_report_seconds,
            pause_seconds_max=settings.record_pause_seconds_max,
        ),
        batch_max=settings.record_batch_max,
        lease_seconds=settings.lease_seconds,
        clock_seconds=settings.record_clock_seconds,
        stop_seconds=settings.record_stop_seconds,
    )


_ROLE = "redra-record"
"""The name of the role of a recorder."""


def roles(wanted: Wanted) -> list[JsonObject]:
    """The roles that recording needs. Raises InputError for an unknown kind.

    Of one namespace these are a ClusterRole for kinds without a namespace, and for those of
    unknown scope, and a Role for all others. That ClusterRole has the namespace in its name: it
    would replace the one of a recorder of all namespaces, which then could no longer read pods.
    """
    rules = discovery.rules_of(discovery.choose(wanted.include, wanted.without))
    if not wanted.namespace:
        return [_role("ClusterRole", {"name": _ROLE}, rules)]
    beyond = [
        (group, [one for one in names if not _is_namespaced(group, one)]) for group, names in rules
    ]
    within = [
        (group, [one for one in names if _is_namespaced(group, one)]) for group, names in rules
    ]
    return [
        _role("ClusterRole", {"name": f"{_ROLE}-{wanted.namespace}"}, beyond),
        _role("Role", {"name": _ROLE, "namespace": wanted.namespace}, within),
    ]


def _is_namespaced(group: str, resource: str) -> bool:
    kind = registry.find(group, resource)
    return kind is not None and kind.namespaced


def _role(
    kind: str, metadata: dict[str, str], rules: Iterable[tuple[str, list[str]]]
) -> JsonObject:
    return {
        "apiVersion": f"{api_groups.RBAC}/v1",
        "kind": kind,
        "metadata": metadata,
        "rules": [
            {"apiGroups": [group], "resources": resources, "verbs": ["get", "list", "watch"]}
            for group, resources in rules
            if resources
        ],
    }
