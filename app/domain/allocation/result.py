"""Converts takes into AllocationResults. Parity: allocator.md 10.

Results are API objects. Everything except the share ids follows from the search; the caller
supplies the ids in result order, so that they can be recorded and supplied again.
"""

from collections.abc import Callable, Mapping, Sequence

from app.domain.allocation.capacity import Amount
from app.domain.allocation.features import AllocatorVariant, Features
from app.domain.allocation.problem import Problem
from app.domain.allocation.requests import AttemptAborted, ClaimPlan, Request
from app.domain.allocation.usage import Taken
from app.domain.devices.node_views import NodeView
from app.domain.values import json_tree
from app.domain.values.fields import core
from app.domain.values.json_tree import JsonObject, JsonView

ShareIds = Callable[[], str]
"""Returns the next share id: a random UUID, version 4, in lower case; or a recorded one."""


def allocations(
    problem: Problem, results: Sequence[Sequence[Taken]], share_ids: ShareIds
) -> list[JsonObject]:
    """One AllocationResult per claim. Raises AttemptAborted for an unsupported node selector."""
    return [
        _allocation(problem, plan, take, share_ids)
        for plan, take in zip(problem.plans, results, strict=True)
    ]


def check_node_selectors(problem: Problem, results: Sequence[Sequence[Taken]]) -> None:
    """Raises AttemptAborted when the node selector of a claim cannot be expressed."""
    for plan, take in zip(problem.plans, results, strict=True):
        node_selector(problem, plan, take)


def amounts_text(amounts: Mapping[str, Amount]) -> JsonObject:
    """The consumed capacity by name, sorted by name."""
    return {
        name: str(amount.source.amount if amount.source is not None else amount.value)
        for name, amount in sorted(amounts.items())
    }


def node_selector(problem: Problem, plan: ClaimPlan, results: Sequence[Taken]) -> JsonObject | None:
    """The selector of nodes that can access all devices of the claim. Parity: allocator.md 10.3."""
    stable = problem.variant is AllocatorVariant.STABLE
    fields: list[JsonObject] = []
    expressions: list[JsonObject] = []
    view = problem.view
    for take in results:
        resource_slice = view.slices[take.device]
        device = view.devices[take.device]
        choice = device.node if resource_slice.per_device else resource_slice.node
        if choice.name or (device.binds_to_node and not stable):
            name = choice.name if stable else view.node.name
            return {"nodeSelectorTerms": [{"matchFields": [_is_node(name)]}]}
        if choice.tree is None:
            continue
        terms = core.node_selector_terms(choice.tree)
        if len(terms) > 1:
            raise AttemptAborted(
                f"create NodeSelector for claim {plan.name}: "
                f"unsupported ResourceSlice.NodeSelector with {len(terms)} terms"
            )
        for term in terms:
            _merge(fields, core.field_expressions(term))
            _merge(expressions, core.expressions(term))
    if not fields and not expressions:
        return None
    combined: JsonObject = {}
    if expressions:
        combined["matchExpressions"] = expressions
    if fields:
        combined["matchFields"] = fields
    return {"nodeSelectorTerms": [combined]}


def _allocation(
    problem: Problem, plan: ClaimPlan, results: Sequence[Taken], share_ids: ShareIds
) -> JsonObject:
    devices: JsonObject = {}
    entries = [_entry(problem.view, take, problem.features, share_ids) for take in results]
    if entries:
        devices["results"] = entries
    selected = _selected(plan, results)
    configs = _configs(plan, selected, cleaned=problem.features.cleaned_configs)
    if configs:
        devices["config"] = configs
    allocation: JsonObject = {"devices": devices}
    selector = node_selector(problem, plan, results)
    if selector is not None:
        allocation["nodeSelector"] = selector
    return allocation


def _entry(view: NodeView, take: Taken, features: Features, share_ids: ShareIds) -> JsonObject:
    device = view.devices[take.device]
    request = take.row.request
    driver, pool, name = device.id
    entry: JsonObject = {
        "request": request.result_name,
        "driver": driver,
        "pool": pool,
        "device": name,
    }
    if request.admin:
        entry["adminAccess"] = True
    if request.tolerations:
        entry["tolerations"] = [dict(toleration.tree) for toleration in request.tolerations]
    if features.binding_conditions:
        if device.binding_conditions:
            entry["bindingConditions"] = list(device.binding_conditions)
        if device.binding_failure_conditions:
            entry["bindingFailureConditions"] = list(device.binding_failure_conditions)
    if take.amounts is not None:
        entry["shareID"] = share_ids()
        if take.amounts:
            entry["consumedCapacity"] = amounts_text(take.amounts)
    return entry


def _selected(plan: ClaimPlan, results: Sequence[Taken]) -> list[Request]:
    """For each request of the claim, the request itself or the alternative that was taken."""
    requests = {take.row.request.main: take.row.request for take in results}
    return [requests.get(alternatives[0].main, alternatives[0]) for alternatives in plan.requests]


def _configs(plan: ClaimPlan, selected: Sequence[Request], *, cleaned: bool) -> list[JsonObject]:
    """The configs of classes and claim. Parity: allocator.md 10.2.

    `cleaned` removes `requests` from the entries that name every request, for both sources.
    """
    configs: list[JsonObject] = []
    of_class: dict[str, list[JsonObject]] = {}
    for request in selected:
        entries = of_class.get(request.class_name)
        if entries is None:
            entries = [
                {"source": "FromClass", "requests": [], **config}
                for config in json_tree.objects(request.class_tree, "spec", "config")
            ]
            of_class[request.class_name] = entries
            configs.extend(entries)
        for entry in entries:
            entry["requests"].append(request.result_name)
    for config in json_tree.objects(plan.tree, "spec", "devices", "config"):
        names = json_tree.texts(config, "requests")
        rest = {field: value for field, value in config.items() if field != "requests"}
        if not names:
            configs.append({"source": "FromClaim", **rest})
        elif any(_names(names, request) for request in selected):
            configs.append({"source": "FromClaim", "requests": names, **rest})
    for entry in configs if cleaned else ():
        names = entry.get("requests", [])
        if names and all(_names(names, request) for request in selected):
            del entry["requests"]
    return configs


def _names(names: Sequence[str], request: Request) -> bool:
    return request.main in names or request.result_name in names


def _is_node(name: str) -> JsonObject:
    return {"key": "metadata.name", "operator": "In", "values": [name]}


def _merge(requirements: list[JsonObject], more: Sequence[JsonView]) -> None:
    """Appends the requirements that are new: another key, operator or set of values."""
    for requirement in more:
        values = set(json_tree.texts(requirement, "values"))
        if not any(
            known.get("key") == requirement.get("key")
            and known.get("operator") == requirement.get("operator")
            and set(json_tree.texts(known, "values")) == values
            for known in requirements
        ):
            requirements.append(dict(requirement))
