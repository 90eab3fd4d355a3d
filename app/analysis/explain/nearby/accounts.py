"""ServiceAccounts that pods name and that are not there."""

from collections.abc import Iterator

from app.analysis import scope
from app.analysis.explain.reasons import Reason
from app.analysis.views import LiveViews
from app.domain.log import ObjectKey
from app.domain.values import api_resources
from app.domain.values.fields import core
from app.domain.values.json_tree import JsonView


def missing(views: LiveViews, namespace: str, pod: JsonView) -> Iterator[Reason]:
    """The account of a pod, or of a template of pods, if others are in the namespace and it is not.

    redra's API makes such a pod: it works without the admission plug-in ServiceAccount. Where no
    account of the namespace is known, a recording left them out.
    """
    name = core.service_account_name(pod)
    known = {
        key.name: key for key in views.objects.keys(*api_resources.SERVICE_ACCOUNTS, namespace)
    }
    if not name or not known or name in known:
        return
    text = f"ServiceAccount {namespace}/{name}, which it names, does not exist: an API server with "
    text += "the admission plug-in ServiceAccount refuses pods that name it"
    near = scope.nearest(name, sorted(known))
    yield Reason(
        text=f"{text}; {near}" if near else text,
        is_kept=True,
        rests_on=(ObjectKey(*api_resources.SERVICE_ACCOUNTS, namespace, name),),
        denies=(api_resources.SERVICE_ACCOUNTS[1],),
    )
