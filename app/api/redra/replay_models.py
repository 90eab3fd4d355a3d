"""Shapes of `/redra/v1/histories/{history}/replay`."""

from pydantic import Field, StrictInt, field_validator

from app.api.redra.models import Model


class ReplayEvent(Model):
    """An event of the recording."""

    revision: int
    time: str
    type: str
    object: str = Field(description="Resource, group, namespace and name; empty if hidden")


class ReplayConflict(Model):
    """A recorded event that is not shown as it was recorded."""

    revision: int = Field(description="Revision of the conflict in the history of the replay")
    recorded: int = Field(description="Revision of the event in the recording")
    time: str
    object: str
    conflict: str = Field(description="other-object, deleted-here, fields or held")
    places: list[str] = Field(description="Fields or finalizers that keep the values of clients")
    message: str


class Replay(Model):
    """The state of a paced replay. If no paced replay of this server shows the history, the state
    is `none`.
    """

    history: str
    state: str = Field(description="running, paused, ended or none")
    source: str = Field(default="", description="The recording")
    speed: str = Field(default="", description="Such as 10x, or max")
    moment: str = Field(default="", description="The current instant in the recording")
    revision: int = Field(default=0, description="Last recorded revision shown")
    begin: str = Field(default="", description="Instant at which the replay begins")
    end: str = Field(default="", description="Instant at which it ends")
    end_revision: int = 0
    shifts_times: bool = False
    shown: int = Field(
        default=0, description="Number of events shown since the last move backwards"
    )
    conflicts: int = Field(
        default=0, description="Number of conflicts since the last move backwards"
    )
    late_seconds_max: float = Field(
        default=0.0,
        description="Seconds by which the latest event at a pace was too late, since the last move "
        "backwards",
    )
    next: ReplayEvent | None = Field(default=None, description="The next event of the recording")
    latest_conflicts: list[ReplayConflict] = Field(default_factory=list)
    problem: str = Field(default="", description="The reason why no event can be shown now")


class ReplayStep(Model):
    """The event to stop after; without fields, the next event about any object."""

    object: str = Field(default="", description="KIND/[NAMESPACE/]NAME")
    decision: bool = Field(
        default=False,
        description="The next recorded decision; of another cluster, the next pod that gets a node "
        "or claim that gets or loses devices",
    )


class ReplayOrder(Model):
    """Body of `POST /redra/v1/histories/{history}/replay`. Absent fields change nothing. The order
    is: speed and pause, then move, then step.
    """

    speed: str = Field(default="", description="1x, 10x, any number, max, or step")
    paused: bool | None = None
    seek: str | StrictInt = Field(
        default="",
        description="A revision, as a number or a text, or an instant of the recording",
    )
    step: ReplayStep | None = None

    @field_validator("seek", mode="before")
    @classmethod
    def _check_seek(cls, value: object) -> object:
        """Refuse other types in one sentence, rather than once for each type that is taken."""
        if isinstance(value, bool) or not isinstance(value, str | int):
            raise ValueError("a moment is a revision or an instant: a number or a text")
        return value
