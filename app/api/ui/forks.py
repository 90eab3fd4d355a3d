"""`POST /ui/h/HISTORY[@MOMENT]/fork`: forks a history with the change of a form.

The change is that of the page What if, which shows a refusal, too. The rights are those of
`POST /redra/v1/histories/HISTORY/fork`.
"""

from app.api.redra.inquiries import Inquiry
from app.api.redra.routes import RedraApi
from app.api.server.limits import ApiLimits
from app.api.server.messages import Response
from app.api.ui import forms, framing
from app.api.ui.jobs import to
from app.api.ui.responses import shown
from app.domain.errors import Forbidden, InputError, Rejected
from app.web.links import Links
from app.web.pages import blast

FORK = "fork"


async def answer(api: RedraApi, inquiry: Inquiry, limits: ApiLimits, part: str) -> Response:
    """The way to the findings of the fork; the page `part` with the refusal if there is none."""
    typed = await forms.proposal(inquiry.request, limits)
    try:
        wanted = forms.fork(typed, inquiry.moment, limits)
        await api.managing.fork(wanted, inquiry.runtime.info.name, inquiry.actor)
    except Forbidden:
        raise
    except (Rejected, InputError) as refusal:
        problem = getattr(refusal, "message", "") or str(refusal)
        frame = await framing.frame(api.answers, inquiry, part)
        return shown(blast.page(frame, typed, None, problem))
    return to(Links(history=wanted.name).to(""))
