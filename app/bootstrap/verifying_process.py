"""A process that verifies one part of a history: `python -m app.bootstrap.verifying_process`.

It has no database, no settings and no loop of its own. On standard input comes the job; the events
are in a file of which it has the descriptor. On standard output it tells line by line how far it
is, at last what it found. When its input ends before, the one who asked is gone, and it ends too.
"""

import os
import sys
import threading
from collections.abc import Callable, Sequence

import msgspec

from app.adapters import event_spool
from app.analysis.verify.parts import Part, PartFound, PartVerifier
from app.analysis.verify.reallocate import AllocationIndex, Written
from app.bootstrap import garbage_collection
from app.bootstrap.deciders import deciders_of
from app.domain.log import Event, HistoryInfo, ObjectKey, Revision
from app.domain.values.timestamps import Instant

_LENGTH = 8


class _Written(msgspec.Struct, frozen=True, array_like=True):
    """An allocation of the index; the tree is JSON, which knows integers of any size."""

    revision: Revision
    time: Instant
    key: ObjectKey
    uid: str
    allocation: bytes


class Job(msgspec.Struct, frozen=True, kw_only=True):
    """What is to be verified: a part of a history, whose events are in the file `spool`."""

    history: bytes
    after: Revision
    until: Revision
    is_last: bool
    ends: bool
    observers: dict[Revision, Sequence[Event]]
    deciders: tuple[str, ...]
    lacking: tuple[str, ...]
    begun: Revision
    paced_until: Revision
    node_of_pod: dict[str, str]
    written: list[_Written]
    spool: int

    @classmethod
    def of(cls, history: HistoryInfo, part: Part, *, spool: int) -> "Job":
        """The job to verify the part."""
        return cls(
            history=msgspec.json.encode(history),
            after=part.after,
            until=part.until,
            is_last=part.is_last,
            ends=part.ends,
            observers=dict(part.observers),
            deciders=tuple(sorted(part.deciders)),
            lacking=part.lacking,
            begun=part.begun,
            paced_until=part.paced_until,
            node_of_pod=part.index.node_of_pod,
            written=[
                _Written(
                    written.revision,
                    written.time,
                    written.key,
                    written.uid,
                    msgspec.json.encode(written.allocation),
                )
                for written in part.index.written
            ],
            spool=spool,
        )

    def part(self) -> Part:
        """The part to verify."""
        written = [
            Written(
                revision=one.revision,
                time=one.time,
                key=one.key,
                uid=one.uid,
                allocation=msgspec.json.decode(one.allocation),
            )
            for one in self.written
        ]
        return Part(
            after=self.after,
            until=self.until,
            is_last=self.is_last,
            ends=self.ends,
            observers=self.observers,
            deciders=frozenset(self.deciders),
            index=AllocationIndex.of(self.node_of_pod, written),
            lacking=self.lacking,
            begun=self.begun,
            paced_until=self.paced_until,
        )


def job_bytes(job: Job) -> bytes:
    """The job as it is sent: its length first, because the input stays open."""
    body = msgspec.msgpack.encode(job)
    return len(body).to_bytes(_LENGTH, "big") + body


def found_in(line: bytes) -> Revision | PartFound:
    """What a line of output says: how far the process is, or what it found."""
    return msgspec.json.decode(line, type=PartFound) if line[:1] == b"{" else Revision(int(line))


def verify(job: Job, tell: Callable[[bytes], None]) -> PartFound:
    """Do the job; `tell` hears how far it is."""
    info = msgspec.json.decode(job.history, type=HistoryInfo)
    verifier = PartVerifier(job.part(), deciders_of(info))
    for events in event_spool.read(job.spool):
        for event in events:
            if event.revision > job.until:
                return verifier.found()
            verifier.take(event)
        tell(b"%d" % events[-1].revision)
    return verifier.found()


def main() -> None:
    """Read the job, do it, tell what was found."""
    stream = sys.stdin.buffer
    length = int.from_bytes(stream.read(_LENGTH), "big")
    body = stream.read(length)
    if not body or len(body) < length:
        return
    threading.Thread(target=_end_with, args=(stream.fileno(),), daemon=True).start()
    garbage_collection.expect_large_heap()
    job = msgspec.msgpack.decode(body, type=Job)
    garbage_collection.keep_loaded()
    _tell(msgspec.json.encode(verify(job, _tell)))


def _end_with(descriptor: int) -> None:
    """End at once when the input does: nobody waits for an answer any more."""
    # Not through the stream, whose lock would be held when this process ends by itself.
    os.read(descriptor, 1)
    os._exit(1)


def _tell(line: bytes) -> None:
    sys.stdout.buffer.write(line + b"\n")
    sys.stdout.buffer.flush()


if __name__ == "__main__":
    main()
