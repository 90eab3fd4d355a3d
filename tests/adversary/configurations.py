"""WRONG, and one HARMLESS: the configurations that an allocation has of its class."""

import copy

from tests.adversary.catalogue import FAILS, QUICKSTART, SAME, TAINTS, alteration
from tests.adversary.devices import given
from tests.adversary.log import Json, Log, results_of, uid_of


@alteration("wrong", (QUICKSTART, TAINTS), verify=FAILS, decide=FAILS)
def configuration_invented(log: Log) -> None:
    """The allocation has a configuration that neither class nor claim has (10.2)."""
    entry = {
        "source": "FromClass",
        "requests": ["gpu"],
        "opaque": {"driver": "gpu.example.com", "parameters": {"mode": "fast"}},
    }
    given(
        log,
        "",
        lambda body: body["status"]["allocation"]["devices"].update(config=[copy.deepcopy(entry)]),
    )


@alteration("wrong", (QUICKSTART, TAINTS), verify=FAILS, decide=FAILS)
def configuration_of_the_class_missing(log: Log) -> None:
    """The class has a configuration, and no allocation of it has it (10.2)."""
    entry = {"opaque": {"driver": "gpu.example.com", "parameters": {"mode": "fast"}}}
    for number in list(log.find("create", "deviceclasses", code=201)):
        for side in ("requestObject", "responseObject"):
            log.lines[number][side]["spec"]["config"] = [copy.deepcopy(entry)]


@alteration("wrong", (QUICKSTART, TAINTS), verify=FAILS, decide=FAILS)
def configurations_in_wrong_order(log: Log) -> None:
    """The class has two configurations; the allocations have them in the other order (10.2)."""
    entries = [
        {"opaque": {"driver": "gpu.example.com", "parameters": {"mode": mode}}}
        for mode in ("fast", "slow")
    ]
    for number in list(log.find("create", "deviceclasses", code=201)):
        for side in ("requestObject", "responseObject"):
            log.lines[number][side]["spec"]["config"] = copy.deepcopy(entries)
    _configured(log, entries[::-1])


def _configured(log: Log, entries: list[Json]) -> None:
    for number in log.allocations():

        def change(body: Json) -> None:
            if results_of(body):
                body["status"]["allocation"]["devices"]["config"] = [
                    {"source": "FromClass", "requests": [results_of(body)[0]["request"]], **entry}
                    for entry in copy.deepcopy(entries)
                ]

        log.alter(uid_of(log.lines[number]), change)


@alteration("harmless", (QUICKSTART, TAINTS), verify=SAME, decide=SAME)
def configurations_of_the_class(log: Log) -> None:
    """The class has two configurations; each allocation has them in that order (10.2, 1.36)."""
    entries = [
        {"opaque": {"driver": "gpu.example.com", "parameters": {"mode": mode}}}
        for mode in ("fast", "slow")
    ]
    for number in list(log.find("create", "deviceclasses", code=201)):
        for side in ("requestObject", "responseObject"):
            log.lines[number][side]["spec"]["config"] = copy.deepcopy(entries)
    _configured(log, entries)
