"""Which findings about contents a trial of a rehearsal cannot tell."""

from app.analysis.rehearse.attribution import Finding
from app.analysis.rehearse.contents import Contents
from app.domain.log import ObjectKey
from app.domain.values import api_resources

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
