"""The page of states over time, as a picture and a table."""

from collections.abc import Mapping

from app.analysis.lanes import Lane, Lanes, LanesRequest, LaneState
from app.analysis.recordings import uncertainty
from app.analysis.spans import DEVICES
from app.web.frame import Frame, render
from app.web.pictures import lanes as picture


def page(frame: Frame, answer: Lanes, wanted: LanesRequest, stretch: Mapping[str, str]) -> bytes:
    """The page; `stretch` holds the parameters `since` and `until` as given."""

    def to_object(lane: Lane, revision: int) -> str:
        links = frame.links.at(revision) if revision else frame.links
        if lane.key[:2] == DEVICES:
            # Claims may hold devices that no slice publishes: no map shows these.
            return links.to("why", kind="device", name=lane.name)
        return links.to_object(lane.key)

    def to_stretch(state: LaneState) -> str:
        parameters = dict(frame.parameters, since=state.begin, until=state.end or "")
        return frame.links.to("lanes", **parameters)

    ways = picture.Ways(to_object=to_object, to_moment=frame.here, to_stretch=to_stretch)
    return render(
        "lanes.html",
        frame=frame,
        answer=answer,
        wanted=wanted,
        stretch=stretch,
        picture=picture.draw(answer, ways) if answer.lanes else "",
        legend=picture.legend(),
        notes=uncertainty.lines(answer.doubts),
        rows=[_row(lane, ways) for lane in answer.lanes],
    )


def _row(lane: Lane, ways: picture.Ways) -> dict[str, object]:
    last = lane.states[-1].begin if lane.states else 0
    return {
        "lane": lane,
        "is_device": lane.key[:2] == DEVICES,
        "url": ways.to_object(lane, last),
        "states": [_state(state, ways) for state in lane.states],
    }


def _state(state: LaneState, ways: picture.Ways) -> dict[str, object]:
    return {
        "state": state,
        "closer": ways.to_stretch(state) if state.count > 1 else "",
        "from": state.began[11:23],
        "to": state.ended[11:23],
    }
