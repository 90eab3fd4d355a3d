"""Exported tests with one decisive thing altered, and the objects one of which must be named then.

An alteration knows the file alone: the history in it and the outcome that it asserts. It reads raw
JSON and shares nothing with the export. Its verdict follows from the specification: a device that
no slice publishes is in no allocation, a pod is not placed on a cordoned node.
"""

import ast
import copy
import json
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any

Tree = dict[str, Any]

_STORY = re.compile(r'(?<=json\.loads\(r""")(.+?)(?=""")', re.DOTALL)


@dataclass(frozen=True, slots=True, kw_only=True)
class File:
    """The text of an exported test, with the history and the outcome of pods that it contains."""

    text: str
    story: Tree
    pods: Mapping[str, str]

    def holders(self, device: str) -> list[str]:
        """The pods that the file asserts to get a device."""
        return [name for name, fate in self.pods.items() if device in fate.split()]

    def of(self, resource: str) -> list[Tree]:
        """The last state of each object of a resource that the history writes."""
        last = {
            (line.get("namespace", ""), line["name"]): line["object"]
            for line in self.story["lines"]
            if line["resource"] == resource
        }
        return [*last.values()]


@dataclass(frozen=True, slots=True, kw_only=True)
class Altered:
    """The text of an altered test, and the names one of which its failure must contain."""

    kind: str
    text: str
    names: tuple[str, ...]


def read(text: str) -> File:
    """Reads an exported test of a sound history."""
    story = _STORY.search(text)
    assert story is not None
    (outcome,) = re.findall(r"history\.pods == (\{.*?^    \})", text, re.DOTALL | re.MULTILINE)
    return File(text=text, story=json.loads(story[0]), pods=ast.literal_eval(outcome))


def alterations(text: str) -> list[Altered]:
    """One alteration of each kind that the file has a decisive object for."""
    file = read(text)
    makers = (
        *(devices, nodes, effects, counters, reasons, counts, selectors, amounts, admins),
        *(configurations, tolerated_times, asserted),
    )
    first = (next(make(file), None) for make in makers)
    return [each for each in first if each is not None]


def devices(file: File) -> Iterator[Altered]:
    """A device of an allocation that no slice publishes any more."""
    for driver, pool, device in _asserted_devices(file):

        def withdraw(tree: Tree, who: tuple[str, str] = (driver, pool), name: str = device) -> None:
            spec = tree["spec"]
            if (spec["driver"], spec["pool"]["name"]) == who:
                spec["devices"] = [
                    each for each in spec.get("devices") or () if each["name"] != name
                ]

        names = file.holders(f"{driver}/{pool}/{device}")
        yield _changed(file, "device", "resourceslices", withdraw, names)


def nodes(file: File) -> Iterator[Altered]:
    """A node with pods that is cordoned from the beginning."""
    pinned = {f"{o['metadata'].get('namespace')}/{o['metadata']['name']}" for o in _pinned(file)}
    for node in file.of("nodes"):
        name = node["metadata"]["name"]
        pods = [pod for pod, fate in file.pods.items() if f" on {name} " in f"{fate} "]

        def cordon(tree: Tree, name: str = name) -> None:
            if tree["metadata"]["name"] == name:
                tree.setdefault("spec", {})["unschedulable"] = True

        if pods := [each for each in pods if each not in pinned]:
            yield _changed(file, "node", "nodes", cordon, pods)


def effects(file: File) -> Iterator[Altered]:
    """A rule that evicts nobody any more."""
    evicted = [pod for pod, fate in file.pods.items() if fate.startswith("evicted")]
    for rule in file.of("devicetaintrules"):
        name = rule["metadata"]["name"]

        def weaken(tree: Tree, name: str = name) -> None:
            if tree["metadata"]["name"] == name:
                tree["spec"]["taint"]["effect"] = "NoSchedule"

        if evicted and rule["spec"]["taint"]["effect"] == "NoExecute":
            names = [f"devicetaintrules/{name}", *evicted]
            yield _changed(file, "effect", "devicetaintrules", weaken, names)


def counters(file: File) -> Iterator[Altered]:
    """Counters of a pool that are used up before anything is allocated."""
    for driver, pool, device in _asserted_devices(file):
        consuming = {
            entry["name"]
            for tree in file.of("resourceslices")
            if tree["spec"]["pool"]["name"] == pool
            for entry in tree["spec"].get("devices") or ()
            if entry.get("consumesCounters")
        }

        def empty(tree: Tree, pool: str = pool) -> None:
            if tree["spec"]["pool"]["name"] == pool:
                for entry in tree["spec"].get("sharedCounters") or ():
                    for counter in entry["counters"].values():
                        counter["value"] = "0"

        if device in consuming:
            names = file.holders(f"{driver}/{pool}/{device}")
            yield _changed(file, "counter", "resourceslices", empty, names)


def reasons(file: File) -> Iterator[Altered]:
    """Another reason in a condition that a driver reports."""
    for claim in file.of("resourceclaims"):
        name = claim["metadata"]["name"]

        def rename(tree: Tree, name: str = name) -> None:
            if tree["metadata"]["name"] == name:
                for device in tree.get("status", {}).get("devices") or ():
                    for condition in device.get("conditions") or ():
                        condition["reason"] = "SomethingElse"

        reported = claim.get("status", {}).get("devices") or ()
        if any(device.get("conditions") for device in reported):
            yield _changed(file, "reason", "resourceclaims", rename, [name])


def counts(file: File) -> Iterator[Altered]:
    """A request of one device more."""

    def raise_count(request: Tree) -> None:
        request["count"] = request.get("count", 1) + 1

    def counted(request: Tree) -> bool:
        return request.get("allocationMode", "ExactCount") == "ExactCount"

    yield from _requests(file, "count", counted, raise_count)


def selectors(file: File) -> Iterator[Altered]:
    """A selector of a request that excludes what it selected."""

    def negate(request: Tree) -> None:
        for selector in request["selectors"]:
            selector["cel"]["expression"] = f"!({selector['cel']['expression']})"

    yield from _requests(file, "selector", lambda request: bool(request.get("selectors")), negate)


def amounts(file: File) -> Iterator[Altered]:
    """A requested amount of capacity that is another one."""

    def raise_amount(request: Tree) -> None:
        amounts = request["capacity"]["requests"]
        for name, amount in amounts.items():
            amounts[name] = re.sub(r"^\d+", lambda number: str(int(number[0]) * 2), amount)

    def has_amounts(request: Tree) -> bool:
        return bool(request.get("capacity", {}).get("requests"))

    yield from _requests(file, "amount", has_amounts, raise_amount)


def admins(file: File) -> Iterator[Altered]:
    """A request without the access for an admin."""
    yield from _requests(
        file,
        "admin",
        lambda request: request.get("adminAccess") is True,
        lambda request: request.update(adminAccess=False),
    )


def configurations(file: File) -> Iterator[Altered]:
    """A parameter of a claim's configuration, which its allocation hands to the driver."""

    def change(spec: Tree) -> None:
        for config in spec["devices"].get("config") or ():
            config["opaque"]["parameters"]["altered"] = "yes"

    def configured(spec: Tree) -> bool:
        return bool(spec["devices"].get("config"))

    yield from _claims(file, "configuration", configured, change)


def tolerated_times(file: File) -> Iterator[Altered]:
    """A toleration that ends later, of a pod that is evicted."""

    def prolong(request: Tree) -> None:
        for toleration in request["tolerations"]:
            toleration["tolerationSeconds"] = toleration.get("tolerationSeconds", 0) + 2

    def limited(request: Tree) -> bool:
        return any("tolerationSeconds" in each for each in request.get("tolerations") or ())

    for each in _requests(file, "tolerated time", limited, prolong):
        if any(file.pods.get(name, "").startswith("evicted") for name in each.names):
            yield each


def asserted(file: File) -> Iterator[Altered]:
    """A device of an allocation, as the file asserts it."""
    for name, fate in file.pods.items():
        if "/" in fate:
            line = f"{name!r}: {fate!r},"
            text = file.text.replace(line, f"{name!r}: {fate + '0'!r},")
            assert text != file.text
            yield Altered(kind="asserted device", text=text, names=(name,))


def release(text: str, version: str) -> Altered:
    """The file under another release, in which the history has other outcomes."""
    file = read(text)
    story = copy.deepcopy(file.story)
    assert story["settings"]["profile"] != version
    story["settings"]["profile"] = version
    return Altered(kind="release", text=_with(text, story), names=tuple(file.pods))


def _requests(
    file: File, kind: str, has: Callable[[Tree], bool], change: Callable[[Tree], None]
) -> Iterator[Altered]:
    """Changes what exactly one kind of device is requested with, in claims with devices."""

    def exact(spec: Tree) -> list[Tree]:
        requests = [
            each.get("exactly") or (each if "deviceClassName" in each else {})
            for each in spec["devices"].get("requests") or ()
        ]
        return [each for each in requests if each and has(each)]

    def change_all(spec: Tree) -> None:
        for request in exact(spec):
            change(request)

    yield from _claims(file, kind, lambda spec: bool(exact(spec)), change_all)


def _claims(
    file: File, kind: str, has: Callable[[Tree], bool], change: Callable[[Tree], None]
) -> Iterator[Altered]:
    """Changes the specifications of claims, or of their templates, whose pods have devices."""
    pods = file.of("pods")
    for resource, entry, inner in (
        ("resourceclaimtemplates", "resourceClaimTemplateName", "spec"),
        ("resourceclaims", "resourceClaimName", ""),
    ):
        for tree in file.of(resource):
            namespace, name = tree["metadata"]["namespace"], tree["metadata"]["name"]
            users = [
                f"{namespace}/{pod['metadata']['name']}"
                for pod in pods
                if pod["metadata"]["namespace"] == namespace
                and any(each.get(entry) == name for each in pod["spec"].get("resourceClaims") or ())
            ]

            def alter(
                tree: Tree, name: str = name, namespace: str = namespace, inner: str = inner
            ) -> None:
                if (tree["metadata"]["namespace"], tree["metadata"]["name"]) == (namespace, name):
                    change(tree["spec"][inner] if inner else tree["spec"])

            spec = tree["spec"][inner] if inner else tree["spec"]
            users = [each for each in users if "/" in file.pods.get(each, "")]
            if users and has(spec):
                yield _changed(file, kind, resource, alter, [*users, f"{namespace}/{name}"])


def _changed(
    file: File, kind: str, resource: str, change: Callable[[Tree], None], names: list[str]
) -> Altered:
    story = copy.deepcopy(file.story)
    for line in story["lines"]:
        if line["resource"] == resource:
            for state in ("object", "before"):
                if line.get(state):
                    change(line[state])
    assert story != file.story, f"{kind}: nothing is altered"
    return Altered(kind=kind, text=_with(file.text, story), names=tuple(names))


def _with(text: str, story: Tree) -> str:
    return _STORY.sub(partial(_text, story), text)


def _text(story: Tree, _: re.Match[str]) -> str:
    return f"\n{json.dumps(story, indent=1)}\n"


def _asserted_devices(file: File) -> Iterator[tuple[str, str, str]]:
    """The devices that a pod is asserted to get, by driver, pool and name."""
    for fate in dict.fromkeys(file.pods.values()):
        for word in fate.split():
            if word.count("/") == 2:
                driver, pool, device = word.split("/")
                yield driver, pool, device


def _pinned(file: File) -> Iterator[Tree]:
    """The pods that were made with a node."""
    for line in file.story["lines"]:
        is_new = line["resource"] == "pods" and line["type"] == "ObjectCreated"
        if is_new and line["object"].get("spec", {}).get("nodeName"):
            yield line["object"]
