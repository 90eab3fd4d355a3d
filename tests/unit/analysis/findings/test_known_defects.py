"""The known defects beside findings: which are listed, how severe they are, and in which order."""

import pytest

from app.analysis.findings import defects
from app.analysis.incidents.incident import Incident
from app.analysis.scan.sightings import Certainty, IncidentSighting, ScanReport
from app.domain.log import ObjectKey, Revision


def sighting(name: str, certainty: Certainty = Certainty.CERTAIN, *places: str) -> IncidentSighting:
    keys = (ObjectKey("", "pods", place, name) for place in places or ("lab",))
    return IncidentSighting(
        incident=name, certainty=certainty, revision=Revision(3), times=2, objects=tuple(keys),
        message=f"words of {name}",
    )  # fmt: skip


GALLERY = {
    name: Incident(title=f"title of {name}", kind=kind)
    for name, kind in (("pit", "pitfall"), ("bug", "defect"), ("old", "defect"))
}


def known(*sightings: IncidentSighting, namespace: str = "", **how: object) -> defects.KnownDefects:
    report = ScanReport(sightings=sightings, **how)
    return defects.of_report(report, Revision(9), GALLERY.get, namespace)


@pytest.mark.parametrize(
    ("name", "certainty", "severity", "title"),
    [
        ("bug", Certainty.CERTAIN, "error", "title of bug"),
        ("bug", Certainty.LIKELY, "notice", "title of bug"),
        ("pit", Certainty.CERTAIN, "warning", "title of pit"),
        ("pit", Certainty.LIKELY, "notice", "title of pit"),
        ("none", Certainty.CERTAIN, "error", "none"),
        ("none", Certainty.LIKELY, "notice", "none"),
    ],
)
def test_defect_that_is_certain_is_an_error_and_a_pitfall_a_warning(
    name: str, certainty: Certainty, severity: str, title: str
) -> None:
    (one,) = known(sighting(name, certainty)).items
    assert (one.severity.value, one.title) == (severity, title)
    tree = one.to_json()
    about = GALLERY[name].about() if name in GALLERY else {}
    assert tree == {**one.sighting.to_json(), **about, "severity": severity}


def test_most_severe_defects_come_first_and_equal_ones_keep_their_order() -> None:
    likely = sighting("old", Certainty.LIKELY)
    answer = known(likely, sighting("pit"), sighting("bug"), sighting("none"))
    assert [one.sighting.incident for one in answer.items] == ["bug", "none", "pit", "old"]


def test_namespace_leaves_the_defects_of_which_an_object_is_in_it() -> None:
    both = sighting("bug", Certainty.CERTAIN, "far", "lab")
    everywhere = (sighting("pit", Certainty.CERTAIN, "far"), both, sighting("old"))
    names = [one.sighting.incident for one in known(*everywhere, namespace="lab").items]
    assert names == ["bug", "old"]
    assert len(known(*everywhere).items) == 3


def test_scan_that_goes_on_says_how_far_it_came() -> None:
    going = known(examined=Revision(4), is_complete=False)
    note = (
        "not complete: known defects were searched for up to revision 4 of 9; ask again for the "
        "rest"
    )
    assert (going.is_going_on, going.note) == (True, note)
    assert going.to_json() == {"knownDefects": [], "knownDefectsNote": note}
    whole = known(sighting("bug"))
    assert (whole.is_going_on, whole.note) == (False, "")
    assert whole.to_json()["knownDefects"] == [whole.items[0].to_json()]
