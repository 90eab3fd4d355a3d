"""Token and policy files: their content, and the errors for mistakes in them."""

import pytest

from app.api.identity import files
from app.domain.errors import InputError
from app.domain.objects.access.rules import AccessRequest, Book

PODS = AccessRequest(verb="list", resource="pods", namespace="lab")


def test_token_line_names_user_uid_and_groups():
    found = files.parse_tokens('# staff\nsecret1,ann,7,"a, b"\n\nsecret2,bob,8\n', place="t")
    assert found.actors["secret1"].user == "ann"
    assert found.actors["secret1"].groups == ("a", "b", "system:authenticated")
    assert found.actors["secret2"].groups == ("system:authenticated",)
    assert found.uids == {"ann": "7", "bob": "8"}


@pytest.mark.parametrize(
    ("text", "place"),
    [
        ("secret,ann\n", "t:1"),
        ("good-one,ann,7\n,bob,8\n", "t:2"),
        ("x,bob,8\n", "t:1"),
        ("secret,,8\n", "t:1"),
        ("secret,ann,7\nsecret,bob,8\n", "t:2"),
        ('secret,ann,7,"a\n', "t:1"),
    ],
)
def test_mistake_in_a_token_file_is_told_with_its_line(text, place):
    with pytest.raises(InputError) as problem:
        files.parse_tokens(text, place="t")
    assert str(problem.value).startswith(f"{place}: ")
    assert "secret" not in str(problem.value)


def rule(**more):
    return {
        "users": ["ann"], "verbs": ["list"], "apiGroups": [""], "resources": ["pods"], **more,
    }  # fmt: skip


def may(tree, history="default", question=PODS, user="ann"):
    policy = files.parse_policy({"rules": [tree]}, place="p")
    return Book(policy.bindings(history)).grants(user, ()).decide(question).allowed


def test_policy_rule_holds_for_its_users_namespaces_and_histories():
    assert may(rule())
    assert not may(rule(), user="bob")
    assert may(rule(namespaces=["lab", "x"]))
    assert not may(rule(namespaces=["x"]))
    assert may(rule(histories=["night"]), "night")
    assert not may(rule(histories=["night"]), "default")


def test_policy_rule_about_paths_opens_paths():
    tree = {"users": ["ann"], "verbs": ["get"], "nonResourceURLs": ["/redra/*"]}
    assert may(tree, question=AccessRequest(verb="get", path="/redra/v1/histories"))
    assert not may(tree, question=AccessRequest(verb="get", path="/metrics"))


@pytest.mark.parametrize(
    "tree",
    [
        rule(user=["ann"]),
        rule(verbs="list"),
        rule(verbs=[]),
        rule(namespaces=[]),
        rule(nonResourceURLs=["/x"]),
        {"verbs": ["get"], "apiGroups": [""], "resources": ["pods"]},
        {"users": ["a"], "verbs": ["get"]},
        {"users": ["a"], "verbs": ["get"], "nonResourceURLs": ["/x"], "namespaces": ["n"]},
    ],
)
def test_mistake_in_a_policy_is_told_with_its_rule(tree):
    with pytest.raises(InputError) as problem:
        files.parse_policy({"rules": [rule(), tree]}, place="p")
    assert str(problem.value).startswith("p: rules[1]: ")


def test_policy_must_be_rules():
    for tree in ({}, {"rules": {}}, {"rules": [], "more": 1}):
        with pytest.raises(InputError):
            files.parse_policy(tree, place="p")
