"""What a quota counts, whether it refuses the claim of a pod, and what `why` may say of that.

Counted from raw objects: a claim counts once, for each class with its devices, and for the extended
resource that each class has by its name; of alternatives the largest of a class; mode All for 32.
Pods count what they request until they have ended. Parity: objects.md 15.3; KEP-4816, KEP-5004.
"""

import re
from collections import Counter
from collections.abc import Iterator

from tests.truth.facts import FINISHED, Facts, claims_of, reserved_for

COUNT = "count/resourceclaims.resource.k8s.io"
DEVICES = ".deviceclass.resource.k8s.io/devices"
IMPLICIT = "deviceclass.resource.kubernetes.io/"
MADE = "resource.kubernetes.io/extended-resource-claim"
ALL = 32
NAMED_MAX = 3

_USERS = r"(.*) uses? (\d+) of (\S+) of quota (\S+)$"
_USER = r"(claim|pod) (\S+) counts for (\d+)(, and nobody uses it: .*)?$"
_NEVER = r"one such claim counts for (\d+), and quota (\S+) has (\d+) of (\S+) in all: it is never"
_LARGEST = (
    r"request (\S+) counts like its alternative (\S+), which asks for (\d+) devices? of class "
    r"(\S+): a quota counts the largest alternative, whichever one is taken"
)
REMEDY = r"have quota (\S+) allow (\d+) of ([^\s,]+)(, or delete what uses it)?$"
"""The remedy that `why` proposes: quota, amount, name, and whether a deletion would do as well."""
_REFUSED = r"exceeded quota: ([^,]+), requested: (.*), used: (.*), limited: (.*)$"


def of_claim(claim: dict) -> Counter:
    """What a claim counts for under each name."""
    amounts: Counter = Counter({COUNT: 1})
    for request in claim["spec"]["devices"]["requests"]:
        either = request.get("firstAvailable") or (request["exactly"],)
        largest: Counter = Counter()
        for wish in either:
            of_class = wish["deviceClassName"]
            largest[of_class] = max(largest[of_class], _count(wish))
        for of_class, count in largest.items():
            amounts[f"{of_class}{DEVICES}"] += count
            if MADE not in (claim.get("metadata", {}).get("annotations") or {}):
                amounts[f"requests.{IMPLICIT}{of_class}"] += count
    return amounts


def _count(wish: dict) -> int:
    return ALL if wish.get("allocationMode") == "All" else int(wish.get("count") or 1)


def of_pod(pod: dict) -> Counter:
    """What a pod counts for by its extended resources."""
    amounts: Counter = Counter()
    if pod.get("status", {}).get("phase") not in FINISHED:
        for container in pod["spec"]["containers"]:
            requests = (container.get("resources") or {}).get("requests") or {}
            for name, text in requests.items():
                amounts[f"requests.{name}"] += int(text) if "/" in name else 0
    return amounts


def users(facts: Facts, name: str) -> dict[tuple[str, str], int]:
    """What each claim and pod counts for under a name."""
    all = {
        **{("claim", claim): of_claim(tree)[name] for claim, tree in facts.claims.items()},
        **{("pod", pod): of_pod(tree)[name] for pod, tree in facts.pods.items()},
    }
    return {user: count for user, count in all.items() if count}


def idle(facts: Facts, claim: str) -> bool:
    """Whether no pod that has not ended names a claim or has it reserved."""
    living = [one for one in facts.pods.values() if one["status"].get("phase") not in FINISHED]
    name = claim.partition("/")[2]
    names = {one["metadata"]["name"] for one in living}
    reserved = set(reserved_for(facts.claims[claim])) & names
    return not reserved and not any(name in claims_of(one) for one in living)


def refusals(before: Facts, wish: dict) -> list[tuple[str, dict[str, tuple[int, int, int]]]]:
    """The quotas that refuse a claim: for each name requested, used and limit."""
    wanted = of_claim(wish)
    refusing = []
    for quota, tree in before.all("resourcequotas"):
        over = {}
        for name, text in sorted(tree["spec"]["hard"].items()):
            used = sum(users(before, name).values())
            if wanted[name] and used + wanted[name] > int(text):
                over[name] = (wanted[name], used, int(text))
        if over:
            refusing.append((quota.partition("/")[2], over))
    return refusing


def differences(now: Facts, before: Facts, wish: dict, answer: dict, refusal: str) -> Iterator[str]:
    """One line for each statement that is not as counted.

    `before` is the moment of the last refusal, whose message is `refusal`; empty without one.
    """
    reasons = list(nodes(answer["reasons"]))
    lines = [one["text"] for one in reasons]
    if not refusal:
        yield from (f"nothing was refused: {line}" for line in lines if " of quota " in line)
        return
    parts = re.search(_REFUSED, refusal)
    if parts is None:
        yield f"no quota in {refusal!r}"
        return
    amounts = [dict(one.rsplit("=", 1) for one in part.split(",")) for part in parts.groups()[1:]]
    said = {name: tuple(int(one[name]) for one in amounts) for name in amounts[0]}
    counted = refusals(before, wish)
    if (parts[1], said) not in counted:
        yield f"refused by {parts[1]} for {said}, counted {counted}"
        return
    yield from _users(now, reasons, parts[1], said)
    never = {
        (match[2], match[4], int(match[1]), int(match[3]))
        for line in lines
        if (match := re.match(_NEVER, line))
    }
    # What the refusal says of a limit may not hold any more.
    quota = now.state.get(("resourcequotas", "default", parts[1])) or {"spec": {"hard": {}}}
    limits = {name: int(hard) for name, hard in quota["spec"]["hard"].items() if name in said}
    hopeless = {
        (parts[1], name, said[name][0], hard)
        for name, hard in limits.items()
        if said[name][0] > hard
    }
    if never != hopeless:
        yield f"never made for {never}, counted {hopeless}"
    largest = {match.groups() for line in lines if (match := re.match(_LARGEST, line))}
    if largest != (wanted := set(_largest(wish, said))):
        yield f"largest alternatives {largest}, counted {wanted}"
    yield from _presently(now, wish, lines, parts[1], said)


def nodes(tree: dict) -> Iterator[dict]:
    """All reasons below a tree."""
    for child in tree.get("children", ()):
        yield child
        yield from nodes(child)


def _users(now: Facts, reasons: list[dict], quota: str, said: dict) -> Iterator[str]:
    shown = {}
    for one in reasons:
        if match := re.match(_USERS, one["text"]):
            shown[match[3]] = (match[1], int(match[2]), match[4], one.get("children", ()))
    counted = {name for name in said if users(now, name)}
    if shown.keys() != counted:
        yield f"users of {sorted(shown)}, counted {sorted(counted)}"
    for name, (who, total, of_quota, children) in shown.items():
        using = users(now, name)
        kinds = Counter(kind for kind, _ in using)
        numbers = {
            kind.rstrip("s"): int(n) for n, kind in re.findall(r"(\d+) (claims?|pods?)", who)
        }
        if (numbers, total, of_quota) != (dict(kinds), sum(using.values()), quota):
            yield f"{who} {total} of {name} of {of_quota}, counted {using}"
        matches = [match for one in children if (match := re.match(_USER, one["text"]))]
        for match in matches:
            user = (match[1], match[2])
            if using.get(user) != int(match[3]):
                yield f"{match[0]!r}, counted {using.get(user)}"
            elif (user[0] == "claim" and idle(now, user[1])) != bool(match[4]):
                yield f"{match[0]!r}, counted otherwise"
        if len(matches) != min(len(using), NAMED_MAX):
            yield f"named {[match[2] for match in matches]}, counted {sorted(using)}"


def _largest(wish: dict, said: dict) -> Iterator[tuple[str, str, str, str]]:
    for request in wish["spec"]["devices"]["requests"]:
        either = request.get("firstAvailable") or ()
        for of_class in sorted({one["deviceClassName"] for one in either}):
            if f"{of_class}{DEVICES}" in said and len(either) > 1:
                own = [one for one in either if one["deviceClassName"] == of_class]
                most = max(own, key=_count)
                yield request["name"], most["name"], str(_count(most)), of_class


def _presently(now: Facts, wish: dict, lines: list[str], quota: str, said: dict) -> Iterator[str]:
    """By now the quota may be gone or have room; otherwise it has to allow what is needed."""
    tree = now.state.get(("resourcequotas", "default", quota))
    gone = any(f"quota {quota} was deleted" in line for line in lines)
    if gone != (tree is None):
        yield f"quota {quota} is gone: {tree is None}, said {gone}"
    refusing = [over for name, over in refusals(now, wish) if name == quota]
    # Only the names that were exceeded are known to `why`.
    over = {name: each for one in refusing for name, each in one.items() if name in said}
    room = any(f"quota {quota} has room for the claim by now" in line for line in lines)
    if tree is not None and room != (not over):
        yield f"room by now: {room}, counted {over or 'room'}"
    remedies = {
        match[3]: (match[1], int(match[2]), bool(match[4]))
        for line in lines
        if (match := re.match(REMEDY, line))
    }
    needed = {}
    for name in over:
        wanted, used = of_claim(wish)[name], sum(users(now, name).values())
        needed[name] = quota, wanted + used, wanted <= int(tree["spec"]["hard"][name])
    if remedies != needed:
        yield f"remedies {remedies}, counted {needed}"
