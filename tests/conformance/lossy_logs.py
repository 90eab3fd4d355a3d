"""Audit logs that lack lines, as policies, filters and overflowing buffers leave them.

Each alteration is a function of the lines, which it changes in place, and of a seed. Nothing wrong
happened in the cluster.
"""

import random
from collections.abc import Callable

from tests.conformance.tampering import Lines


def leave_out_rules(lines: Lines, draw: random.Random) -> str:
    """A policy that does not name DeviceTaintRules: neither writes of them nor reads are there."""
    lines[:] = [line for line in lines if line["objectRef"].get("resource") != "devicetaintrules"]
    return "no line is about a DeviceTaintRule"


def leave_out_deletions(lines: Lines, draw: random.Random) -> str:
    """A filter that lets no deletion through."""
    lines[:] = [line for line in lines if not line["verb"].startswith("delete")]
    return "no line is about a deletion"


def lose_one_of(number: int, first: int) -> Callable[[Lines, random.Random], str]:
    """Of so many lines one is lost, from a place on."""

    def lose(lines: Lines, draw: random.Random) -> str:
        lines[:] = [line for place, line in enumerate(lines) if place % number != first]
        return f"one of {number} lines is lost"

    lose.__name__ = f"lose_one_of_{number}_from_{first}"
    return lose


def leave_out_kubelets(lines: Lines, draw: random.Random) -> str:
    """A policy that does not record the group system:nodes."""
    lines[:] = [line for line in lines if not line["user"]["username"].startswith("system:node:")]
    return "no line is by a kubelet"


def leave_out_claim_controller(lines: Lines, draw: random.Random) -> str:
    """A policy that does not record the claim controller."""
    left = [line for line in lines if "resource-claim-controller" not in line["user"]["username"]]
    lines[:] = left
    return "no line is by the claim controller"


def leave_out_service_accounts(lines: Lines, draw: random.Random) -> str:
    """A policy that does not record the controllers of kube-controller-manager."""
    group = "system:serviceaccount:kube-system:"
    lines[:] = [line for line in lines if not line["user"]["username"].startswith(group)]
    return "no line is by a controller of kube-controller-manager"


def leave_out_updates(lines: Lines, draw: random.Random) -> str:
    """A filter that lets no update through."""
    lines[:] = [line for line in lines if line["verb"] != "update"]
    return "no line is an update"


def ask_of_pods_alone(lines: Lines, draw: random.Random) -> str:
    """A policy that records pods at level Request."""
    for line in lines:
        if line["objectRef"].get("resource") == "pods" and line["level"] != "Metadata":
            line["level"] = "Request"
            line.pop("responseObject", None)
    return "no answer about a pod is recorded"
