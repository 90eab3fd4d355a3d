"""WRONG, in a log that is unusual in a harmless way, too: what excuses that covers no wrong.

Each row is a wrong and an alteration of the whole log that changes no verdict by itself. What
names, accounts, clocks or extra requests leave open does not leave the wrong open.
"""

import copy

from tests.adversary import additions, devices, evictions, harmless, unseen, writes
from tests.adversary.catalogue import (
    AGREES,
    ALTERATIONS,
    FAILS,
    NOT_BLAMED,
    QUICKSTART,
    VERSIONS,
    Change,
    alteration,
)
from tests.adversary.log import Json, Log, results_of, uid_of

_MODULES = (additions, devices, evictions, harmless, unseen, writes)
"""The modules whose alterations are taken: they have to be registered first."""

_DISGUISES = {
    "and_users_renamed": "users_renamed",
    "and_controllers_sharing_an_account": "controllers_share_an_account",
    "and_no_managed_fields": "managed_fields_left_out",
    "and_trials": "trials",
    "and_writes_without_effect": "writes_without_effect",
    "and_refused_requests": "refused_requests",
    "and_a_server_ahead": "every_second_line_from_a_server_ahead",
    "and_a_single_user": "everybody_is_admin",
}

_OF_ACCOUNTS = ("and_controllers_sharing_an_account", "and_a_single_user")
"""Disguises in which an act may be that of a person, where the act is no wrong for everybody."""

_BY_ANYBODY = (
    "device_in_two_claims",
    "allocation_exchanged",
    "spec_of_a_claim_changes",
    "tolerations_not_copied",
    "bound_without_a_reservation",
    "bound_where_the_device_is_not",
)
"""Wrongs whoever did them."""

_BY_CONTROLLERS = (
    "eviction_missing",
    "bound_beyond_the_cpu_of_the_node",
    "claim_without_owner",
    "message_of_another_cause",
    "scheduled_event_of_another_node",
    "later_device_than_the_first",
)
"""Wrongs for the controller that did them."""


def _disguise(wrong: str, title: str) -> None:
    one = ALTERATIONS[wrong]
    change_wrong, change_log = one.change, ALTERATIONS[_DISGUISES[title]].change

    def change(log: Log) -> None:
        change_wrong(log)
        change_log(log)

    change.__name__ = f"{wrong}_{title}"
    whys = (" ".join((each.__doc__ or "").split()) for each in (change_wrong, change_log))
    change.__doc__ = " Besides: ".join(whys)
    recording = QUICKSTART if QUICKSTART in one.recordings else one.recordings[0]
    # Where a clock differs, a log agrees in part at best.
    verify = NOT_BLAMED if (one.verify, title) == (AGREES, "and_a_server_ahead") else one.verify
    alteration("disguised", recording, verify=verify, decide=one.decide)(change)


for _wrong in (*_BY_ANYBODY, *_BY_CONTROLLERS):
    for _title in _DISGUISES:
        if _wrong in _BY_ANYBODY or _title not in _OF_ACCOUNTS:
            _disguise(_wrong, _title)


def _never_stored(log: Log, change: Change) -> None:
    """The first allocation is no write: its version was never given."""
    number = log.allocation("")
    version = int(log.lines[number]["responseObject"]["metadata"]["resourceVersion"])
    change(log)
    log.close(version)


@alteration("disguised", VERSIONS, verify=FAILS, decide=FAILS)
def allocation_was_a_trial(log: Log) -> None:
    """The write that gives a claim its devices is dryRun=All, and the pod is bound (3.7)."""

    def try_only(log: Log) -> None:
        line = log.lines[log.allocation("")]
        line["requestURI"] += "?dryRun=All"
        line["responseObject"]["metadata"]["resourceVersion"] = line["objectRef"]["resourceVersion"]

    _never_stored(log, try_only)


@alteration("disguised", VERSIONS, verify=FAILS, decide=FAILS)
def allocation_was_refused(log: Log) -> None:
    """The write that gives a claim its devices is answered 409 and never sent again (3.7)."""

    def refuse(log: Log) -> None:
        line = log.lines[log.allocation("")]
        status = {"metadata": {}, "status": "Failure", "reason": "Conflict", "code": 409}
        line["responseStatus"] = status
        line["responseObject"] = {"kind": "Status", "apiVersion": "v1", **status}

    _never_stored(log, refuse)


@alteration("disguised", QUICKSTART, verify=FAILS, decide=FAILS)
def device_applied_by_another_manager(log: Log) -> None:
    """A user applies another device to the status of a claim that is allocated (6.2)."""
    log.widen()
    number = log.allocation("pod2")
    later = log.again(number, seconds=1.0)
    _apply(log, later, number)


def _apply(log: Log, new: Json, number: int) -> None:
    place = log.lines.index(new)
    before = log.lines[number]["responseObject"]["metadata"]["resourceVersion"]
    version = str(log.version_before(place))
    claim = copy.deepcopy(new["responseObject"])
    results_of(claim)[0]["device"] = "gpu-3"
    claim["metadata"]["resourceVersion"] = version
    given = {
        "apiVersion": claim["apiVersion"],
        "kind": claim["kind"],
        "metadata": {"name": claim["metadata"]["name"], "resourceVersion": before},
        "status": {"allocation": claim["status"]["allocation"]},
    }
    new.update(
        verb="patch",
        user={"username": "alice", "groups": ["system:authenticated"]},
        userAgent="kubectl/v1.36.2",
        requestObject=given,
        responseObject=claim,
        requestURI=f"{new['requestURI'].partition('?')[0]}?fieldManager=kubectl&force=true",
    )
    new["objectRef"].pop("resourceVersion", None)

    def change(body: Json) -> None:
        if results_of(body):
            results_of(body)[0]["device"] = "gpu-3"

    log.alter(uid_of(new), change, start=place + 1)
