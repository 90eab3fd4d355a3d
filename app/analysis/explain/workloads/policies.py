"""The podFailurePolicy of a Job: which of its rules decided about which failed pods."""

from collections.abc import Iterable, Iterator

from app.analysis.explain.reasons import Reason, listed
from app.analysis.explain.workloads.members import EndedPod
from app.domain.controllers import failure_policies
from app.domain.log import ObjectKey
from app.domain.values import api_resources, counts
from app.domain.values.fields import meta
from app.domain.values.json_tree import JsonView

_FAILED = "Failed"


def judged(
    key: ObjectKey, tree: JsonView, present: Iterable[JsonView], ended: Iterable[EndedPod]
) -> Iterator[Reason]:
    """The failed pods of a Job by the rule that decides about them; empty without a policy.

    A policy judges only pods whose phase is Failed. Parity: controllers.md 5.5.
    """
    spec = meta.spec(tree)
    if key[:2] != api_resources.JOBS or not failure_policies.has_failure_policy(spec):
        return
    failed = [pod for pod in present if meta.phase(pod) == _FAILED]
    for gone in ended:
        states = (event.object for event in gone.events)
        failed += [state for state in states if meta.phase(state) == _FAILED][:1]
    by_rule: dict[tuple[int, str], list[str]] = {}
    unmatched: list[str] = []
    for pod in failed:
        rule = failure_policies.deciding_rule(spec, pod)
        if rule is None:
            unmatched.append(f"{meta.namespace(pod)}/{meta.name(pod)}")
        else:
            by_rule.setdefault((rule.number, rule.action), []).append(rule.matched)
    for (number, action), matched in sorted(by_rule.items()):
        text = f"rule {number} of its podFailurePolicy {_effect(action, len(matched))}"
        yield _reason(key, text, matched)
    if unmatched:
        does = counts.verb(len(unmatched), "counts")
        text = f"no rule of its podFailurePolicy matches {_of(len(unmatched))}, which {does} "
        text += "towards backoffLimit"
        yield _reason(key, text, unmatched)


def _effect(action: str, count: int) -> str:
    """The effect of an action on failed pods; FailIndex counts them, as if without limits."""
    if action == failure_policies.IGNORE:
        does = counts.verb(count, "does")
        return f"ignores {_of(count)}, which {does} not count towards backoffLimit"
    if action == failure_policies.FAIL_JOB:
        return f"ends the Job because of {_of(count)}"
    return f"counts {_of(count)} towards backoffLimit"


def _of(count: int) -> str:
    return counts.of(count, "failed pod")


def _reason(key: ObjectKey, text: str, parts: list[str]) -> Reason:
    shown = f"{text}: {listed(parts, len(parts))}"
    return Reason(text=shown, count=len(parts), about=key, is_kept=True)
