"""How a plan is written into the log: the decision before its effects, with a digest of the plan.

Verification makes the plan again and compares digests; equal digests mean equal commands.
"""

import hashlib
from dataclasses import fields, is_dataclass
from enum import Enum
from typing import Any

import msgspec

from app.domain.controllers.plan import Plan
from app.domain.log.chain import canonical_json
from app.domain.objects.commands import Command, RecordDecision


def digest(commands: tuple[Command, ...]) -> str:
    """`sha256:` of the canonical JSON of the commands, each with the name of its class."""
    text = canonical_json([[type(command).__name__, _plain(command)] for command in commands])
    return f"sha256:{hashlib.sha256(text).hexdigest()}"


def commands_of(plan: Plan) -> tuple[Command, ...]:
    """What is appended for a plan: its decision, if it has one, then its commands."""
    decision = plan.decision
    if decision is None:
        return plan.commands
    body = {
        "controller": decision.controller,
        "key": plan.key,
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


def _plain(value: Any) -> Any:
    if is_dataclass(value) and not isinstance(value, type):
        return {part.name: _plain(getattr(value, part.name)) for part in fields(value)}
    if isinstance(value, Enum):
        return value.value
    if isinstance(value, dict):
        return {str(key): _plain(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(item) for item in value]
    if isinstance(value, msgspec.Struct):
        return msgspec.to_builtins(value)
    return value
