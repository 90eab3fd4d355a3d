"""The sentences about recorded decisions."""

from app.analysis.explain import decisions


def texts(summary: dict[str, object]) -> list[str]:
    return [reason.text for reason in decisions.lines_of(summary)]


def test_reasons_of_an_eviction_are_sentences() -> None:
    device = {"driver": "gpu.example.com", "pool": "a", "device": "gpu-0", "taint": 0}
    summary = {
        "due": "2026-01-02T03:04:05.000000Z",
        "reasons": [{"rule": "out"}, device],
        "reasonsCount": 2,
    }
    assert texts(summary) == [
        "due at 2026-01-02T03:04:05Z",
        "because of rule out",
        "because of a taint of device gpu.example.com/a/gpu-0 in its slice",
    ]


def test_taint_without_a_time_is_not_said_to_be_of_1970() -> None:
    summary = {"due": "1970-01-01T00:00:00.000000Z", "reasons": [{"rule": "out"}]}
    assert texts(summary) == ["because of rule out"]
