"""Runs of what happened in a cluster in memory, decided again from its inputs."""

from app.analysis.replay import tolerances
from app.analysis.replay.writers import DECIDED, Writers
from app.bootstrap.control_planes import ControlPlanes
from app.domain.log import HistoryId, HistoryInfo
from app.domain.values.timestamps import Instant
from app.service.replays.deciding.runs import Runs
from app.service.replays.replaying import ReplayBounds
from tests.cluster import Cluster
from tests.unit.analysis.replay.test_recording import recording_of


def runs_of(cluster: Cluster) -> Runs:
    """The runs of all events of a cluster."""
    recording = recording_of(cluster)
    recording.finish()
    return Runs(
        recording,
        ControlPlanes(HistoryInfo(id=HistoryId(1), name="h"), names=DECIDED),
        Writers(DECIDED),
        cluster.line.head.revision,
        Instant(recording.last + tolerances.TABLE.afterwards),
        lambda step, revision, until: None,
        ReplayBounds(),
    )
