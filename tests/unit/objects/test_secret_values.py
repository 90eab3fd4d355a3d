"""Values of Secrets on their way into the log and out of it."""

import base64
import hashlib

import pytest

from app.domain.log import ObjectKey
from app.domain.log.chain import canonical_json
from app.domain.objects.kinds import secret_values
from app.domain.objects.kinds.secret_values import DIGEST, ENCRYPTED
from app.domain.values import json_tree

KEY = ObjectKey("", "secrets", "lab", "s")
APPLIED = "kubectl.kubernetes.io/last-applied-configuration"


class Cipher:
    """Reversible without cryptography; `has_key` False is a machine without the key."""

    def __init__(self, *, has_key=True, digests=False):
        self.has_key = has_key
        self.digests = digests

    def protect(self, place, plain):
        if self.digests:
            return f"{DIGEST}k:{hashlib.sha256(place + plain).hexdigest()}"
        return f"{ENCRYPTED}k:{base64.b64encode(place + b'|' + plain).decode()}"

    def reveal(self, place, text):
        if not self.has_key or not text.startswith(ENCRYPTED):
            return None
        where, _, plain = base64.b64decode(text.rpartition(":")[2]).partition(b"|")
        return plain if where == place else None

    def matches(self, place, plain, text):
        return text == f"{DIGEST}k:{hashlib.sha256(place + plain).hexdigest()}"


def secret(**fields):
    metadata = {"name": "s", "namespace": "lab", "annotations": {APPLIED: '{"data":1}', "a": "b"}}
    return {"apiVersion": "v1", "kind": "Secret", "metadata": metadata, "type": "Opaque", **fields}


TREES = [
    secret(),
    secret(data={"a": "d29yZA==", "b": ""}),
    secret(data={}),
    secret(data=None),
    secret(data="d29yZA=="),
    secret(data=["d29yZA=="]),
    secret(data={"a": {"deep": 1}, "b": None, "c": 7}),
    secret(stringData={"a": "word"}, immutable=True),
    secret(unknown={"x": "word"}, other=3),
    {"kind": "Secret", "data": {"a": "d29yZA=="}},
    {"kind": "Secret", "metadata": None, "data": {"a": "d29yZA=="}},
    {"kind": "Secret", "metadata": {"annotations": 5}, "data": {"a": "d29yZA=="}},
]


@pytest.mark.parametrize("tree", TREES)
def test_protected_comes_back_as_it_was(tree):
    before = canonical_json(tree)
    stored = secret_values.protected(KEY, tree, Cipher())
    assert secret_values.revealed(KEY, stored, Cipher()) == tree
    assert secret_values.count_plain(stored) == 0
    assert canonical_json(tree) == before


def test_names_type_and_other_metadata_stay_readable():
    stored = secret_values.protected(KEY, secret(data={"a": "d29yZA=="}), Cipher())
    assert stored["type"] == "Opaque"
    assert list(stored["data"]) == ["a"]
    assert stored["metadata"]["annotations"]["a"] == "b"
    assert stored["metadata"]["annotations"][APPLIED].startswith(ENCRYPTED)
    assert secret_values.key_ids(stored) == {"k"}


def test_value_that_looks_protected_is_a_value_like_any_other():
    forged = f"{ENCRYPTED}k:AAAA"
    tree = secret(data={"a": forged, "b": base64.b64encode(forged.encode()).decode()})
    tree["metadata"]["annotations"][APPLIED] = forged
    stored = secret_values.protected(KEY, tree, Cipher())
    assert secret_values.revealed(KEY, stored, Cipher()) == tree
    assert forged not in canonical_json(stored).decode()


@pytest.mark.parametrize("digests", [False, True])
def test_what_was_shown_unreadable_is_kept_when_it_comes_back(digests):
    stored = secret_values.protected(
        KEY, secret(data={"a": "d29yZA==", "b": "eA=="}), Cipher(digests=digests)
    )
    poor = Cipher(has_key=False, digests=digests)
    shown = secret_values.revealed(KEY, stored, poor)
    assert secret_values.unreadable(shown) == [
        "data.a", "data.b", f"metadata.annotations.{APPLIED}",
    ]  # fmt: skip
    assert base64.b64decode(shown["data"]["a"]).decode() == stored["data"]["a"]
    changed = json_tree.copy(shown)
    changed["data"]["b"] = "bmV3"
    again = secret_values.protected(KEY, changed, poor, before=stored)
    assert again["data"]["a"] == stored["data"]["a"]
    assert again["metadata"] == stored["metadata"]
    assert again["data"]["b"] == poor.protect(b'["lab","s","data","b"]', b'"bmV3"')


def test_text_of_another_value_is_not_taken_for_that_value():
    stored = secret_values.protected(KEY, secret(data={"a": "d29yZA==", "b": "eA=="}), Cipher())
    shown = secret_values.revealed(KEY, stored, Cipher(has_key=False))
    shown["data"]["b"] = shown["data"]["a"]
    again = secret_values.protected(KEY, shown, Cipher(), before=stored)
    assert again["data"]["b"] != stored["data"]["a"]
    assert secret_values.revealed(KEY, again, Cipher())["data"]["b"] == shown["data"]["a"]


def test_equal_values_are_recognised_behind_digests():
    cipher = Cipher(digests=True)
    stored = secret_values.protected(KEY, secret(data={"a": "d29yZA==", "b": "eA=="}), cipher)
    old = secret_values.revealed(KEY, stored, cipher)
    new = secret(data={"a": "d29yZA==", "b": "bmV3"})
    secret_values.recognise(KEY, new, old, cipher)
    assert new["data"] == {"a": old["data"]["a"], "b": "bmV3"}
    assert (
        secret_values.protected(KEY, new, cipher, before=stored)["data"]["a"]
        == (stored["data"]["a"])
    )


def test_plain_values_of_an_old_log_are_read_as_they_are_and_can_be_protected():
    old = secret(data={"a": "d29yZA=="})
    assert secret_values.revealed(KEY, old, Cipher()) == old
    assert secret_values.count_plain(old) == 2
    stored = secret_values.protected_where_plain(KEY, old, Cipher())
    assert secret_values.protected_where_plain(KEY, stored, Cipher()) == stored
    assert secret_values.revealed(KEY, stored, Cipher()) == old


def test_secrets_of_the_core_group_alone():
    assert secret_values.is_secret(KEY)
    assert not secret_values.is_secret(KEY._replace(group="example.com"))
    assert not secret_values.is_secret(KEY._replace(resource="configmaps"))
