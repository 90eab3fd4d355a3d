"""States over time, with a table of the same."""

from collections.abc import Callable

from app.analysis.lanes import Lane, Lanes, LanesRequest, State
from app.analysis.spans import DEVICES
from app.web.frame import Frame, render
from app.web.pictures import lanes as picture


def page(frame: Frame, answer: Lanes, wanted: LanesRequest) -> bytes:
    """The page."""

    def to_object(lane: Lane, revision: int) -> str:
        links = frame.links.at(revision) if revision else frame.links
        if lane.key[:2] == DEVICES:
            driver, _, rest = lane.name.partition("/")
            return links.to("map", driver=driver, pool=rest.partition("/")[0])
        return links.to_object(lane.key)

    return render(
        "lanes.html",
        frame=frame,
        answer=answer,
        wanted=wanted,
        picture=picture.draw(answer, to_object, frame.here) if answer.lanes else "",
        legend=picture.legend(),
        rows=[_row(lane, to_object) for lane in answer.lanes],
    )


def _row(lane: Lane, to_object: Callable[[Lane, int], str]) -> dict[str, object]:
    last = lane.states[-1].begin if lane.states else 0
    return {
        "lane": lane,
        "is_device": lane.key[:2] == DEVICES,
        "url": to_object(lane, last),
        "states": [_state(state) for state in lane.states],
    }


def _state(state: State) -> dict[str, object]:
    return {
        "state": state,
        "from": state.began[11:23],
        "to": state.ended[11:23],
    }
