"""`/redra/v1`: what redra offers beyond Kubernetes."""

from app.api import status
from app.api.limits import ApiLimits
from app.api.messages import Answer, Request, Stream
from app.domain.log import Actor
from app.service.histories import Histories


class RedraApi:
    """Answers requests below `/redra/v1`."""

    def __init__(self, histories: Histories, limits: ApiLimits) -> None:
        self._histories = histories
        self._limits = limits

    async def answer(self, request: Request, actor: Actor) -> Answer | Stream:
        """The response; 404 for paths that are not served."""
        return status.page_not_found()
