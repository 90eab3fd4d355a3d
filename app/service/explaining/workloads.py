"""The pods of a workload, present and gone, with the first causes of those that do not run."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

from app.analysis.explain import attempts, lives, untried
from app.analysis.explain import decisions as decision_reasons
from app.analysis.explain.reasons import NAMES_MAX, Reason
from app.analysis.explain.workloads import admission, cron_jobs, members, policies, refused
from app.analysis.explain.workloads.members import EndedPod, PodGroup
from app.domain.log import Event, EventType, ObjectKey
from app.domain.log.event import KeyFilter
from app.domain.objects import history_kinds, registry
from app.domain.values import api_resources
from app.domain.values.fields import core, meta
from app.domain.values.fields.meta import Owner
from app.domain.values.identifiers import NO_UID, Uid
from app.domain.values.json_tree import JsonObject
from app.service.explaining import absent, disruption, pods, quotas
from app.service.explaining.evidence import ExplainedMoment

_STEPS_MAX = 4
"""The number of owners from a pod to its workload: a CronJob's Job, a Deployment's ReplicaSet."""


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkloadPods:
    """The reasons about the pods of a workload, and a sentence with how many run."""

    text: str
    reasons: tuple[Reason, ...]


async def of(evidence: ExplainedMoment, key: ObjectKey, tree: JsonObject) -> WorkloadPods:
    """The pods that an object made, or that were made for it; without reasons if it makes none.

    `tree` is its last state: a workload that is gone has pods that are gone.
    """
    if not key.namespace or key[:2] in _NO_WORKLOADS:
        return WorkloadPods(text="", reasons=())
    family = _Family(evidence, {meta.uid(tree): True, NO_UID: False})
    present = await family.present(key)
    ended, unread = await family.ended(key)
    views, sight = evidence.views, evidence.sight
    unasked = untried.shared_causes(
        views, evidence.rules, await evidence.now(), reads_events=sight.reads_events
    )
    shown = members.groups(
        views, present, unasked, await evidence.now(), reads_events=sight.reads_events
    )
    refusals = refused.newest(views, key.namespace) if sight.reads_events else {}
    reasons = [*members.held_back(key, tree)]
    reasons += admission.reasons(views, tree) if reasons else ()
    is_elsewhere = evidence.info.is_decided_elsewhere
    reasons += cron_jobs.state(views, key, tree, is_made_elsewhere=is_elsewhere)
    reasons += await absent.accounts(evidence, key.namespace, core.template(tree))
    for uid, refusal in refusals.items():
        if await family.is_known(uid):
            quota = refused.quota_of(refusal)
            sees = quota is not None and sight.sees_key(quota)
            reason = refused.reason(views, refusal, sees_quota=sees)
            if quota is not None and sees and not refusal.is_past:
                lowered = await quotas.of_pods(evidence, quota, refusal.message)
                reason = replace(reason, children=(*lowered, *reason.children))
            by_policy = () if refusal.is_past else await quotas.of_policy(evidence, refusal.message)
            reasons.append(replace(reason, children=(*reason.children, *by_policy)))
    reasons += [await _group(evidence, group) for group in shown[:NAMES_MAX]]
    reasons += [members.group_reason(group) for group in shown[NAMES_MAX:]]
    if text := members.in_turn(key, tree, shown):
        reasons.append(Reason(text=text, is_kept=True))
    reasons += [*members.left_out(views, key, tree), *members.restarts(views, present)]
    states = [state for pod in present if (state := views.objects.get(pod)) is not None]
    reasons += policies.judged(key, tree, states, ended)
    for number, alike in enumerate(members.together(ended)):
        reasons.append(await _ended(evidence, alike, is_explained=number < NAMES_MAX))
    reasons += unread
    says = bool(present or ended) or key.resource in _MAKE_PODS
    return WorkloadPods(
        text=members.summary(views, key, tree, shown) if says else "", reasons=tuple(reasons)
    )


@dataclass(slots=True)
class _Family:
    """The objects of a workload by uid: whether each was made for it."""

    evidence: ExplainedMoment
    known: dict[Uid, bool]

    async def is_known(self, uid: Uid) -> bool:
        """Whether an existing object was made for the workload, or is the workload."""
        if uid not in self.known:
            key = self.evidence.views.objects.by_uid(uid)
            tree = None if key is None else self.evidence.views.objects.get(key)
            owner = None if tree is None else meta.controller(tree)
            self.known[uid] = owner is not None and await self._is_of(
                key.namespace if key is not None else "", owner, _STEPS_MAX
            )
        return self.known[uid]

    async def present(self, key: ObjectKey) -> list[ObjectKey]:
        """The pods that are there."""
        objects = self.evidence.views.objects
        own = []
        for pod in objects.keys(*api_resources.PODS, key.namespace):
            owner = meta.controller(objects.get(pod) or {})
            if owner is not None and await self._is_of(key.namespace, owner, _STEPS_MAX):
                own.append(pod)
        return own

    async def ended(self, key: ObjectKey) -> tuple[list[EndedPod], list[Reason]]:
        """The pods that are gone, and what was not looked at."""
        evidence = self.evidence
        bounds = evidence.bounds
        names = await evidence.log.keys(
            evidence.info.id,
            KeyFilter(*api_resources.PODS, key.namespace, prefix=members.prefix_of(key)),
            until=evidence.views.revision,
            limit=bounds.names_max,
            newest_first=True,
        )
        present = [pod for pod in names if evidence.views.objects.get(pod) is not None]
        # The newest first: of many, the answer is about those that went last.
        gone = [pod for pod in names if evidence.views.objects.get(pod) is None]
        # Names that are generated hardly come again.
        wanted = gone if members.generates_names(key) else [*gone, *present]
        ended: list[EndedPod] = []
        long: list[str] = []
        for pod in [*gone, *present][: bounds.cause_workload_pods_max]:
            events = await evidence.observed(pod)
            is_long = len(events) >= bounds.cause_changes_max and pod in wanted
            if is_long and evidence.sight.sees_key(pod):
                long.append(f"{pod.namespace}/{pod.name}")
            for life in _lives(events):
                owner = meta.controller(life[0].object)
                is_own = owner is not None and await self._is_of(pod.namespace, owner, _STEPS_MAX)
                if is_own and evidence.sight.sees(life[0]):
                    ended.append(members.ended(life))
        unread = max(0, len(wanted) - bounds.cause_workload_pods_max)
        is_cut = len(names) >= bounds.names_max
        return ended, [
            *members.not_looked_at(key, unread, is_cut=is_cut),
            *members.in_part(long, bounds.cause_changes_max),
        ]

    async def _is_of(self, namespace: str, owner: Owner, steps: int) -> bool:
        """Whether an owner is the workload, or was made for it, as far as the log tells."""
        if owner.uid in self.known:
            return self.known[owner.uid]
        self.known[owner.uid] = False  # owners in a circle are of no workload
        if steps > 1 and (made := await self._made(namespace, owner)) is not None:
            further = meta.controller(made)
            is_of = further is not None and await self._is_of(namespace, further, steps - 1)
            self.known[owner.uid] = is_of
        return self.known[owner.uid]

    async def _made(self, namespace: str, owner: Owner) -> JsonObject | None:
        """The last state of an owner, which may be gone."""
        objects = self.evidence.views.objects
        place = objects.by_uid(owner.uid)
        if place is not None:
            return objects.get(place)
        group, version = registry.split_api_version(owner.api_version)
        kind = history_kinds.find_kind(objects, group, version, owner.kind)
        if kind is None:
            return None
        key = ObjectKey(kind.group, kind.plural, namespace if kind.namespaced else "", owner.name)
        for event in await self.evidence.observed(key):
            if event.is_about_object and meta.uid(event.object) == owner.uid:
                return event.object
        return None


async def _group(evidence: ExplainedMoment, group: PodGroup) -> Reason:
    """The state of pods, with the reasons of the newest one if they are held up."""
    if not group.is_held_up:
        return members.group_reason(group)
    key = group.pods[0]
    tree = evidence.views.objects.get(key)
    if tree is None:
        return members.group_reason(group)
    causes = await pods.causes(evidence, key, tree)
    about = Reason(
        text=f"pod {key.namespace}/{key.name}: {causes.text}",
        children=causes.children,
        about=key,
        is_kept=True,
    )
    return members.group_reason(group, (about,))


async def _ended(
    evidence: ExplainedMoment, alike: Sequence[EndedPod], *, is_explained: bool
) -> Reason:
    """The end of pods, with the reasons of the newest one."""
    children = await disruption.among(evidence, alike[0].events[1:]) if is_explained else []
    # The condition itself is in the words.
    below = [child for one in children for child in one.children]
    is_requested = disruption.BY_REQUEST in alike[0].words
    if is_explained and (not below or is_requested):
        below += lives.deletion_request(alike[0].events[1:])
    if is_explained:
        below += await _unplaced(evidence, alike[0])
    return members.ended_reason(alike, below)


async def _unplaced(evidence: ExplainedMoment, pod: EndedPod) -> list[Reason]:
    """The last decision about a pod that is gone and never had a node: why it had waited."""
    if any(core.has_node(event.object) for event in pod.events):
        return []
    decisions = await evidence.decisions(pod.end.key, until=pod.end.revision)
    made = attempts.made_by_scheduler(decisions)
    if not made or made[0].revision < pod.events[-1].revision:
        return []
    reason = decision_reasons.reason_of(made[0], with_causes=True)
    return [replace(reason, text=f"it never had a node: {reason.text}", is_kept=True)]


def _lives(events: Sequence[Event]) -> list[list[Event]]:
    """The events of each pod of a name that is gone, newest first."""
    lives: list[list[Event]] = []
    for event in events:
        if not event.is_about_object:
            continue
        if event.type is EventType.OBJECT_DELETED:
            lives.append([event])
        elif lives and meta.uid(event.object) == meta.uid(lives[-1][0].object):
            lives[-1].append(event)
    return lives


_NO_WORKLOADS = frozenset(
    (
        api_resources.EVENTS,
        api_resources.RESOURCE_CLAIM_TEMPLATES,
        api_resources.RESOURCE_QUOTAS,
    )
)
"""Kinds that make no pods, and about which more is said elsewhere."""

_MAKE_PODS = frozenset(
    ("daemonsets", "deployments", "jobs", "replicasets", "replicationcontrollers", "statefulsets")
)
"""The kinds of which it is said that no pod runs."""
