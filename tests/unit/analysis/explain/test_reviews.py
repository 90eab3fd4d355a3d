"""What refused a write is found by the name that its message has, and by no other."""

from types import SimpleNamespace

import pytest

from app.analysis.explain.nearby import reviews
from app.domain.log import ObjectKey

GROUP = "admissionregistration.k8s.io"
HOOKED = {"first": ["one.x.test", "two.x.test"], "second": ["two.x.test"]}


def views_of(objects):
    def keys(group, resource, namespace=None):
        return [key for key in objects if key[:2] == (group, resource)]

    return SimpleNamespace(objects=SimpleNamespace(get=objects.get, keys=keys))


@pytest.mark.parametrize(
    ("hook", "names"),
    [
        ("one.x.test", ["first"]),
        ("two.x.test", ["first", "second"]),
        ("one.x.tes", []),  # gone by now, and another is called nearly so
    ],
)
def test_configurations_with_the_webhook_that_refuses_are_named(hook, names):
    resource = "validatingwebhookconfigurations"
    views = views_of({
        ObjectKey(GROUP, resource, "", name): {"webhooks": [{"name": one} for one in hooks]}
        for name, hooks in HOOKED.items()
    })  # fmt: skip
    message = f'create ResourceClaim : admission webhook "{hook}" denied the request: not today'
    assert [key.name for key in reviews.refusing(views, message)] == names
    said = f"take the webhook out of configuration {', '.join(names)}" if names else ""
    assert reviews.remedy(views, message, None, lambda key: True) == said
    assert reviews.remedy(views, message, None, lambda key: False) == ""


@pytest.mark.parametrize(
    ("rules", "said", "wanted"),
    [
        ([("a", "wants a"), ("b", "wants b")], "wants b", "b"),
        ([("a", ""), ("b  &&\n c", "")], "failed expression: b && c", "b && c"),
        ([("a", "no"), ("b", "no")], "no", ""),  # either may have been false
        ([("a", "wants a")], "wants b", ""),  # the policy is another one by now
    ],
)
def test_check_that_failed_is_named_where_it_is_certain(rules, said, wanted):
    policy = {"spec": {"validations": [
        {"expression": expression, **({"message": text} if text else {})}
        for expression, text in rules
    ]}}  # fmt: skip
    message = f"ValidatingAdmissionPolicy 'p' with binding 'q' denied request: {said}"
    assert reviews.check(policy, message) == wanted
