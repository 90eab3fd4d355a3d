"""Every question of `/redra/v1` and `/ui/` about a history, made from the objects that it holds.

The questions come from the served operations and pages: one that no row here names is reported
by `without_row`.
"""

import json
from urllib.parse import urlencode

import msgspec

from app.api.redra import document
from app.api.ui import routes
from app.domain.errors import InputError
from app.domain.values import api_resources
from tests import draws

BELOW = "/redra/v1/histories/default"
PAGES = "/ui/h/default"

CHANGES = frozenset({
    ("delete", ""), ("post", "rename"), ("post", "copy"), ("post", "fork"),
    ("post", "replay"), ("delete", "jobs/{job}"),
})  # fmt: skip
"""Operations that change something; all others are questions."""

ELSEWHERE = frozenset({
    ("post", "minimise"), ("post", "rehearse"), ("post", "export"), ("get", "jobs/{job}"),
    ("get", "jobs/{job}/files/{file}"),
})  # fmt: skip
"""Questions that processes of their own answer, from the log: they share nothing with a server."""

_PARENT = "/histories/{history}"


class Asked:
    """A question: how it is sent."""

    def __init__(self, method, path, body=None, form=None, **query):
        self.method = method
        self.form = form
        text = urlencode({name: value for name, value in query.items() if value != ""})
        self.url = f"{path}?{text}" if text else path
        self.body = body

    def __str__(self):
        return f"{self.method} {self.url} {self.body or self.form or ''}"


class World:
    """What a history holds, for questions about it: its objects, devices, pools and views."""

    def __init__(self, runtime, views):
        self._objects = runtime.views.objects
        self._slices = list(runtime.views.inventory.slices())
        self.middle = runtime.head.revision * 2 // 3
        self.views = views

    def events(self):
        """The last event of each object."""
        for kind in self._objects.resources():
            yield from self._objects.events(*kind)

    def named(self):
        """The plural, namespace and name of each object, and of what is no object of the API."""
        for event in self.events():
            yield event.key.resource, event.key.namespace, event.key.name
        for pool in sorted({one.pool for one in self._slices}):
            yield "pools", "", "/".join(pool)
        for one in self._slices:
            for device in one.devices[:2]:
                yield "devices", "", "/".join(device.id)

    def names(self, kind):
        return [key.name for key in self._objects.keys(*kind)]

    def trees(self):
        """A copy of each object."""
        return [msgspec.json.decode(event.body) for event in self.events()]


def _as_applied(tree):
    """What a user would apply to get the object."""
    own = {name: value for name, value in tree.items() if name != "status"}
    kept = ("name", "namespace", "labels", "annotations")
    own["metadata"] = {name: tree["metadata"][name] for name in kept if name in tree["metadata"]}
    return own


def fresh(tree):
    """Another object of the same content, which nobody has placed."""
    other = _as_applied(tree)
    other["metadata"]["name"] += "-x"
    if tree["kind"] == "Pod":
        other["spec"] = {name: tree["spec"][name] for name in tree["spec"] if name != "nodeName"}
    return other


def changed(tree):
    """The same object with another label."""
    other = _as_applied(tree)
    other["metadata"]["labels"] = {**other["metadata"].get("labels", {}), "x.test/new": "1"}
    return other


async def no_worker(log, wish, tell):
    """Works on no job: a process of its own would, and shares nothing with the server."""
    raise InputError("jobs are done elsewhere")


def _nothing(world):
    yield {}


def _subjects(world):
    for resource, namespace, name in world.named():
        yield {"kind": resource, "namespace": namespace, "name": name}


def _whys(world):
    for subject in _subjects(world):
        yield subject
        if subject["kind"] == "pods":
            yield subject | {"help": "true"}
            for node in world.names(api_resources.NODES)[:1]:
                yield subject | {"node": node, "help": "true"}


def _pods(world):
    return (one for one in _subjects(world) if one["kind"] == "pods")


def _rules(world):
    return (
        {"kind": one["kind"], "name": one["name"]}
        for one in _subjects(world)
        if one["kind"] == "devicetaintrules"
    )


def _fits(world):
    yield {}
    for subject in _subjects(world):
        if subject["kind"] == "deviceclasses":
            yield {"class": subject["name"], "count": "2"}
        if subject["kind"] == "resourceclaimtemplates":
            yield {"template": subject["name"], "namespace": subject["namespace"]}


def _wanted(world):
    """Copies of what a user would apply."""
    for tree in world.trees():
        if tree["kind"] in ("Pod", "ResourceClaim", "ResourceClaimTemplate"):
            yield {"objects": [fresh(tree)]}


def _proposals(world):
    for resource, namespace, name in world.named():
        if resource not in ("devices", "pools"):
            place = f"{namespace}/{name}" if namespace else name
            yield {"delete": [f"{resource}/{place}"]}
    for node in world.names(api_resources.NODES):
        yield {"cordon": [node]}
        yield {"drain": [node]}
    for tree in world.trees():
        yield {"objects": [fresh(tree)]}
        yield {"objects": [changed(tree)]}


ROWS = {
    ("get", ""): _nothing,
    ("get", "events"): _nothing,
    ("get", "decisions"): _nothing,
    ("get", "controllers"): _nothing,
    ("get", "views"): _nothing,
    ("get", "replay"): _nothing,
    ("get", "jobs"): _nothing,
    ("get", "head"): _nothing,
    ("get", "entries"): lambda world: ({"decisions": one} for one in ("", "true")),
    ("get", "why"): _whys,
    ("get", "findings"): _nothing,
    ("get", "find"): lambda world: ({"q": name} for _, _, name in world.named()),
    ("get", "object"): _subjects,
    ("get", "lanes"): _nothing,
    ("get", "map"): _nothing,
    ("get", "attempts"): _pods,
    ("get", "pace"): _nothing,
    ("get", "scan"): _nothing,
    ("get", "trace"): _nothing,
    ("get", "timeline"): lambda world: ({"decisions": one} for one in ("", "true")),
    ("get", "blast"): _rules,
    ("post", "blast"): _proposals,
    ("get", "fit"): _fits,
    ("post", "fit"): _wanted,
    ("get", "capacity"): _nothing,
    ("get", "lint"): _nothing,
    ("get", "diff"): lambda world: [{"with": "default", "withAt": str(world.middle), "by": by}
                                    for by in ("decisions", "outcomes", "objects")],
    ("get", "again"): lambda world: [{}, {"quirk": "c2=off", "by": "outcomes"}],
    ("get", "rehearsal"): lambda world: [{"to": "1.36"}],
    ("get", "views/{view}"): lambda world: [{}],
}  # fmt: skip
"""The questions below a history, by operation: their parameters, or their bodies."""

_SAME = {"compare": "diff", "rehearsal": "rehearsal"}

_PAGES = {
    routes.LANDING: _nothing,
    "behaviours": _nothing,
    "fork": _nothing,
    "jobs": _nothing,
    "report": _nothing,
    **{
        page: ROWS["get", _SAME.get(page, page)]
        for page in (
            "again", "attempts", "blast", "compare", "rehearsal", "pace", "scan", "find", "lanes",
            "lint", "map", "object", "timeline", "why",
        )
    },
    "capacity": _nothing,
}  # fmt: skip
"""The parameters of pages; a page of a question has those of the question."""


def operations():
    """The served operations on one history, as method and path below it."""
    return {
        (method, path.removeprefix(_PARENT).removeprefix("/"))
        for path, method, *_ in document._OPERATIONS
        if path.startswith(_PARENT)
    }


def without_row():
    """Operations and pages that no row asks, and rows that ask nothing that is served."""
    rows = {*ROWS} | CHANGES | ELSEWHERE
    return sorted(operations() ^ rows), sorted({*routes._PARTS} ^ {*_PAGES})


def of_api(world):
    """All questions of `/redra/v1` about the history of a world, some of them about its past."""
    for (method, part), rows in ROWS.items():
        for number, row in enumerate(rows(world)):
            for name in world.views if "{view}" in part else ("",):
                path = f"{BELOW}/{part.format(view=name)}".rstrip("/")
                if method == "post":
                    yield Asked("POST", path, row)
                else:
                    yield Asked("GET", path, **row)
                    if part not in _WITHOUT_MOMENT and (draws.WHOLE or not number):
                        yield Asked("GET", path, at=str(world.middle), **row)


_WITHOUT_MOMENT = ("", "controllers", "views", "replay", "jobs", "entries")


def of_pages(world):
    """All questions that pages ask about the history of a world."""
    for page, rows in _PAGES.items():
        part = "" if page == routes.LANDING else page
        for row in rows(world):
            yield Asked("GET", f"{PAGES}/{part}", **row)
            yield Asked("GET", f"{PAGES}@{world.middle}/{part}", **row)


def of_forms(world):
    """The questions that forms of pages send: what a change would do, and how much more fits."""
    for body in _proposals(world):
        fields = {
            "manifest": "\n---\n".join(map(json.dumps, body.get("objects", ()))),
            **{name: "\n".join(body.get(name, ())) for name in ("delete", "cordon", "drain")},
        }
        yield Asked("POST", f"{PAGES}/blast", form=fields)
    for body in _wanted(world):
        manifest = "\n---\n".join(map(json.dumps, body["objects"]))
        yield Asked("POST", f"{PAGES}/capacity", form={"manifest": manifest})
