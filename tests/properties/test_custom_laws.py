"""Laws of custom kinds: every accepted schema can be applied to any object."""

from hypothesis import example, given
from hypothesis import strategies as st

from app.adapters import schemas
from app.domain.objects.custom import checking, schema_types
from app.domain.objects.schema import definition_schemas, equality
from app.domain.objects.schema.structural import SchemaNode
from app.domain.objects.write import field_sets
from app.domain.values import json_tree

NAMES = st.sampled_from(["a", "b", "name", "spec", "status"])
JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-5, 5) | st.floats(-2, 2) | st.text("ab1:", max_size=4),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(NAMES, inner, max_size=3),
    max_leaves=12,
)


def extended(inner):
    """A schema that contains other schemas."""
    lists = st.fixed_dictionaries(
        {"type": st.just("array"), "items": inner},
        optional={
            "x-kubernetes-list-type": st.sampled_from(["atomic", "set", "map"]),
            "x-kubernetes-list-map-keys": st.just(["name"]),
            "maxItems": st.integers(0, 3),
        },
    )
    objects = st.fixed_dictionaries(
        {"type": st.just("object"), "properties": st.dictionaries(NAMES, inner, max_size=3)},
        optional={
            "required": st.lists(NAMES, max_size=2),
            "default": JSON,
            "nullable": st.booleans(),
            "x-kubernetes-preserve-unknown-fields": st.booleans(),
            "x-kubernetes-embedded-resource": st.booleans(),
            "x-kubernetes-map-type": st.sampled_from(["granular", "atomic"]),
            "anyOf": st.lists(inner, max_size=2),
            "oneOf": st.lists(inner, max_size=2),
            "not": inner,
        },
    )
    maps = st.fixed_dictionaries({"type": st.just("object"), "additionalProperties": inner})
    return lists | objects | maps


SCALARS = st.fixed_dictionaries(
    {"type": st.sampled_from(["string", "integer", "number", "boolean", "object"])},
    optional={
        "default": JSON,
        "enum": st.lists(JSON, max_size=3),
        "format": st.sampled_from(["date-time", "int32", "uuid", "byte", "cidr", "odd"]),
        "maximum": st.integers(-3, 3),
        "multipleOf": st.integers(0, 3),
        "minLength": st.integers(0, 2),
        "pattern": st.sampled_from(["^a+$", "(", "b"]),
        "nullable": st.booleans(),
    },
) | st.just({"x-kubernetes-int-or-string": True})
SCHEMAS = st.recursive(SCALARS, extended, max_leaves=8)
ROOTS = st.fixed_dictionaries(
    {"type": st.just("object"), "properties": st.dictionaries(NAMES, SCHEMAS, max_size=4)}
)
OBJECTS = st.dictionaries(NAMES, JSON, max_size=4)


@given(schema=ROOTS, tree=OBJECTS)
def test_pruning_and_filling_twice_is_as_good_as_once(schema, tree):
    assert list(schema_types.problems(schema, "")) == []
    once, _ = definition_schemas.pruned(schema, tree)
    definition_schemas.fill(schema, once)
    twice = json_tree.copy(once)
    definition_schemas.fill(schema, twice)
    assert twice == once
    kept, _ = definition_schemas.pruned(schema, definition_schemas.pruned(schema, tree)[0])
    assert kept == definition_schemas.pruned(schema, tree)[0]


@given(schema=ROOTS, tree=OBJECTS, old=OBJECTS)
def test_checking_never_fails_and_lets_the_unchanged_pass(schema, tree, old):
    checking.check(schema, tree)
    checking.check(schema, tree, old)
    same = [error for error in checking.check(schema, tree, tree) if "Required" not in str(error)]
    assert same == []


NUMBERED = {"type": "array", "items": {"type": "integer"}, "x-kubernetes-list-type": "set"}


@given(schema=ROOTS, tree=OBJECTS, other=OBJECTS)
@example({"type": "object", "properties": {"a": NUMBERED}}, {"a": None}, {"a": True})
@example({"type": "object", "properties": {"a": NUMBERED}}, {"a": "text"}, {"a": [1]})
@example({"type": "object", "properties": {"a": NUMBERED}}, {"a": {"b": 1}}, {"a": {"b": 2}})
def test_field_sets_of_custom_objects_can_always_be_made(schema, tree, other):
    node = SchemaNode(schemas.load("1.37"), definition_schemas.definition(schema))
    assert field_sets.changes(tree, tree, node) == ({}, {})
    field_sets.changes(tree, other, node)
    fields = field_sets.applied(tree, node)
    assert field_sets.load(field_sets.dump(fields)) == fields
    assert equality.semantic_equal(tree, tree, node)
    field_sets.without(field_sets.merged(other, tree, node), fields, {}, node)
