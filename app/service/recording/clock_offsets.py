"""The gaps that say by how much the clock of a cluster is off, written and read again."""

import math
import re

from app.domain.log import CLOCKS, Head, HistoryInfo
from app.domain.log.records import Record
from app.domain.values.timestamps import SECOND, Instant
from app.ports import ClusterSource, EventLog
from app.service.recorded_events import record_of
from app.service.recording.following import gap

_SAID = re.compile(r"(?P<seconds>[0-9.]+) s (?P<way>ahead of|behind) ")


async def recorded(log: EventLog, info: HistoryInfo, head: Head) -> int:
    """The microseconds that the last gap of the clock tells, to a tenth of a second; else 0."""
    for event in await log.read_object(info.id, CLOCKS, until=head.revision, limit=1):
        record = record_of(event)
        match = _SAID.search(record.message) if record is not None else None
        if match is not None:
            offset = round(float(match["seconds"]) * SECOND)
            return offset if match["way"] == "ahead of" else -offset
    return 0


def gap_of(source: ClusterSource, now: Instant) -> Record:
    """The gap that states the present offset of a cluster's clock."""
    offset = source.clock_offset / SECOND
    if not offset:
        text = "the clocks of the server and of this machine agree again"
    else:
        way = "ahead of" if offset > 0 else "behind"
        # Rounded up, plus half a digit for the rounding of the offset.
        exactness = math.ceil(source.clock_spread / SECOND * 10 + 0.5) / 10
        text = (
            f"the server's clock is {abs(offset):.1f} s {way} the clock of this machine (to within "
            f"{exactness:.1f} s); times are the server's from here on"
        )
    return gap(source.name, CLOCKS, text, now)
