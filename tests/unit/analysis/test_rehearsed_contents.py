"""What trials of a rehearsal cannot tell of contents, and the versions in which writes are made."""

import pytest

from app.analysis.rehearse.attribution import Finding
from app.analysis.rehearse.contents import Contents
from app.analysis.rehearse.versions import AUTHORS_MAX, VersionUse, author_of, used, version_of
from app.analysis.replay.authors import UNNAMED
from app.analysis.replay.inputs import Input
from app.domain.log import Actor, Event, EventType, ObjectKey, Revision, Stamp
from app.domain.log.chain import canonical_json
from app.domain.log.event import Origin
from app.domain.objects.profile import Profile
from app.domain.values import api_resources
from app.domain.values.timestamps import Instant

MOVED, STAYED = (
    ObjectKey(*api_resources.RESOURCE_CLAIMS, "default", name) for name in ("moved", "stayed")
)


def test_finding_is_hidden_where_all_its_objects_follow_from_decisions() -> None:
    subjects: dict[Finding, frozenset[ObjectKey]] = {
        ("field", "of one that moved"): frozenset((MOVED,)),
        ("field", "of one that stayed"): frozenset((STAYED,)),
        ("text", "of both"): frozenset((MOVED, STAYED)),
    }
    trial = Contents(texts=(), fields=(), following=frozenset((MOVED,)), subjects={})
    assert trial.hidden(subjects) == {("field", "of one that moved")}
    assert not Contents(texts=(), fields=(), following=frozenset(), subjects={}).hidden(subjects)


OLD, NEWER, NEW = Profile(version="1.34"), Profile(version="1.35"), Profile(version="1.36")
GROUP = "resource.k8s.io"


def written(
    version: str = "",
    *rows: tuple[str, str],
    user: str = "alice",
    author: str = "alice",
    resource: str = "resourceclaims",
    group: str = GROUP,
) -> Input:
    """A write with the version of its request, and the times and versions of its managers."""
    fields = [{"manager": "m", "time": time, "apiVersion": api} for time, api in rows]
    tree = {"metadata": {"name": "c", "namespace": "default", "managedFields": fields}}
    stamp = Stamp(
        time=Instant(0),
        actor=Actor(user=user),
        verb="update",
        origin=Origin(source="audit", version=version),
    )
    event = Event(
        revision=Revision(1),
        type=EventType.OBJECT_UPDATED,
        key=ObjectKey(group, resource, "default", "c"),
        uid="c",
        body=canonical_json(tree),
        stamp=stamp,
    )
    return Input(event=event, before=None, time=Instant(0), author=author)


EARLY, LATE = "2026-01-02T03:00:00Z", "2026-01-02T04:00:00Z"


@pytest.mark.parametrize(
    ("write", "version"),
    [
        (written("v1"), "v1"),
        (written("v1", (LATE, f"{GROUP}/v1beta1")), "v1"),
        (written("v1", (LATE, f"{GROUP}/v1beta1"), user=""), "v1beta1"),
        (written("", (LATE, f"{GROUP}/v1beta1"), (EARLY, f"{GROUP}/v1")), "v1beta1"),
        (written("", (EARLY, f"{GROUP}/v1beta1"), (LATE, f"{GROUP}/v1")), "v1"),
        (written("", (LATE, "v1")), ""),
        (written("", (LATE, "")), ""),
        (written("", ("", f"{GROUP}/v1")), ""),
        (written(""), ""),
    ],
)
def test_version_of_a_write_is_that_of_its_request_or_of_its_last_manager(
    write: Input, version: str
) -> None:
    assert version_of(write) == version


def test_write_without_managers_has_no_version() -> None:
    write = written("")
    for fields in (None, "text", ["text", None]):
        body = canonical_json({"metadata": {"name": "c", "managedFields": fields}})
        write.event.body = body
        write.event.forget_tree()
        assert version_of(write) == ""


@pytest.mark.parametrize(
    ("version", "source", "target", "is_told"),
    [
        ("v1beta1", OLD, NEWER, True),
        ("v1beta1", OLD, OLD, False),
        ("v1beta1", NEWER, NEW, False),
        ("v1beta2", OLD, NEWER, False),
        ("v1beta2", NEWER, NEW, True),
        ("v1", OLD, NEW, False),
        ("v1alpha3", OLD, NEW, False),
    ],
    ids=["newly", "the same", "before", "not yet", "by now", "the newest", "never served there"],
)
def test_version_that_another_release_deprecates_is_told_with_who_uses_it(
    version: str, source: Profile, target: Profile, is_told: bool
) -> None:
    authors = [f"user{number}" for number in range(AUTHORS_MAX + 1)]
    writes = [written(version, author=author) for author in (*authors, authors[0], UNNAMED)]
    writes += [written("v1"), written("")]
    found = used(writes, source, target)
    assert len(found) == is_told
    for use in found:
        assert (use.api_version, use.kind) == (f"{GROUP}/{version}", "ResourceClaim")
        assert (use.is_gone, use.writes) == (False, len(authors) + 2)
        assert use.authors == tuple(authors[:AUTHORS_MAX])
        deprecated = "v1.35+" if version == "v1beta1" else "v1.36+"
        assert use.text.startswith(f"{GROUP}/{version} ResourceClaim is deprecated in {deprecated}")
        assert use.instead == f"{GROUP}/v1"


@pytest.mark.parametrize(
    ("group", "resource", "version", "instead"),
    [
        (GROUP, "devicetaintrules", "v1beta2", f"{GROUP}/v1alpha3"),
        ("admissionregistration.k8s.io", "mutatingadmissionpolicies", "v1", ""),
    ],
)
def test_version_that_another_release_does_not_serve_is_told_with_what_it_serves(
    group: str, resource: str, version: str, instead: str
) -> None:
    (use,) = used([written(version, group=group, resource=resource)], NEW, NEWER)
    assert use == VersionUse(
        api_version=f"{group}/{version}",
        kind=use.kind,
        is_gone=True,
        writes=1,
        authors=("alice",),
        text="the server could not find the requested resource",
        instead=instead,
    )
    assert used([written(version, group=group, resource=resource)], NEW, NEW) == []


def test_author_is_named_in_short_or_not_known() -> None:
    scheduler = "system:serviceaccount:kube-system:resource-claim-controller"
    assert author_of(written(author=scheduler)) == "resource-claim-controller"
    assert author_of(written(author="alice")) == "alice"
    assert author_of(written(author=UNNAMED)) == ""
