"""Validation of pod specs, in pods and in templates: containers, volumes, ports, tolerations.

Only commonly used fields are checked; other fields are stored as they were sent. Each group of
fields is checked only if the spec has it, because this code runs for every pod. Parity: objects.md
15.1; the messages are upstream's.
"""

from collections.abc import Iterable, Sequence, Set

from app.domain.objects.field_errors import (
    FieldError,
    duplicate,
    forbidden,
    invalid,
    not_found,
    not_supported,
    required,
)
from app.domain.objects.validation import ports as port_rules
from app.domain.objects.validation import shared
from app.domain.objects.validation.pods import container_resources, placing
from app.domain.values import json_tree, names, well_known
from app.domain.values.fields import core, entries, meta
from app.domain.values.json_tree import JsonView

DEADLINE_MAX = 2**31 - 1
NONE: frozenset[str] = frozenset()
_PULL_POLICIES = ("Always", "IfNotPresent", "Never")
_DNS_POLICIES = ("ClusterFirstWithHostNet", "ClusterFirst", "Default", "None")
_OF_NODES = (well_known.NOT_READY, well_known.UNREACHABLE)
_EFFECTS = ("NoSchedule", "PreferNoSchedule", "NoExecute")
_PROTOCOLS = ("SCTP", "TCP", "UDP")
_RESTARTS = ("Always", "OnFailure", "Never")

CLAIM_SOURCE_TEXT = "must specify one of: `resourceClaimName`, `resourceClaimTemplateName`"


def check_template(
    template: JsonView, path: str, *, volumes: Iterable[str] = ()
) -> list[FieldError]:
    """Checks labels and spec of a pod template; `volumes` are additional names of volumes."""
    errors = shared.labels(json_tree.get(template, "metadata", "labels"), f"{path}.metadata.labels")
    spec = meta.spec(template)
    return errors + check_pod(spec, f"{path}.spec", volumes=volumes)


def check_pod(spec: JsonView, path: str, *, volumes: Iterable[str] = ()) -> list[FieldError]:
    """Checks the spec of a pod or template; `volumes` are additional names of volumes."""
    errors: list[FieldError] = []
    if spec.get("resourceClaims"):
        errors += _resource_claims(spec, path)
    if not spec.get("containers"):
        errors.append(required(f"{path}.containers"))
    seen: set[str] = set()
    for field in ("initContainers", "containers"):
        for index, container in enumerate(json_tree.objects(spec, field)):
            at = f"{path}.{field}[{index}].name"
            name = entries.name(container)
            errors += shared.required_name(name, at, names.label)
            if name in seen:
                errors.append(duplicate(at, name))
            seen.add(name)
    policy = json_tree.text(spec, "restartPolicy")
    if policy and policy not in _RESTARTS:
        errors.append(not_supported(f"{path}.restartPolicy", policy, _RESTARTS))
    return errors + check(spec, path, volumes=volumes)


def check(spec: JsonView, path: str, *, volumes: Iterable[str] = ()) -> list[FieldError]:
    """Checks a spec except its resource claims, container names and restart policy.

    `volumes` are names that the owner of the spec adds, as a StatefulSet does with its claims.
    """
    errors: list[FieldError] = []
    known: set[str] = set()
    if spec.get("volumes"):
        errors += _volumes(json_tree.objects(spec, "volumes"), f"{path}.volumes", known)
    known.update(volumes)
    claims = spec.get("resourceClaims")
    claim_names = {entries.name(item) for item in claims} if claims else NONE
    for field in ("initContainers", "containers"):
        for index, container in enumerate(spec.get(field) or ()):
            if not _is_plain(container):
                errors += _container(container, f"{path}.{field}[{index}]", known, claim_names)
    deadline = json_tree.integer(spec, "activeDeadlineSeconds")
    if deadline is not None and not 0 < deadline <= DEADLINE_MAX:
        detail = f"must be between 1 and {DEADLINE_MAX}, inclusive"
        errors.append(invalid(f"{path}.activeDeadlineSeconds", deadline, detail))
    policy = spec.get("dnsPolicy")
    if policy is not None and policy not in _DNS_POLICIES:
        errors.append(not_supported(f"{path}.dnsPolicy", policy, _DNS_POLICIES))
    if spec.get("nodeSelector"):
        errors += shared.labels(spec["nodeSelector"], f"{path}.nodeSelector")
    for index, item in enumerate(spec.get("tolerations") or ()):
        if not _is_of_nodes(item):
            errors += _toleration(item, f"{path}.tolerations[{index}]")
    for name, form in (("hostname", names.label), ("subdomain", names.label)):
        if spec.get(name):
            errors += shared.formatted(spec[name], f"{path}.{name}", form)
    if spec.get("serviceAccountName"):
        place = f"{path}.serviceAccountName"
        errors += shared.formatted(spec["serviceAccountName"], place, names.subdomain)
    return errors + placing.check(spec, path)


def _is_plain(container: JsonView) -> bool:
    """Whether a container has a valid image and nothing else to check, as most containers do."""
    image = container.get("image")
    return (
        isinstance(image, str)
        and bool(image)
        and image == image.strip()
        and container.get("imagePullPolicy") in _PULL_POLICIES
        and not container.get("ports")
        and not container.get("env")
        and not container.get("volumeMounts")
        and not container.get("resources")
    )


def _is_of_nodes(item: JsonView) -> bool:
    """Whether an item is one of the two tolerations that admission adds to every pod."""
    return (
        item.get("key") in _OF_NODES
        and item.get("operator") == "Exists"
        and item.get("effect") == "NoExecute"
        and not item.get("value")
    )


def _container(
    container: JsonView, path: str, volumes: set[str], claim_names: Set[str]
) -> list[FieldError]:
    errors: list[FieldError] = []
    image = container.get("image")
    if not image:
        errors.append(required(f"{path}.image"))
    elif image != image.strip():
        detail = "must not have leading or trailing whitespace"
        errors.append(invalid(f"{path}.image", image, detail))
    policy = container.get("imagePullPolicy")
    if policy and policy not in _PULL_POLICIES:
        errors.append(not_supported(f"{path}.imagePullPolicy", policy, _PULL_POLICIES))
    if container.get("ports"):
        errors += _ports(core.ports(container), f"{path}.ports")
    if container.get("env"):
        errors += _environment(json_tree.objects(container, "env"), f"{path}.env")
    if container.get("volumeMounts"):
        mounts = json_tree.objects(container, "volumeMounts")
        errors += _mounts(mounts, f"{path}.volumeMounts", volumes)
    if container.get("resources"):
        errors += container_resources.check(
            container["resources"], f"{path}.resources", claim_names
        )
    return errors


def _ports(ports: Sequence[JsonView], path: str) -> list[FieldError]:
    errors: list[FieldError] = []
    seen: set[str] = set()
    for index, port in enumerate(ports):
        at = f"{path}[{index}]"
        name = entries.name(port)
        if name:
            problems = names.port_name(name)
            errors += [invalid(f"{at}.name", name, detail) for detail in problems]
            if not problems and name in seen:
                errors.append(duplicate(f"{at}.name", name))
            seen.add(name)
        number = port.get("containerPort")
        if not number:
            errors.append(required(f"{at}.containerPort"))
        else:
            errors += port_rules.number(number, f"{at}.containerPort")
        if port.get("hostPort"):
            errors += port_rules.number(port["hostPort"], f"{at}.hostPort")
        protocol = json_tree.text(port, "protocol")
        if protocol not in _PROTOCOLS:
            errors.append(not_supported(f"{at}.protocol", protocol, _PROTOCOLS))
    return errors


def _environment(variables: Sequence[JsonView], path: str) -> list[FieldError]:
    errors: list[FieldError] = []
    for index, variable in enumerate(variables):
        at = f"{path}[{index}]"
        name = entries.name(variable)
        if not name:
            errors.append(required(f"{at}.name"))
        else:
            errors += shared.formatted(name, f"{at}.name", names.environment_name)
        source = variable.get("valueFrom")
        if source is not None and variable.get("value"):
            detail = "may not be specified when `value` is not empty"
            errors.append(invalid(f"{at}.valueFrom", "", detail))
        elif source == {}:
            choices = "`fieldRef`, `resourceFieldRef`, `configMapKeyRef` or `secretKeyRef`"
            errors.append(invalid(f"{at}.valueFrom", "", f"must specify one of: {choices}"))
    return errors


def _mounts(mounts: Sequence[JsonView], path: str, volumes: set[str]) -> list[FieldError]:
    errors: list[FieldError] = []
    seen: set[str] = set()
    for index, mount in enumerate(mounts):
        at = f"{path}[{index}]"
        name, place = entries.name(mount), json_tree.text(mount, "mountPath")
        if not name:
            errors.append(required(f"{at}.name"))
        elif name not in volumes:
            errors.append(not_found(f"{at}.name", name))
        if not place:
            errors.append(required(f"{at}.mountPath"))
        elif place in seen:
            errors.append(invalid(f"{at}.mountPath", place, "must be unique"))
        seen.add(place)
    return errors


def _volumes(volumes: Sequence[JsonView], path: str, known: set[str]) -> list[FieldError]:
    """Checks the volumes and adds their names to `known`."""
    errors: list[FieldError] = []
    for index, volume in enumerate(volumes):
        at = f"{path}[{index}]"
        name = entries.name(volume)
        errors += shared.required_name(name, f"{at}.name", names.label)
        if name in known:
            errors.append(duplicate(f"{at}.name", name))
        known.add(name)
        sources = [key for key in volume if key != "name"]
        if not sources:
            errors.append(required(at, "must specify a volume type"))
        detail = "may not specify more than 1 volume type"
        errors += [forbidden(f"{at}.{source}", detail) for source in sources[1:]]
    return errors


def _toleration(item: JsonView, path: str) -> list[FieldError]:
    key, operator = item.get("key"), item.get("operator") or ""
    errors: list[FieldError] = []
    if key:
        errors += shared.formatted(key, f"{path}.key", names.label_name)
    elif operator != "Exists":
        detail = (
            "operator must be Exists when `key` is empty, which means "
            '"match all values and all keys"'
        )
        errors.append(invalid(f"{path}.operator", operator, detail))
    effect = item.get("effect") or ""
    if item.get("tolerationSeconds") is not None and effect != "NoExecute":
        detail = "effect must be 'NoExecute' when `tolerationSeconds` is set"
        errors.append(invalid(f"{path}.effect", effect, detail))
    value = item.get("value") or ""
    if operator in ("", "Equal"):
        errors += [
            invalid(f"{path}.operator", value, detail) for detail in names.label_value(value)
        ]
    elif operator == "Exists":
        if value:
            detail = "value must be empty when `operator` is 'Exists'"
            errors.append(invalid(f"{path}.operator", value, detail))
    elif operator not in ("Gt", "Lt"):
        errors.append(not_supported(f"{path}.operator", operator, ("Equal", "Exists")))
    if effect and effect not in _EFFECTS:
        errors.append(not_supported(f"{path}.effect", effect, _EFFECTS))
    return errors


def _resource_claims(spec: JsonView, path: str) -> list[FieldError]:
    """Checks the `resourceClaims` of a spec."""
    errors: list[FieldError] = []
    seen: set[str] = set()
    for index, claim in enumerate(json_tree.objects(spec, "resourceClaims")):
        at = f"{path}.resourceClaims[{index}]"
        name = entries.name(claim)
        errors += shared.required_name(name, f"{at}.name", names.label)
        if name in seen:
            errors.append(duplicate(f"{at}.name", name))
        seen.add(name)
        direct, template = claim.get("resourceClaimName"), claim.get("resourceClaimTemplateName")
        if direct is not None and template is not None:
            detail = (
                "at most one of `resourceClaimName` or `resourceClaimTemplateName` may be specified"
            )
            errors.append(invalid(at, _in_go(claim), detail))
        elif direct is None and template is None:
            errors.append(invalid(at, _in_go(claim), CLAIM_SOURCE_TEXT))
        for field, value in (
            ("resourceClaimName", direct),
            ("resourceClaimTemplateName", template),
        ):
            if value is not None:
                errors += shared.formatted(value, f"{at}.{field}", names.subdomain)
    return errors


def _in_go(claim: JsonView) -> dict[str, object]:
    """An entry with Go field names, as messages print it."""
    return {
        "Name": claim.get("name") or "",
        "ResourceClaimName": claim.get("resourceClaimName"),
        "ResourceClaimTemplateName": claim.get("resourceClaimTemplateName"),
    }
