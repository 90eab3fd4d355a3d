"""Specs that were found flawless are not checked again; all others are."""

from app.domain.objects.expressions import ExpressionProblem
from app.domain.objects.profile import Profile
from app.domain.objects.rules import FLAWLESS_MAX
from app.domain.objects.validation.context import Context
from app.domain.objects.validation.devices import claims
from app.domain.values import well_known


def claim(expression="true", **request):
    exactly = {
        "deviceClassName": "gpu",
        "allocationMode": "ExactCount",
        "count": 1,
        "selectors": [{"cel": {"expression": expression}}],
        **request,
    }
    return {"spec": {"devices": {"requests": [{"name": "a", "exactly": exactly}]}}}


def errors(tree, context):
    return [str(error.path) for error in claims.create(tree, context)]


def test_spec_is_checked_once_for_each_check_of_expressions():
    asked = []

    def accept(text):
        asked.append(text)
        return

    def refuse(text):
        return ExpressionProblem(detail="no")

    trusting, strict = (Context(profile=Profile(), check_expression=f) for f in (accept, refuse))
    assert errors(claim(), trusting) == errors(claim(), trusting) == []
    assert asked == ["true"]
    assert errors(claim(), strict) != []


def test_broken_spec_is_refused_each_time():
    context = Context(profile=Profile())
    assert errors(claim(count=-1), context) == errors(claim(count=-1), context) != []


def test_flawless_spec_that_asks_for_admin_access_depends_on_the_namespace():
    tree = claim(adminAccess=True)
    labelled = Context(profile=Profile(), namespace_labels={well_known.ADMIN_ACCESS: "true"})
    assert errors(tree, labelled) == []
    assert errors(tree, Context(profile=Profile())) != []


def test_no_more_specs_are_remembered_than_the_bound_says():
    context = Context(profile=Profile())
    for number in range(FLAWLESS_MAX + 10):
        assert errors(claim(f"{number} == {number}"), context) == []
    assert len(context.flawless_specs) == FLAWLESS_MAX
