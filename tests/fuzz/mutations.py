"""Almost valid trees: a few changes of a valid object, drawn from a seeded source."""

import copy

DIGITS = "9" * 400
ODD = [
    None, True, False, 0, -1, 1, 3.5, -0.0, 1e308, 2**31, 2**63 - 1, 2**63, -(2**63) - 1, 2**70,
    "", " ", "\x00", "a\x00b", "\n", "ä", "\U0001f600", "\u202e", "a" * 300, "a" * 70_000, "../..",
    "x/y", "%2e%2e", "{{.}}", "true", "null", "0", "-1", "1.5", "1e9", DIGITS, "NaN", "*", "$(X)",
    [], {}, [[]], [None], [{}], [1, "a"], {"": ""}, {"a": None}, {"$patch": "delete"},
    {"$patch": "replace"}, {"$retainKeys": ["a"]}, {"$deleteFromPrimitiveList/a": ["b"]},
    {"$setElementOrder/a": [{}]}, {"a\x00": 1}, {"a" * 300: "b"},
]  # fmt: skip
QUANTITIES = [
    "1e1000000000", "999999999999999999999Ei", "0.000000000000001n", "-5", "1.", ".5", "1e", "Ki",
    "0", "1E", "1e3", "+1", DIGITS, f"0.{DIGITS}", f"1e-{DIGITS}", 5, 1.5, 1e300,
    "9223372036854775808",
]  # fmt: skip
TIMES = [
    "9999-12-31T23:59:59Z", "0001-01-01T00:00:00Z", "2026-02-30T00:00:00Z", "2026-01-01",
    "2026-01-01T00:00:00+23:59", "2026-01-01T00:00:60Z", "0000-00-00T00:00:00Z", "now", 0,
    "2026-01-01T00:00:00.999999999999Z", "-2026-01-01T00:00:00Z", "10000-01-01T00:00:00Z",
]  # fmt: skip
EXPRESSIONS = [
    "", "true", "1", "device", "device.driver", "device.attributes['d'].x", "a" * 11_000, "((((",
    "[" * 500 + "]" * 500, "-" * 300 + "1", "!" * 300 + "true", "'" + "\\x" * 10, "b'\\xff'",
    "device.attributes.all(a, device.attributes.all(b, device.attributes.all(c, true)))",
    "'a'.matches('(a+)+$')", "'a'.matches('[')", "9223372036854775808 > 0", "1/0 == 1",
    "1.0/0.0 > 1.0",
    "quantity('1e999999999') == quantity('1')", "semver('1.2') == semver('1')", "device.x.y.z",
    "timestamp('x') == timestamp('y')", "duration('1000000000000h') > duration('1s')", "\x00",
    "[1,2,3].map(x, [1,2,3].map(y, x*y)).size() > 0", "has(device)", "cel.bind(x, 1, x) == 1",
    "device.capacity['d'].m.compareTo(quantity('1')) > 0", "?:", "a.b(c).d[e]{f: g}", "/*",
    "object.metadata.name == 'x'", "variables.v == params.data.x", "request", "object.a.b",
    "string(b'\\xff\\xfe') == ''", "int(1e300) == 1", "uint(-1) == 1u", "'' in [null]",
]  # fmt: skip
NAMES = ["X", "-a", "a.", "a/b", "ä", "a" * 254, "a" * 64, "..", ".", "%", "x y", "\x00", 5, {}, []]
METADATA = {
    "name": NAMES,
    "generateName": [*NAMES, "g-", "a" * 300],
    "namespace": [*NAMES, "default", "kube-system", "nowhere"],
    "uid": ["u", "", 5, "a" * 500],
    "resourceVersion": ["", "0", "1", "-1", DIGITS, "x", 5, "٣"],
    "generation": [-1, 2**63, "1", 5],
    "creationTimestamp": TIMES,
    "deletionTimestamp": TIMES,
    "deletionGracePeriodSeconds": [-1, 2**70, 0, "1"],
    "finalizers": [["a"], ["a/b"], ["a/b"] * 50, [""], "a", ["foregroundDeletion", "orphan"], [5]],
    "labels": [{"a": "b" * 64}, {"a/b/c": "d"}, {"": ""}, {"a": 5}, {"-": "b"}, {"a": "b c"}, []],
    "annotations": [{"a": "b" * 300_000}, {"a": 5}, {"A" * 300: "b"}, {"a": "\x00"}, "x"],
    "ownerReferences": [
        [{}], [{"apiVersion": "v1", "kind": "Pod", "name": "p", "uid": "u"}] * 2,
        [{"apiVersion": "v1", "kind": "Pod", "name": "p", "uid": "u", "controller": True}] * 2,
        [{"apiVersion": "/", "kind": "", "name": 5, "uid": None}], [None], "x",
    ],
    "managedFields": [
        [{}], [{"manager": "m", "operation": "Apply", "apiVersion": "v1", "fieldsType": "FieldsV1",
                "fieldsV1": {"f:data": {"f:a": {}}, "k:{": {}, "v:": {}, ".": 5, "x": []}}],
        [{"manager": "m", "operation": "Update", "apiVersion": "nonsense/v9", "time": "x"}],
        [{"manager": "a" * 300, "operation": "Other", "fieldsV1": 5}], [5], "x", [None],
    ],
    "selfLink": ["/x", 5],
}  # fmt: skip


def mutated(rng, tree):
    """A changed copy of a tree."""
    found = copy.deepcopy(tree)
    for _ in range(rng.choice((1, 1, 1, 2, 2, 3, 4))):
        found = rng.choices(
            _CHANGES,
            weights=(6, 4, 4, 3, 3, 2, 2, 2, 1),
        )[0](rng, found)
    return found


def odd(rng):
    """A value that is rarely valid."""
    return copy.deepcopy(rng.choice(ODD))


def places(tree, path=()):
    """Every place below the root."""
    found = []
    stack = [(tree, path)]
    while stack:
        value, at = stack.pop()
        if at:
            found.append(at)
        if isinstance(value, dict):
            stack.extend((item, (*at, key)) for key, item in value.items())
        elif isinstance(value, list):
            stack.extend((item, (*at, index)) for index, item in enumerate(value[:50]))
    return sorted(found, key=repr)


def at(tree, path):
    """The value at a place."""
    for step in path:
        tree = tree[step]
    return tree


def _pick(rng, tree):
    found = places(tree)
    return rng.choice(found) if found else None


def _put(tree, path, value):
    at(tree, path[:-1])[path[-1]] = value
    return tree


def _replaced(rng, tree):
    path = _pick(rng, tree)
    return odd(rng) if path is None or rng.random() < 0.01 else _put(tree, path, odd(rng))


def _removed(rng, tree):
    path = _pick(rng, tree)
    if path is not None:
        del at(tree, path[:-1])[path[-1]]
    return tree


def _repeated(rng, tree):
    """A list that repeats one item many times."""
    lists = [path for path in places(tree) if isinstance(at(tree, path), list) and at(tree, path)]
    if lists:
        items = at(tree, rng.choice(lists))
        item = rng.choice(items)
        items.extend(copy.deepcopy(item) for _ in range(rng.choice((1, 1, 2, 17, 40, 130, 600))))
    return tree


def _renamed(rng, tree):
    path = _pick(rng, tree)
    if path is None or not isinstance(path[-1], str):
        return tree
    holder = at(tree, path[:-1])
    name = rng.choice(("", "x" * 200, "a\x00", "$patch", "é", ".", path[-1].upper()))
    holder[name] = holder.pop(path[-1])
    return tree


def _swapped(rng, tree):
    one, two = _pick(rng, tree), _pick(rng, tree)
    if one is None or two is None:
        return tree
    value = copy.deepcopy(at(tree, two))
    return _put(tree, one, value)


def _nested(rng, tree):
    path = _pick(rng, tree)
    value = odd(rng)
    for _ in range(rng.choice((5, 60, 99, 101, 150))):
        value = {"a": value} if rng.random() < 0.5 else [value]
    return value if path is None else _put(tree, path, value)


def _metadata(rng, tree):
    if not isinstance(tree, dict):
        return tree
    if rng.random() < 0.15:
        tree[rng.choice(("apiVersion", "kind"))] = rng.choice(
            ("v1", "v9", "resource.k8s.io/v1", "resource.k8s.io/v1alpha2", "a/b/c", "", "/", "Pod",
             "List", "Status", "DeleteOptions", 5, None, {}, "x" * 5000)
        )  # fmt: skip
        return tree
    metadata = tree.setdefault("metadata", {})
    if isinstance(metadata, dict):
        name = rng.choice(sorted(METADATA))
        metadata[name] = copy.deepcopy(rng.choice(METADATA[name]))
    return tree


def _typed(rng, tree):
    """A value of the right type with wrong content, if the field's name implies the type."""
    wanted = [
        (path, values)
        for path in places(tree)
        if (values := _values_of(path, at(tree, path))) is not None
    ]
    if not wanted:
        return _replaced(rng, tree)
    path, values = rng.choice(wanted)
    return _put(tree, path, rng.choice(values))


def _values_of(path, value):
    name = str(path[-1]).lower()
    if name.endswith("expression"):
        return EXPRESSIONS
    if isinstance(value, dict | list):
        return None
    if name.endswith(("time", "timestamp", "timeadded")):
        return TIMES
    if name in ("memory", "cpu", "value", "min", "max", "step", "default", "storage", "pods"):
        return QUANTITIES
    if name == "name":
        return NAMES
    return None


def _added(rng, tree):
    path = _pick(rng, tree)
    holder = tree if path is None else at(tree, path)
    if isinstance(holder, dict):
        name = rng.choice(("unknown", "status", "spec", "items", "metadata", "<<", "data"))
        holder[name] = odd(rng)
    elif isinstance(holder, list):
        holder.insert(rng.randint(0, len(holder)), odd(rng))
    return tree


_CHANGES = (
    _replaced, _metadata, _typed, _removed, _renamed, _repeated, _swapped, _added, _nested
)  # fmt: skip
