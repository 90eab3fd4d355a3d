"""The reports of drivers about the devices of claims, and configurations that no driver reads.

A driver may report conditions of each device in the status of its claim. By convention `Ready` says
whether the device can be used; the control plane looks at none but the binding conditions. A
configuration is copied into an allocation for the driver that it names, and no other reads it.
"""

from collections.abc import Iterator, Sequence
from functools import partial

from app.analysis.explain import waits
from app.analysis.explain.reasons import NAMES_MAX, Reason, listed
from app.analysis.views import LiveViews
from app.domain.controllers.resources import claim_key
from app.domain.log import ObjectKey
from app.domain.values import api_resources, condition_types, counts
from app.domain.values.fields import dra, paths, records
from app.domain.values.fields.dra import DeviceResult, DeviceStatus
from app.domain.values.fields.meta import Condition
from app.domain.values.fields.records import FieldRecord
from app.domain.values.identifiers import DeviceId
from app.domain.values.json_tree import JsonView


class _Opaque(FieldRecord, frozen=True):
    driver: str = ""


class _Configuration(FieldRecord, frozen=True):
    opaque: _Opaque = _Opaque()
    requests: tuple[str, ...] = ()


_configurations = records.of_list(
    _Configuration, paths.get("status", "allocation", "devices", "config")
)
_wanted = records.of_list(_Configuration, paths.get("spec", "devices", "config"))


def not_ready(claim: JsonView) -> Iterator[tuple[DeviceResult, Condition]]:
    """The allocated devices of a claim whose driver says that they are not ready."""
    for result, status in _reports(claim):
        for condition in status.conditions:
            if condition.type == condition_types.READY and condition.status != "True":
                yield result, condition


def reasons(key: ObjectKey, claim: JsonView) -> Iterator[Reason]:
    """Each condition that drivers report of the claim's devices; those not ready come first."""
    bad = [*not_ready(claim)]
    for result, condition in bad[:NAMES_MAX]:
        yield Reason(
            text=f"its driver reports of {result.text}: {waits.condition_text(condition)}; that "
            "alone ends no pod",
            about=key,
            is_kept=True,
            holds=partial(_is_reported, result, condition),
            since="; reported",
        )
    if (more := len(bad) - NAMES_MAX) > 0:
        text = f"drivers report {counts.of(more, 'more device')} as not ready"
        yield Reason(text=text, count=more, is_kept=True)
    others = [
        f"{condition.type} of {result.text} is {condition.status}"
        for result, status in _reports(claim)
        for condition in status.conditions
        if (result, condition) not in bad
    ]
    if others:
        yield Reason(text=f"drivers report: {listed(others, len(others))}", count=len(others))


def of_device(views: LiveViews, device: DeviceId) -> Iterator[Reason]:
    """The reports of the driver about a device, in the claims that hold it."""
    for holder in views.allocated.holders(device)[:NAMES_MAX]:
        namespace, _, name = holder.rpartition("/")
        key = claim_key(namespace, name)
        for result, condition in not_ready(views.objects.get(key) or {}):
            if result.id == device:
                text = f"its driver reports in the status of claim {holder}: "
                yield Reason(
                    text=text + waits.condition_text(condition),
                    about=key,
                    is_kept=True,
                    holds=partial(_is_reported, result, condition),
                    since="; reported",
                )


def unread(views: LiveViews, claim: JsonView) -> Iterator[str]:
    """The configurations of an allocation that are for no driver of a slice, as sentences."""
    written = dict.fromkeys(each.opaque.driver for each in _configurations(claim))
    if not written:
        return  # as in most claims, of which there may be many
    results = dra.results(claim)
    own = [*dict.fromkeys(result.driver for result in results)]
    lost = [name for name in written if name and name not in own] if own else []
    published = {place[0] for place in views.inventory.pool_ids()} if lost else set()
    if not published:
        return  # A recording may have no slices.
    for name in [name for name in lost if name not in published][:NAMES_MAX]:
        yield (
            f"driver {name} publishes no device, and the claim's devices are of "
            f"{listed(own, len(own))}"
        )


def unconfigured(claim: JsonView) -> Iterator[str]:
    """The chosen alternatives without a configuration for their driver, unlike another of the list.

    A configuration for one alternative (`gpu/large`) does not count where another is chosen.
    """
    wanted = _wanted(claim)
    if not wanted:
        return  # as in most claims, of which there may be many
    written = (*wanted, *_configurations(claim))
    for request, driver in dict.fromkeys((one.request, one.driver) for one in dra.results(claim)):
        main, _, chosen = request.partition("/")
        own = [one for one in written if one.opaque.driver == driver]
        if not chosen or any(
            not one.requests or main in one.requests or request in one.requests for one in own
        ):
            continue
        names = [name for one in own for name in one.requests if name.startswith(f"{main}/")]
        if others := [*dict.fromkeys(name.partition("/")[2] for name in names)]:
            which = f"{counts.plural(len(others), 'alternative')} {listed(others, len(others))}"
            yield (
                f"alternative {chosen} of request {main} was chosen, and no configuration for "
                f"driver {driver} is for it; what is written for {which} does not count"
            )


def of_configurations(views: LiveViews, key: ObjectKey, claim: JsonView) -> Iterator[Reason]:
    """The reasons about configurations that no driver reads, and about those that are missing."""
    for text in unread(views, claim):
        yield Reason(
            text=f"no driver reads a configuration: {text}",
            about=key,
            is_kept=True,
            denies=(api_resources.RESOURCE_SLICES[1],),
        )
    for text in unconfigured(claim):
        yield Reason(text=text, about=key, is_kept=True)


def _reports(claim: JsonView) -> Iterator[tuple[DeviceResult, DeviceStatus]]:
    statuses: Sequence[DeviceStatus] = dra.device_statuses(claim)
    if not statuses:
        return
    by_key = {status.key: status for status in statuses}
    for result in dra.results(claim):
        status = by_key.get((*result.id, result.share_id))
        if status is not None:
            yield result, status


def _is_reported(result: DeviceResult, condition: Condition, claim: JsonView) -> bool:
    """Whether a state of a claim has this condition of this device."""
    return any(
        (one.type, one.status, one.reason, one.message)
        == (condition.type, condition.status, condition.reason, condition.message)
        for other, status in _reports(claim)
        for one in status.conditions
        if other.id == result.id and other.share_id == result.share_id
    )
