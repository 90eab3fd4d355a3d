"""The record of a plan in the log: the decision before its effects, with a digest of the plan.

Verification makes the plan again and compares digests; equal digests mean equal commands.
"""

import hashlib

from app.domain.controllers.plan import Plan
from app.domain.log.chain import canonical_json
from app.domain.objects.write.commands import Command, RecordDecision


def digest(commands: tuple[Command, ...]) -> str:
    """`sha256:` of the canonical JSON of the commands, each with the name of its class."""
    text = canonical_json([[type(command).__name__, command] for command in commands])
    return f"sha256:{hashlib.sha256(text).hexdigest()}"


def commands_of(plan: Plan) -> tuple[Command, ...]:
    """The commands to append for a plan: its decision, if any, then its commands; part by part."""
    if plan.parts:
        return tuple(command for part in plan.parts for command in commands_of(part))
    decision = plan.decision
    if decision is None:
        return plan.commands
    body = {
        "controller": decision.controller,
        "key": plan.key,
        "cause": plan.cause,
        "resource": decision.resource,
        "namespace": decision.namespace,
        "name": decision.name,
        "outcome": decision.outcome,
        "inputs": decision.inputs,
        "summary": decision.summary,
        "plan": digest(plan.commands),
        "commands": len(plan.commands),
    }
    record = RecordDecision(namespace=decision.namespace, name=decision.name, body=body)
    return (record, *plan.commands)
