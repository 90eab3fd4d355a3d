"""An answer to a reader is the same whatever stands in objects that the reader may not see.

The answers about each object are worked out twice: from the log, and from the log in which every
object of a kind that the reader may not see was replaced by an empty one. What differs was told to
a reader without the right to it.
"""

import json

import pytest
from msgspec.structs import replace

from app.adapters.memory import MemoryLog, MemoryStore, MemoryWakeUp
from app.analysis.explain.questions import Question
from app.analysis.views import LiveViews, compiler_of
from app.api.access.readers import WORKED_OUT_FROM
from app.bootstrap.gallery import playing
from app.domain.errors import RedraError
from app.domain.log import EventType, Head, ObjectKey
from app.domain.objects import profile as profiles
from app.domain.values import api_resources
from app.service.explaining import Explainer
from app.service.explaining.evidence import PastMoments, Sight
from tests import draws
from tests.web import (
    asked_incidents,
    invented,
    more_incidents,
    night_incidents,
    overlooked_incidents,
    quiet_incidents,
    refused_incidents,
    reported_incidents,
)
from tests.web.later_incidents import LATER
from tests.web.test_incident_stories import played

OBJECTS_MAX = 60


def hidden(events, kinds):
    """The events in which each object of another kind is an empty one, of another name."""
    for event in events:
        if event.is_about_object and event.key[:2] not in kinds:
            name = f"x{event.revision}"
            tree = {"apiVersion": "v1", "kind": "ConfigMap",
                    "metadata": {"name": name, "namespace": "nowhere", "uid": name}}  # fmt: skip
            key = ObjectKey("", "configmaps", "nowhere", name)
            body = json.dumps(tree).encode()
            event = replace(event, key=key, type=EventType.OBJECT_CREATED, body=body)
        yield event


async def answers(incident, events, kinds):
    """The answer about each object of the kinds to who may see these alone, as text."""
    log = MemoryLog(MemoryStore(), MemoryWakeUp().grown)
    info = await log.create_history(
        "default", seed=0, settings=incident.cluster.settings(), created=playing.START,
        hash=Head().hash,
    )  # fmt: skip
    await log.append(info.id, expected=Head(), events=events)
    profile = profiles.from_settings(info.settings)

    async def views_at(revision):
        views = LiveViews(profile)
        for event in events[:revision]:
            views.fold(event)
        return views

    sight = Sight(
        sees_all=False,
        reads_events=api_resources.EVENTS in kinds,
        sees=lambda event: event.type is EventType.DECISION_RECORDED or event.key[:2] in kinds,
        sees_key=lambda key: key[:2] in kinds,
    )
    explainer = Explainer(
        log, info, await views_at(len(events)), compiler_of(profile), profile,
        past=PastMoments(views_at, views_at),
        sight=sight,
    )  # fmt: skip
    keys = sorted({event.key for event in events if event.key[:2] in WORKED_OUT_FROM})
    told = {}
    for key in keys[:OBJECTS_MAX]:
        question = Question(kind=key.resource, namespace=key.namespace, name=key.name, help=True)
        try:
            told[key] = json.dumps((await explainer.why(question)).to_json(), default=str)
        except RedraError as problem:
            told[key] = str(problem)
    return told


ROWS = [
    more_incidents.MORE,
    invented.INVENTED,
    LATER,
    reported_incidents.REPORTED,
    night_incidents.NIGHT,
    quiet_incidents.QUIET,
    asked_incidents.ASKED,
    overlooked_incidents.OVERLOOKED,
    refused_incidents.REFUSED,
]
FIRST = {
    "driver_runs_and_publishes_nothing",
    "name_of_a_template_is_mistyped",
    "new_node_has_no_driver",
    "namespace_goes_and_keeps_its_claim",
    "rolling_update_waits_for_itself",
    "alternative_is_over_the_quota",
    "policy_denies_the_claim_of_a_template",
}
"""The incidents that told of a namespace, a Deployment, a template and a policy, and a class."""


@pytest.mark.parametrize("more", [(), (api_resources.EVENTS,)], ids=["no-events", "events"])
@pytest.mark.parametrize(
    "make",
    [make if make.__name__ in FIRST else draws.repeated(make) for made in ROWS for make in made],
    ids=lambda make: getattr(make, "__name__", ""),
)
async def test_answers_do_not_depend_on_what_their_reader_may_not_see(make, more):
    incident = make(invented.Names(3)).incident()
    kinds = frozenset((*WORKED_OUT_FROM, *more))
    events = played(incident)
    told = await answers(incident, events, kinds)
    assert told
    assert told == await answers(incident, [*hidden(events, kinds)], kinds)
