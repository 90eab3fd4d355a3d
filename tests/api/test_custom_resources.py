"""Custom kinds: defined, served, checked, shown and removed, each history with its own."""

import pytest

from tests import draws
from tests.api.custom import CRDS, SPEC, WIDGETS, definition, version, widget
from tests.api.serving import serving

TABLE = "application/json;as=Table;v=v1;g=meta.k8s.io"
AGGREGATED = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList"


def conditions(tree):
    return {found["type"]: found["status"] for found in tree["status"]["conditions"]}


async def test_definition_is_established_by_the_write_that_makes_it():
    async with serving() as server:
        made = await server.post(CRDS, definition())
        assert conditions(made) == {"NamesAccepted": "True", "Established": "True"}
        assert made["status"]["storedVersions"] == ["v1"]
        assert made["status"]["acceptedNames"] == {
            "plural": "widgets",
            "singular": "widget",
            "shortNames": ["wd"],
            "kind": "Widget",
            "listKind": "WidgetList",
            "categories": ["all"],
        }
        assert made["spec"]["conversion"] == {"strategy": "None"}


async def test_custom_kind_is_listed_by_both_forms_of_discovery():
    async with serving() as server:
        await server.post(CRDS, definition())
        groups = (await server.get("/apis", accept=AGGREGATED))["items"]
        group = next(found for found in groups if found["metadata"]["name"] == "example.com")
        resource = group["versions"][0]["resources"][0]
        assert resource["responseKind"]["kind"] == "Widget"
        assert (resource["shortNames"], resource["categories"]) == (["wd"], ["all"])
        assert {part["subresource"] for part in resource["subresources"]} == {"scale", "status"}
        legacy = await server.get("/apis/example.com/v1")
        assert [found["name"] for found in legacy["resources"]] == [
            "widgets",
            "widgets/scale",
            "widgets/status",
        ]
        assert "example.com" in [g["name"] for g in (await server.get("/apis"))["groups"]]


async def test_schema_is_published_without_strategic_merge():
    async with serving() as server:
        await server.post(CRDS, definition())
        index = (await server.get("/openapi/v3"))["paths"]
        place = index["apis/example.com/v1"]["serverRelativeURL"]
        document = await server.get(place)
        schema = document["components"]["schemas"]["com.example.v1.Widget"]
        assert schema["properties"]["spec"]["properties"]["size"]["minimum"] == 1
        assert schema["properties"]["kind"]["description"]
        patch = document["paths"]["/apis/example.com/v1/namespaces/{namespace}/widgets/{name}"][
            "patch"
        ]
        assert "application/strategic-merge-patch+json" not in patch["requestBody"]["content"]
        assert "fieldValidation" in [found["name"] for found in patch["parameters"]]


async def test_object_lives_through_all_verbs():
    async with serving() as server:
        await server.post(CRDS, definition())
        made = await server.post(WIDGETS, widget())
        assert (made["spec"], made["metadata"]["generation"]) == ({"size": 3, "color": "red"}, 1)
        place = f"{WIDGETS}/w"
        assert await server.get(place) == made
        made["spec"]["size"] = 4
        changed = await server.put(place, made)
        assert changed["metadata"]["generation"] == 2
        merged = await server.patch(place, {"spec": {"color": "green"}})
        assert merged["spec"] == {"size": 4, "color": "green"}
        operations = [{"op": "replace", "path": "/spec/size", "value": 5}]
        assert (await server.patch(place, operations, kind="json-patch+json"))["spec"]["size"] == 5
        listed = await server.get("/apis/example.com/v1/widgets")
        assert (listed["kind"], len(listed["items"])) == ("WidgetList", 1)
        gone = await server.delete(place)
        assert (gone["status"], gone["details"]["kind"]) == ("Success", "widgets")
        await server.get(place, 404)


@pytest.mark.parametrize("empty", [{"tags": []}, {"labels": {}}, {"free": {"a": []}}], ids=str)
async def test_an_empty_part_that_goes_is_a_change_of_the_spec(empty):
    # Custom objects are stored as they are written; nothing is left out of them.
    async with serving() as server:
        await server.post(CRDS, definition())
        made = await server.post(WIDGETS, widget(**empty))
        name = next(iter(empty))
        assert made["spec"][name] == empty[name]
        same = await server.put(f"{WIDGETS}/w", made)
        assert same["metadata"]["resourceVersion"] == made["metadata"]["resourceVersion"]
        del made["spec"][name]
        changed = await server.put(f"{WIDGETS}/w", made)
        assert name not in changed["spec"]
        assert changed["metadata"]["generation"] == 2


async def test_status_is_written_by_its_subresource_only():
    async with serving() as server:
        await server.post(CRDS, definition())
        made = await server.post(WIDGETS, widget() | {"status": {"phase": "Early"}})
        assert "status" not in made
        place = f"{WIDGETS}/w"
        status = {"status": {"phase": "Ready", "replicas": 2}, "spec": {"size": 9}}
        told = await server.patch(f"{place}/status", status)
        assert (told["status"]["phase"], told["spec"]["size"]) == ("Ready", 3)
        assert told["metadata"]["generation"] == 1
        kept = await server.patch(place, {"status": {"phase": "Lost"}})
        assert kept["status"]["phase"] == "Ready"


async def test_scale_reads_and_writes_where_the_definition_says():
    async with serving() as server:
        await server.post(CRDS, definition())
        await server.post(WIDGETS, widget(replicas=2))
        await server.patch(f"{WIDGETS}/w/status", {"status": {"replicas": 1, "selector": "a=b"}})
        scale = await server.get(f"{WIDGETS}/w/scale")
        assert (scale["spec"], scale["status"]) == (
            {"replicas": 2},
            {"replicas": 1, "selector": "a=b"},
        )
        await server.patch(f"{WIDGETS}/w/scale", {"spec": {"replicas": 7}})
        assert (await server.get(f"{WIDGETS}/w"))["spec"]["replicas"] == 7


@pytest.mark.parametrize(
    ("spec", "text"),
    [
        (
            {"size": "big"},
            'spec.size: Invalid value: "string": spec.size in body must be of type integer: '
            '"string"',
        ),
        (
            {"size": 0},
            "spec.size: Invalid value: 0: spec.size in body should be greater than or equal to 1",
        ),
        (
            {"size": 11},
            "spec.size: Invalid value: 11: spec.size in body should be less than or equal to 10",
        ),
        (
            {"color": "blue"},
            'spec.color: Unsupported value: "blue": supported values: "red", "green"',
        ),
        (
            {"code": "A"},
            "spec.code: Invalid value: \"A\": spec.code in body should match '^[a-z]+$'",
        ),
        ({"code": "abcdef"}, "spec.code: Too long: may not be more than 5 bytes"),
        (
            {"port": True},
            'spec.port: Invalid value: "boolean": spec.port in body must be of type '
            'integer,string: "boolean"',
        ),
        ({"parts": [{"count": 1}]}, "spec.parts[0].name: Required value"),
        (
            {"parts": [{"name": "a"}, {"name": "a"}]},
            'spec.parts[1]: Duplicate value: {"name":"a"}',
        ),
        ({"tags": ["a", "a"]}, 'spec.tags[1]: Duplicate value: "a"'),
        (
            {"code": None},
            'spec.code: Invalid value: "null": spec.code in body must be of type string: "null"',
        ),
        (
            {"template": {"apiVersion": "v1"}},
            "spec.template.kind: Required value: must not be empty",
        ),
    ],
)  # fmt: skip
async def test_object_that_breaks_its_schema_is_refused_in_the_usual_words(spec, text):
    async with serving() as server:
        await server.post(CRDS, definition())
        refused = await server.post(WIDGETS, widget(**spec), 422)
        assert refused["message"] == f'Widget.example.com "w" is invalid: {text}'
        assert refused["details"]["causes"][0]["field"] == text.partition(":")[0]


async def test_missing_required_field_is_refused():
    async with serving() as server:
        await server.post(CRDS, definition())
        tree = widget()
        del tree["spec"]["size"]
        refused = await server.post(WIDGETS, tree, 422)
        assert refused["message"].endswith("spec.size: Required value")


async def test_unknown_fields_are_dropped_but_for_what_is_to_be_kept():
    async with serving() as server:
        await server.post(CRDS, definition())
        inner = {"any": {"thing": [1, None]}}
        template = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "p"}, "spec": {"a": 1}}
        tree = widget(free=inner, template=template, nonsense=1, port="http")
        answer = await server.raw("POST", WIDGETS, tree)
        assert 'unknown field \\"spec.nonsense\\"' in answer.headers["warning"]
        made = answer.json()["spec"]
        assert (made["free"], made["template"], made["port"]) == (inner, template, "http")
        assert "nonsense" not in made
        refused = await server.post(
            f"{WIDGETS}?fieldValidation=Strict", widget("x", nonsense=1), 400
        )
        assert refused["message"] == (
            'Widget in version "v1" cannot be handled as a Widget: strict decoding error: '
            'unknown field "spec.nonsense"'
        )


async def test_old_mistakes_are_let_pass_while_they_stay_as_they_are():
    loose = version(
        spec={**SPEC, "properties": {**SPEC["properties"], "size": {"type": "integer"}}}
    )
    async with serving() as server:
        await server.post(CRDS, definition(loose))
        await server.post(WIDGETS, widget(size=99))
        held = await server.get(f"{CRDS}/widgets.example.com")
        held["spec"]["versions"] = [version()]
        await server.put(f"{CRDS}/widgets.example.com", held)
        await server.patch(f"{WIDGETS}/w", {"metadata": {"labels": {"a": "b"}}})
        await server.patch(f"{WIDGETS}/w", {"spec": {"size": 98}}, 422)


async def test_table_has_the_declared_columns():
    async with serving() as server:
        await server.post(CRDS, definition())
        await server.post(WIDGETS, widget())
        table = await server.get(WIDGETS, accept=TABLE)
        assert [column["name"] for column in table["columnDefinitions"]] == [
            "Name", "Size", "Phase", "Color", "Age",
        ]  # fmt: skip
        assert [column["priority"] for column in table["columnDefinitions"]] == [0, 0, 0, 1, 0]
        name, size, phase, color, age = table["rows"][0]["cells"]
        assert (name, size, phase, color) == ("w", 3, None, "red")
        assert age.endswith("s")


async def test_table_without_columns_shows_the_age():
    async with serving() as server:
        await server.post(CRDS, definition(version(additionalPrinterColumns=[])))
        table = await server.get(WIDGETS, accept=TABLE)
        assert [(c["name"], c["type"]) for c in table["columnDefinitions"]] == [
            ("Name", "string"),
            ("Age", "date"),
        ]


async def test_other_patches_and_protobuf_are_unsupported_media():
    async with serving() as server:
        await server.post(CRDS, definition())
        await server.post(WIDGETS, widget())
        refused = await server.patch(f"{WIDGETS}/w", {}, 415, kind="strategic-merge-patch+json")
        assert refused["reason"] == "UnsupportedMediaType"
        assert refused["message"].endswith(
            "application/json-patch+json, application/merge-patch+json, "
            "application/apply-patch+yaml"
        )
        answer = await server.raw(
            "POST", WIDGETS, b"k8s\x00", content_type="application/vnd.kubernetes.protobuf"
        )
        assert answer.status_code == 415


async def test_apply_merges_by_the_list_types_of_the_schema():
    async with serving() as server:
        await server.post(CRDS, definition())
        place = f"{WIDGETS}/w?fieldManager="
        one = widget(parts=[{"name": "a", "count": 1}], tags=["x"], free={"q": {"r": 1}})
        made = await server.patch(f"{place}one", one, 201, kind="apply-patch+yaml")
        assert made["spec"]["color"] == "red"
        owned = made["metadata"]["managedFields"][0]["fieldsV1"]["f:spec"]
        assert 'k:{"name":"a"}' in owned["f:parts"]
        assert owned["f:free"] == {"f:q": {".": {}, "f:r": {}}} or "f:q" in owned["f:free"]
        two = widget(parts=[{"name": "b", "count": 2}], tags=["y"])
        both = await server.patch(f"{place}two", two, kind="apply-patch+yaml")
        assert [part["name"] for part in both["spec"]["parts"]] == ["a", "b"]
        assert both["spec"]["tags"] == ["x", "y"]
        refused = await server.patch(f"{place}two", widget(size=5), 409, kind="apply-patch+yaml")
        assert refused["message"] == (
            'Apply failed with 1 conflict: conflict with "one": .spec.size'
        )


async def test_watch_tells_of_custom_objects():
    async with serving() as server:
        await server.post(CRDS, definition())
        async with server.watch(
            f"{WIDGETS}?watch=true&allowWatchBookmarks=true"
            "&sendInitialEvents=true&resourceVersionMatch=NotOlderThan"
        ) as watch:
            assert (await watch.line())["type"] == "BOOKMARK"
            await server.post(WIDGETS, widget())
            line = await watch.line()
            assert (line["type"], line["object"]["kind"]) == ("ADDED", "Widget")


async def test_versions_differ_only_in_their_api_version():
    async with serving() as server:
        await server.post(CRDS, definition(version(), version("v1beta1", storage=False)))
        await server.post(WIDGETS, widget())
        beta = await server.get(WIDGETS.replace("v1", "v1beta1") + "/w")
        assert (beta["apiVersion"], beta["spec"]["size"]) == ("example.com/v1beta1", 3)
        beta["spec"]["size"] = 6
        await server.put(WIDGETS.replace("v1", "v1beta1") + "/w", beta)
        stored = await server.get(f"{WIDGETS}/w")
        assert (stored["apiVersion"], stored["spec"]["size"]) == ("example.com/v1", 6)


async def test_other_versions_show_fields_that_only_the_stored_one_knows():
    narrow = {"type": "object", "properties": {"size": {"type": "integer"}}}
    beta = version("v1beta1", storage=False, spec=narrow)
    async with serving() as server:
        await server.post(CRDS, definition(version(), beta))
        await server.post(WIDGETS, widget(color="green"))
        shown = await server.get(WIDGETS.replace("v1", "v1beta1") + "/w")
        assert shown["spec"] == {"size": 3, "color": "green"}


async def test_moved_storage_version_shows_old_objects_in_the_version_asked_for():
    first = definition(version("v1alpha1"), version("v1", storage=False))
    async with serving() as server:
        await server.post(CRDS, first)
        await server.post(WIDGETS, widget())
        held = await server.get(f"{CRDS}/widgets.example.com")
        held["spec"]["versions"] = [version("v1alpha1", storage=False), version("v1")]
        moved = await server.put(f"{CRDS}/widgets.example.com", held)
        assert moved["status"]["storedVersions"] == ["v1alpha1", "v1"]
        assert (await server.get(f"{WIDGETS}/w"))["apiVersion"] == "example.com/v1"
        assert (await server.get(WIDGETS))["items"][0]["apiVersion"] == "example.com/v1"
        moved["spec"]["versions"] = [version("v1")]
        refused = await server.put(f"{CRDS}/widgets.example.com", moved, 422)
        assert "status.storedVersions[0]" in refused["message"]


async def test_new_defaults_show_on_old_objects():
    async with serving() as server:
        await server.post(CRDS, definition())
        await server.post(WIDGETS, widget())
        held = await server.get(f"{CRDS}/widgets.example.com")
        properties = held["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["properties"]
        properties["spec"]["properties"]["replicas"]["default"] = 5
        await server.put(f"{CRDS}/widgets.example.com", held)
        assert (await server.get(f"{WIDGETS}/w"))["spec"]["replicas"] == 5


async def test_unserved_and_deprecated_versions():
    old = version("v1beta1", storage=False, deprecated=True)
    hidden = version("v1alpha1", storage=False, served=False)
    async with serving() as server:
        await server.post(CRDS, definition(version(), old, hidden))
        answer = await server.raw("GET", WIDGETS.replace("v1", "v1beta1"))
        assert answer.headers["warning"] == (
            '299 - "example.com/v1beta1 Widget is deprecated; use example.com/v1 Widget"'
        )
        await server.get(WIDGETS.replace("v1", "v1alpha1"), 404)


async def test_conversion_webhook_is_kept_and_said_not_to_be_called():
    tree = definition(version(), version("v2", storage=False))
    config = {"url": "https://converter.example.com/convert"}
    webhook = {"clientConfig": config, "conversionReviewVersions": ["v1"]}
    tree["spec"]["conversion"] = {"strategy": "Webhook", "webhook": webhook}
    async with serving() as server:
        answer = await server.raw("POST", CRDS, tree)
        assert answer.status_code == 201
        assert answer.headers["warning"] == (
            '299 - "conversion webhooks are not called: versions differ in apiVersion alone"'
        )
        assert answer.json()["spec"]["conversion"] == tree["spec"]["conversion"]
        await server.post(WIDGETS, widget())
        shown = await server.get(f"{WIDGETS.replace('v1', 'v2')}/w")
        assert shown["apiVersion"] == "example.com/v2"
        wrong = {"spec": {"conversion": {"webhook": {"clientConfig": None}}}}
        told = await server.patch(f"{CRDS}/widgets.example.com", wrong, code=422)
        assert "spec.conversion.webhook.clientConfig: Required value" in told["message"]


async def test_taken_names_are_told_and_not_served():
    async with serving() as server:
        await server.post(CRDS, definition())
        other = await server.post(CRDS, definition(kind="Widget", plural="widgets2"))
        assert conditions(other) == {"NamesAccepted": "False", "Established": "False"}
        told = {c["type"]: (c["reason"], c["message"]) for c in other["status"]["conditions"]}
        assert told["NamesAccepted"] == (
            "ListKindConflict",
            '"WidgetList" is already in use',
        )
        assert told["Established"] == ("NotAccepted", "not all names are accepted")
        await server.get("/apis/example.com/v1/widgets2", 404)


@pytest.mark.parametrize(
    ("change", "text"),
    [
        (
            {"metadata": {"name": "other.example.com"}},
            'metadata.name: Invalid value: "other.example.com": must be '
            'spec.names.plural+"."+spec.group',
        ),
        ({"spec": {"scope": "World"}}, 'spec.scope: Unsupported value: "World"'),
        ({"spec": {"versions": []}}, "spec.versions: Required value"),
    ],
)
async def test_definition_that_is_wrong_is_refused(change, text):
    tree = definition()
    for part, fields in change.items():
        tree[part] |= fields
    async with serving() as server:
        refused = await server.post(CRDS, tree, 422)
        assert text in refused["message"]


async def test_each_moment_has_the_kinds_of_then():
    async with serving() as server:
        before = (await server.get(CRDS))["metadata"]["resourceVersion"]
        await server.post(CRDS, definition())
        made = await server.post(WIDGETS, widget())
        revision = made["metadata"]["resourceVersion"]
        assert "example.com" not in str(await server.get(f"/h/default@{before}/apis"))
        await server.get(f"/h/default@{before}{WIDGETS}", 404)
        await server.delete(f"{WIDGETS}/w")
        assert (await server.get(f"/h/default@{revision}{WIDGETS}/w"))["spec"]["size"] == 3


RULED = {
    "type": "object",
    "x-kubernetes-validations": [
        {"rule": "self.least <= self.most", "message": "least may not exceed most"},
    ],
    "properties": {
        "least": {"type": "integer"},
        "most": {"type": "integer"},
        "share": {
            "type": "number",
            "x-kubernetes-validations": [{"rule": "self > 0.5 && self * 2.0 <= 2.0"}],
        },
        "kept": {
            "type": "string",
            "x-kubernetes-validations": [
                {"rule": "self == oldSelf", "message": "Value is immutable"}
            ],
        },
        "names": {
            "type": "array",
            "items": {"type": "string"},
            "x-kubernetes-validations": [
                {
                    "rule": "self.all(n, n.startsWith('a')) && size(self) < 3",
                    "messageExpression": "'bad names: ' + self[0]",
                }
            ],
        },
        "open": {
            "type": "object",
            "properties": {"x": {"type": "integer"}, "y-z": {"type": "integer"}},
            "x-kubernetes-validations": [
                {
                    "rule": "!has(self.x) || self.y__dash__z > 1",
                    "fieldPath": ".x",
                    "reason": "FieldValueForbidden",
                }
            ],
        },
    },
}


def ruled(**spec):
    tree = widget()
    tree["spec"] = {"least": 1, "most": 2, **spec}
    return tree


@pytest.mark.parametrize(
    ("spec", "text"),
    [
        ({"least": 3}, 'spec: Invalid value: "object": least may not exceed most'),
        (
            {"share": 0.25},
            'spec.share: Invalid value: "number": failed rule: self > 0.5 && self * 2.0 <= 2.0',
        ),
        ({"names": ["b"]}, 'spec.names: Invalid value: "array": bad names: b'),
        (
            {"open": {"x": 1, "y-z": 1}},
            "spec.open.x: Forbidden: failed rule: !has(self.x) || self.y__dash__z > 1",
        ),
        (
            {"open": {"x": 1}},
            "spec.open.x: Forbidden: no such key: y__dash__z evaluating rule: failed rule: "
            "!has(self.x) || self.y__dash__z > 1",
        ),
    ],
)
async def test_object_that_breaks_a_rule_is_refused(spec, text):
    async with serving() as server:
        await server.post(CRDS, definition(version(spec=RULED)))
        refused = await server.post(WIDGETS, ruled(**spec), 422)
        assert refused["message"] == f'Widget.example.com "w" is invalid: {text}'


async def test_object_that_keeps_all_rules_is_taken():
    async with serving() as server:
        await server.post(CRDS, definition(version(spec=RULED)))
        spec = {"share": 1, "kept": "x", "names": ["a", "ab"], "open": {"x": 1, "y-z": 2}}
        await server.post(WIDGETS, ruled(**spec))


async def test_rules_about_the_value_before_hold_for_changes_only():
    async with serving() as server:
        await server.post(CRDS, definition(version(spec=RULED)))
        await server.post(WIDGETS, ruled(kept="x"))
        await server.patch(f"{WIDGETS}/w", {"spec": {"most": 5}})
        refused = await server.patch(f"{WIDGETS}/w", {"spec": {"kept": "y"}}, 422)
        assert refused["message"].endswith('spec.kept: Invalid value: "string": Value is immutable')


async def test_rule_that_cannot_be_compiled_is_refused_with_the_definition():
    spec = {
        "type": "object",
        "x-kubernetes-validations": [{"rule": "self.a +"}, {"rule": "no > 1"}],
    }
    async with serving() as server:
        refused = await server.post(CRDS, definition(version(spec=spec)), 422)
        causes = {c["field"]: c["message"] for c in refused["details"]["causes"]}
        place = "spec.versions[0].schema.openAPIV3Schema.properties[spec].x-kubernetes-validations"
        assert "compilation failed" in causes[f"{place}[0].rule"]
        assert "undeclared reference to 'no'" in causes[f"{place}[1].rule"]


def _text_of(pattern):
    return {"type": "string", "pattern": pattern}


@pytest.mark.parametrize(
    ("schema", "path", "problem"),
    [
        (_text_of(r"^\\C[\S]*$"), "", ""),
        (_text_of("+"), "", "missing argument to repetition operator: `+`"),
        (_text_of(r"^\C$"), "", r"invalid escape sequence: `\C`"),
        (_text_of("(?=a)"), "", "invalid or unsupported Perl syntax: `(?=`"),
        ({"type": "array", "items": _text_of("(")}, ".items", "missing closing ): `(`"),
        (
            {"type": "object", "additionalProperties": _text_of("[a")},
            ".additionalProperties",
            "missing closing ]: `[a`",
        ),
        (
            {"type": "object", "not": {"properties": {"b": {"anyOf": [{}, {"pattern": "*"}]}}}},
            ".not.properties[b].anyOf[1]",
            "missing argument to repetition operator: `*`",
        ),
    ],
    ids=["valid", "operator", "byte", "look-ahead", "items", "more-properties", "alternative"],
)
async def test_pattern_is_an_expression_of_go(schema, path, problem):
    tree = definition(version(spec={"type": "object", "properties": {"a": schema}}))
    async with serving() as server:
        answer = await server.post(CRDS, tree, 422 if problem else 201)
        causes = answer["details"]["causes"] if problem else []
        where = f"spec.versions[0].schema.openAPIV3Schema.properties[spec].properties[a]{path}"
        cause = f"must be a valid regular expression, but isn't: error parsing regexp: {problem}"
        assert [each["field"] for each in causes] == [f"{where}.pattern"] * bool(problem)
        assert all(each["message"].endswith(f": {cause}") for each in causes)


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("required", 5),
        ("required", [1]),
        ("properties", []),
        ("properties", {"a": 1}),
        ("items", [{"type": "string"}]),
        ("additionalProperties", "x"),
        ("allOf", {"type": "string"}),
        ("anyOf", ["x"]),
        ("enum", "x"),
        ("minimum", "1"),
        ("maxLength", 1.5),
        ("pattern", 1),
        ("type", ["string"]),
        ("nullable", "yes"),
        ("not", 1),
        ("x-kubernetes-validations", [1]),
        ("x-kubernetes-list-map-keys", "name"),
    ],
)
async def test_schema_that_is_no_schema_is_refused(key, value):
    tree = definition(version(spec={"type": "object", key: value}))
    async with serving() as server:
        refused = await server.post(CRDS, tree, 422)
        place = f"spec.versions[0].schema.openAPIV3Schema.properties[spec].{key}"
        assert refused["details"]["causes"][0]["field"].startswith(place)
        assert "must be of type" in refused["message"]


async def test_schema_that_is_nested_too_deep_is_refused():
    schema = {"type": "string"}
    for _ in range(25):
        schema = {"type": "object", "properties": {"a": schema}}
    deep = {"type": "object", "properties": {"a": schema, "b": {"not": schema}}}
    for _ in range(20):
        deep = {"type": "object", "additionalProperties": deep}
    async with serving() as server:
        refused = await server.post(CRDS, definition(version(spec=deep)), 422)
        assert "nested more than" in refused["message"]


async def test_create_is_refused_while_the_definition_ends():
    async with serving() as server:
        await server.post(CRDS, definition())
        await server.post(WIDGETS, widget())
        ending = await server.delete(f"{CRDS}/widgets.example.com")
        assert ending["metadata"]["finalizers"] == ["customresourcecleanup.apiextensions.k8s.io"]
        assert conditions(ending)["Terminating"] == "True"
        refused = await server.post(WIDGETS, widget("x"), 405)
        assert refused["message"] == (
            "create not allowed while custom resource definition is terminating"
        )


@draws.in_turn("rows of refusals")
@pytest.mark.parametrize("value", ["x", 5, [], [1], True, {"labels": "x"}, {"name": 5}])
@pytest.mark.parametrize("part", ["", "/status", "/scale"])
@pytest.mark.parametrize(
    "kind", ["merge-patch+json", "json-patch+json", "apply-patch+yaml?fieldManager=m"]
)
async def test_metadata_of_another_type_is_refused(kind, part, value):
    kind, _, query = kind.partition("?")
    body = {"apiVersion": "example.com/v1", "kind": "Widget", "metadata": value}
    if kind == "json-patch+json":
        body = [{"op": "replace", "path": "/metadata", "value": value}]
    async with serving() as server:
        await server.post(CRDS, definition())
        before = await server.post(WIDGETS, widget())
        path = f"{WIDGETS}/w{part}?{query}"
        answer = await server.raw("PATCH", path, body, content_type=f"application/{kind}")
        assert answer.status_code in (400, 415, 422), answer.text
        assert await server.get(f"{WIDGETS}/w") == before


async def test_scale_of_wrong_types_is_refused():
    async with serving() as server:
        await server.post(CRDS, definition())
        await server.post(WIDGETS, widget())
        for body in (
            {"metadata": {"resourceVersion": 5}},
            {"spec": "x"},
            {"spec": {"replicas": ""}},
        ):
            refused = await server.patch(f"{WIDGETS}/w/scale", body, 400)
            assert "cannot be handled as a Widget" in refused["message"]


async def test_patch_of_the_metadata_to_null_keeps_it():
    async with serving() as server:
        await server.post(CRDS, definition())
        before = await server.post(WIDGETS, widget())
        body = [{"op": "replace", "path": "/metadata", "value": None}]
        await server.patch(f"{WIDGETS}/w", body, kind="json-patch+json")
        after = await server.get(f"{WIDGETS}/w")
        assert after["metadata"]["uid"] == before["metadata"]["uid"]
