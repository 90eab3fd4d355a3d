"""Section 10 of allocator.md, transcribed: from takes to AllocationResults."""

from __future__ import annotations

from tests.worlds.literal_cluster import Abort

SCOPED = "FromClass", "FromClaim"


def allocation(claim, wishes, takes, node, features, *, stable):
    """One AllocationResult; share ids are all `share`."""
    chosen = {wish.main: wish for wish, _, _ in takes}
    selected = [chosen.get(found[0].main, found[0]) for found in wishes]
    devices = {}
    if takes:
        devices["results"] = [entry(*take, features) for take in takes]
    configs = [*of_class(selected), *of_claim(claim, selected)]
    for config in configs:
        names = config.get("requests") or []
        if names and all(is_named(wish, names) for wish in selected):
            del config["requests"]
    if configs:
        devices["config"] = configs
    made = {"devices": devices}
    selector = node_selector(claim, [device for _, device, _ in takes], node, stable=stable)
    if selector:
        made["nodeSelector"] = selector
    return made


def entry(wish, device, amounts, features):
    driver, pool, name = device.id
    made = {"request": wish.result_name, "driver": driver, "pool": pool, "device": name}
    if wish.admin:
        made["adminAccess"] = True
    if wish.tolerations:
        made["tolerations"] = wish.tolerations
    if features.binding_conditions:
        for field in ("bindingConditions", "bindingFailureConditions"):
            if device.tree.get(field):
                made[field] = device.tree[field]
    if amounts is not None:
        made["shareID"] = "share"
        if amounts:
            made["consumedCapacity"] = {
                key: str(source.now if source else amount)
                for key, (amount, source) in sorted(amounts.items())
            }
    return made


def of_class(selected):
    """Configs of a class at its first occurrence, with all requests of that class."""
    made, seen = [], {}
    for wish in selected:
        name = wish.tree["deviceClassName"]
        if name not in seen:
            seen[name] = [
                {"source": SCOPED[0], "requests": [], **config}
                for config in wish.cls["spec"].get("config") or []
            ]
            made += seen[name]
        for config in seen[name]:
            config["requests"].append(wish.result_name)
    return made


def of_claim(claim, selected):
    for config in claim["spec"]["devices"].get("config") or []:
        names = config.get("requests") or []
        rest = {key: value for key, value in config.items() if key != "requests"}
        if not names:
            yield {"source": SCOPED[1], **rest}
        elif any(is_named(wish, names) for wish in selected):
            yield {"source": SCOPED[1], "requests": list(names), **rest}


def is_named(wish, names):
    return wish.main in names or (wish.inner and wish.result_name in names)


def node_selector(claim, devices, node, *, stable):
    fields, expressions = [], []
    for device in devices:
        choice = device.choice()
        binds = device.tree.get("bindsToNode") is True and not stable
        if choice.get("nodeName") or binds:
            name = choice["nodeName"] if stable else node["metadata"]["name"]
            only = {"key": "metadata.name", "operator": "In", "values": [name]}
            return {"nodeSelectorTerms": [{"matchFields": [only]}]}
        if choice.get("nodeSelector") is None:
            continue
        terms = choice["nodeSelector"].get("nodeSelectorTerms") or []
        if len(terms) > 1:
            name = claim["metadata"]["name"]
            problem = f"unsupported ResourceSlice.NodeSelector with {len(terms)} terms"
            raise Abort(f"create NodeSelector for claim {name}: {problem}")
        for term in terms:
            for found in term.get("matchFields") or []:
                add(fields, found)
            for found in term.get("matchExpressions") or []:
                add(expressions, found)
    term = {}
    if expressions:
        term["matchExpressions"] = expressions
    if fields:
        term["matchFields"] = fields
    return {"nodeSelectorTerms": [term]} if term else None


def add(known, found):
    def shape(requirement):
        values = requirement.get("values") or []
        return requirement["key"], requirement["operator"], set(values)

    if all(shape(other) != shape(found) for other in known):
        known.append(found)
