"""Broken recordings: `python -m tests.fuzz recordings --cases N --seed S`.

Each case changes the story of `stories` in one format: trees, texts, keys, stamps, the order, the
manifest. Then it goes the whole way: import, reopening from the stored log, every view, every page
and list in every form, every controller's fold, the replays. A refusal of the import must name a
place; an accepted recording must not break anything, and the other history is still served.
"""

import json
import random
import tempfile
import traceback
from collections import Counter
from pathlib import Path

from anyio.from_thread import start_blocking_portal

from app.adapters import schemas
from app.adapters.telemetry import Telemetry
from app.analysis.views import LiveViews, compiler_of, features_of
from app.api.application import create_app
from app.bootstrap import histories as opening
from app.bootstrap import recordings as importing
from app.bootstrap import replays, stores
from app.bootstrap.histories import views_of
from app.domain.controllers import reconcilers
from app.domain.controllers import registry as controllers
from app.domain.errors import ChainBroken, InputError
from app.domain.log import Revision
from app.domain.objects import profile as profiles
from app.domain.objects import registry
from app.service.metering import HistoryMeter
from app.settings import Settings
from tests import whole_timelines
from tests.fuzz import mixtures, mutations, stories, texts
from tests.fuzz.target import LIMITS, Finding, Sent, Target

SETTINGS = Settings(verify_processes=1)
NAME = "changed"
PAGE = 5_000
LISTS_OF_A_CASE = 8
"""Lists and watches that are asked for in one case, drawn from all kinds and forms."""
DECIDED_SHARE = 0.2
"""Cases in which the history is decided again, which takes the longest."""

FORMS = (
    "application/json",
    "application/yaml",
    "application/vnd.kubernetes.protobuf,application/json",
    "application/json;as=Table;v=v1;g=meta.k8s.io,application/json",
    "application/json;as=PartialObjectMetadataList;v=v1;g=meta.k8s.io,application/json",
)
WHYS = ("pod", "resourceclaim", "resourceslice", "devicetaintrule", "node", "deviceclass")
TIMES = (
    *mutations.TIMES,
    "9999-12-31T23:59:59.999999Z",
    "9999-01-01T00:00:00.000000Z",
    "0000-01-01T00:00:00.000000Z",
    "0001-01-01T00:00:00.000000Z",
    "1969-12-31T23:59:59.999999Z",
    "9999-12-31T23:59:59-23:59",
    "0001-01-01T00:00:00+23:59",
    "2026-01-02T03:00:00.000000+99:99",
)
ODD_TEXTS = ("", "\0", "a\0b", "/", "..", "x" * 3_000, "é", "\u202e", "9" * 400, "\n", "default")
NUMBERS = (-1, 0, 2**31, 2**53, 2**63 - 1, 2**63, 2**64, 2**70, -(2**63) - 1, 1.5, "5", None)


def run(*, cases, seed):
    """Sends `cases` cases the whole way; raises the first that breaks something.

    Returns the number of cases by outcome: `taken`, `refused`.
    """
    outcomes = Counter()
    for number in range(cases):
        outcomes[_case(f"{seed}-{number}")] += 1
    counted = ", ".join(f"{name}: {count}" for name, count in sorted(outcomes.items()))
    print(f"recordings, seed {seed}: {cases} cases ({counted})")
    return outcomes


def _case(name):
    rng = random.Random(f"recordings {name}")
    with tempfile.TemporaryDirectory() as folder, start_blocking_portal() as portal:
        paths, keep_going = _written(rng, Path(folder))
        try:
            return portal.call(_whole_way, rng, paths, keep_going, portal)
        except Exception as problem:
            trace = "".join(traceback.format_exception(problem))
            raise AssertionError(f"case {name} ({paths[0].name}):\n{trace[-6_000:]}") from problem


# what is written


def _written(rng, folder):
    """Writes the files of a case; returns also whether the import skips unreadable parts."""
    makers = (_bundle, _audit, _watches, _dump, mixtures.written)
    make = rng.choices(makers, weights=(5, 3, 2, 1, 3))[0]
    return make(rng, folder), rng.random() < 0.5


def _bundle(rng, folder):
    lines = stories.bundle_lines()
    for _ in range(rng.choice((1, 1, 1, 2, 3))):
        change = rng.choices(
            (_changed_object, _changed_payload, _changed_stamp, _changed_order, _changed_text),
            weights=(8, 3, 3, 2, 3),
        )[0]
        change(rng, lines)
    if rng.random() < 0.8:
        _number_again(lines)
    settings, manifest = stories.SETTINGS | {"recorded": rng.random() < 0.5}, {}
    if rng.random() < 0.1:
        settings = mutations.mutated(rng, settings | {"quirks": {"c8": True}})
    if rng.random() < 0.05:
        part = rng.choice(("seed", "events", "name", "sources", "checks", "version"))
        manifest = {part: mutations.odd(rng)}
    if rng.random() < 0.05:
        manifest["created"] = rng.choice(TIMES)
    return [stories.seal(folder / "story.redra", lines, settings, **manifest)]


def _number_again(lines):
    """Renumbers revisions without a gap, also in the objects, as in redra's own bundles."""
    for revision, line in enumerate(lines, start=1):
        line["revision"] = revision
        tree = line["payload"]["object"]
        if isinstance(tree, dict) and isinstance(tree.get("metadata"), dict):
            tree["metadata"]["resourceVersion"] = str(revision)


def _changed_object(rng, lines):
    payload = rng.choice(lines)["payload"]
    if not isinstance(payload["object"], bytes):
        payload["object"] = mutations.mutated(rng, payload["object"])


def _changed_text(rng, lines):
    payload = rng.choice(lines)["payload"]
    if not isinstance(payload["object"], bytes):
        payload["object"] = texts.json_text(rng, payload["object"])


def _changed_payload(rng, lines):
    line = rng.choice(lines)
    part = rng.choice(("group", "resource", "namespace", "name", "uid", "format", "type"))
    if part == "type":
        line["type"] = rng.choice([other["type"] for other in lines] + ["GapObserved", "x", 5])
    elif part == "format":
        line["payload"]["format"] = rng.choice(NUMBERS)
    else:
        other = rng.choice(lines)["payload"][part]
        line["payload"][part] = rng.choice((other, other, rng.choice(ODD_TEXTS), 5, None))


def _changed_stamp(rng, lines):
    line = rng.choice(lines)
    stamp = line["stamp"]
    part = rng.choice(("time", "time", "cause", "observed", "uid", "verb", "actor", "origin"))
    if part == "time":
        stamp["time"] = rng.choice(TIMES)
    elif part in ("cause", "observed"):
        stamp[part] = rng.choice(NUMBERS)
    elif part in ("uid", "verb"):
        stamp[part] = rng.choice((*ODD_TEXTS, 5, None))
    elif part == "actor":
        stamp["actor"] = mutations.mutated(rng, stamp["actor"])
    else:
        asked = rng.choice(NUMBERS)
        stamp["origin"] = rng.choice(({"source": "x", "asked": asked}, {"source": "a\0"}, {}, 5))


def _changed_order(rng, lines):
    place = rng.randrange(len(lines))
    if rng.random() < 0.4:
        del lines[place]
    elif rng.random() < 0.5:
        lines.insert(rng.randrange(len(lines)), json.loads(json.dumps(lines[place], default=repr)))
    else:
        other = rng.randrange(len(lines))
        lines[place], lines[other] = lines[other], lines[place]


def _lines_of(rng, folder, *, watches):
    told = stories.audit_and_watches(folder)
    return {name: lines for name, lines in told.items() if name.startswith("watch") == watches}


def _audit(rng, folder):
    lines = _lines_of(rng, folder, watches=False)["audit.jsonl"]
    for _ in range(rng.choice((1, 1, 2, 4))):
        place = rng.randrange(len(lines))
        event = _decoded(lines[place])
        if not isinstance(event, dict):
            continue
        if rng.random() < 0.3:
            part = rng.choice(("requestReceivedTimestamp", "stageTimestamp"))
            event[part] = rng.choice(TIMES)
        elif rng.random() < 0.6 and isinstance(event.get("responseObject"), dict):
            event["responseObject"] = mutations.mutated(rng, event["responseObject"])
        else:
            event = mutations.mutated(rng, event)
        lines[place] = _line(rng, event)
    (folder / "audit.jsonl").write_bytes(b"\n".join(lines) + b"\n")
    return [folder / "audit.jsonl"]


def _watches(rng, folder):
    told = _lines_of(rng, folder, watches=True)
    for _ in range(rng.choice((1, 1, 2, 4))):
        lines = told[rng.choice(sorted(told))]
        place = rng.randrange(len(lines))
        event = _decoded(lines[place])
        if isinstance(event, dict):
            lines[place] = _line(rng, mutations.mutated(rng, event))
    for name, lines in told.items():
        (folder / name).write_bytes(b"\n".join(lines) + b"\n")
    if rng.random() < 0.5:
        return [folder]
    return [folder / "watch"]


def _dump(rng, folder):
    tree = {"apiVersion": "v1", "kind": "List", "items": stories.objects()}
    for _ in range(rng.choice((1, 1, 2, 4))):
        items = tree["items"]
        place = rng.randrange(len(items))
        items[place] = mutations.mutated(rng, items[place])
    path = folder / rng.choice(("dump.json", "dump.yaml"))
    path.write_bytes((texts.json_text if path.suffix == ".json" else texts.yaml_text)(rng, tree))
    return [path]


def _decoded(line):
    try:
        return json.loads(line)
    except ValueError:
        return None


def _line(rng, value):
    whole = json.dumps(value).encode()
    if rng.random() < 0.8:
        return whole
    return texts.json_text(rng, value).replace(b"\n", b" ")


# the whole way


async def _whole_way(rng, paths, keep_going, portal):
    store = stores.memory_store()
    wanted = importing.RecordingFiles(paths=tuple(paths), keep_going=keep_going, with_secrets=True)
    refusal = await _imported(store, wanted)
    if refusal is not None:
        assert str(refusal).strip(), "a refusal says something"
        assert isinstance(refusal, ChainBroken) or refusal.place, f"it says where: {refusal}"
        return "refused"
    await _replayed(rng, store)
    await _folded_by_controllers(store)
    await _served(rng, store)
    return "taken"


async def _imported(store, wanted):
    """Imports the files; returns the refusal."""
    try:
        await importing.import_history(store, SETTINGS, wanted, NAME, lambda _done, _total: None)
    except (InputError, ChainBroken) as refusal:
        return refusal
    return None


async def _replayed(rng, store):
    def progress(*_):
        pass

    info = await stores.find_history(store, NAME)
    await replays.fold(store, SETTINGS, NAME, "", progress)
    await whole_timelines.timeline(store.log, info, page_max=SETTINGS.projector_batch_max)
    await replays.verify(store, SETTINGS, NAME, "", progress)
    if rng.random() < DECIDED_SHARE:
        await replays.decide(store, SETTINGS, NAME, "", progress)
    await importing.rebuild(store, SETTINGS, NAME, progress)
    again = await importing.rebuild(store, SETTINGS, NAME, progress)
    assert all(row["same"] for row in again), again
    profile = profiles.from_settings(info.settings)
    for view in views_of(profile.settings())():
        events = await store.log.read(info.id, after=Revision(0), limit=PAGE)
        for event in events:
            view.fold(event)
        fresh = next(other for other in views_of(profile.settings())() if other.name == view.name)
        fresh.load(view.dump())
        assert fresh.state_hash() == view.state_hash(), view.name


async def _folded_by_controllers(store):
    """Folds all events in every controller of the release."""
    info = await stores.find_history(store, NAME)
    profile = profiles.from_settings(info.settings)
    views = LiveViews(profile)
    working = reconcilers.controllers(
        profile, features_of(profile), compiler_of(profile), controllers.options_from(info.settings)
    )
    meter = HistoryMeter(Telemetry(), NAME, profile)
    for event in await store.log.read(info.id, after=Revision(0), limit=PAGE):
        views.fold(event)
        meter.fold(event, views.objects)
        for controller in working:
            controller.fold(event, views)
    list(HistoryMeter(Telemetry(), NAME, profile).prime(views.objects))


async def _served(rng, store):
    """Checks that a new service over the store serves every page, and the other history."""
    async with opening.open_histories(store, SETTINGS) as histories:
        await opening.default_history(histories, SETTINGS)
        meter = Telemetry()
        app = create_app(
            histories,
            schemas=schemas.load,
            meter=meter,
            limits=LIMITS,
            render_metrics=meter.render,
        )
        target = Target(None, app, histories)
        for sent in await _pages(rng, histories):
            answered = await target._ask(sent)
            target.judge.judge(sent, answered)
            if answered.code == 200 and "json" in answered.headers.get("content-type", ""):
                continue
            if sent.path in ("/readyz", "/redra/v1/histories") and answered.code != 200:
                raise Finding("the service is not well", sent, answered)


async def _pages(rng, histories):
    runtime = await histories.open(NAME)
    objects = runtime.views.objects
    root = f"/redra/v1/histories/{NAME}"
    ats = ["", f"at={rng.randint(0, runtime.views.revision)}"]
    found = [Sent(method="GET", path=path) for path in ("/redra/v1/histories", root, "/readyz")]
    found += [Sent(method="GET", path=f"{root}/views"), Sent(method="GET", path="/metrics")]
    found += [Sent(method="GET", path=f"{root}/events", query=at) for at in ats]
    found += [Sent(method="GET", path=f"{root}/decisions", query=at) for at in ats]
    views = json.loads(json.dumps([table for table, *_ in _tables()]))
    found += [
        Sent(method="GET", path=f"{root}/views/{view}", query=at) for view in views for at in ats
    ]
    keys = [key for place in objects.resources() for key in objects.keys(*place)]
    for key in rng.sample(keys, min(4, len(keys))):
        kind = rng.choice((key.resource, rng.choice(WHYS)))
        query = _query(kind=kind, name=key.name, namespace=key.namespace)
        found.append(Sent(method="GET", path=f"{root}/why", query=query))
    for name in ("p0", "p1", "s", "never"):
        help_ = rng.choice(("", "true"))
        query = _query(kind="pod", name=name, namespace="default", help=help_)
        found.append(Sent(method="GET", path=f"{root}/why", query=query))
    found.append(Sent(method="GET", path=f"{root}/blast", query="kind=devicetaintrule&name=bad"))
    kinds = [kind for kind in registry.kinds() if not kind.kind.endswith("Review")]
    for _ in range(LISTS_OF_A_CASE):
        group, resource = rng.choice(objects.resources() or [("", "pods")])
        kind = registry.find(group, resource) or rng.choice(kinds)
        found.append(_list(rng, kind))
    for key in rng.sample(keys, min(4, len(keys))):
        kind = registry.find(key.group, key.resource)
        if kind is not None and "/" not in key.name:
            found.append(_list(rng, kind, namespace=key.namespace, name=key.name))
    return [sent for sent in found if all(ord(letter) > 31 for letter in sent.path)]


def _tables():
    from app.api.redra.views import ViewTables

    return ViewTables(kept_max=1).tables()


def _list(rng, kind, namespace="", name=""):
    group, version = rng.choice(kind.group_versions)
    root = f"/apis/{group}/{version}" if group else f"/api/{version}"
    where = f"/namespaces/{namespace}" if namespace and kind.namespaced else ""
    end = f"/{name}" if name else ""
    query = "" if name else rng.choice(("", "", "limit=3", "watch=1"))
    return Sent(
        method="GET",
        path=f"/h/{NAME}{root}{where}/{kind.plural}{end}",
        query=query,
        headers={"accept": rng.choice(FORMS)},
    )


def _query(**parts):
    from urllib.parse import urlencode

    return urlencode({name: value for name, value in parts.items() if value}, errors="replace")
