"""CEL, the language of device selectors: compile once, estimate, evaluate, explain.

Belongs here: parsing, type checking, both cost models, functions and evaluation of expressions over
one device (`device` is the only variable), masks over many, and rules over parts of custom objects.
Does not belong here: the meaning of a selector for a request or class, the time of its evaluation,
and the handling of its errors, which are in `allocation`. `devices`, `allocation` and everything
above may import the names below; this package imports only `domain.values` and `domain.errors`.

Reading order: `tokens` → `parser` (with `macros`) → `checker` (with `types`, `declarations` and the
two tables of functions) → `literals` → `closures` (with `paths`, `calls`, `loops`) → `program`.
In addition: `estimate` and `charges` for costs, `functions` for implementations of functions,
`masks`, `trace`, `object_rules` for rules over objects of custom kinds, and `policy_rules` for
expressions of policies and webhooks.
"""

from app.domain.cel.admission import AdmissionProblem, check_admission
from app.domain.cel.device import DeviceInput, is_plain
from app.domain.cel.environment import STORED, Environment, new_environment
from app.domain.cel.limits import COST_LIMIT, EXPRESSION_BYTES_MAX
from app.domain.cel.masks import DeviceTable, Mask, mask
from app.domain.cel.program import Program, ProgramCache, SelectorOutcome, compile_expression
from app.domain.cel.syntax.issues import CompileError
from app.domain.cel.trace import EvaluationTrace, Falsity, TraceStep, falsities, trace

__all__ = [
    "COST_LIMIT",
    "EXPRESSION_BYTES_MAX",
    "STORED",
    "AdmissionProblem",
    "CompileError",
    "DeviceInput",
    "DeviceTable",
    "Environment",
    "EvaluationTrace",
    "Falsity",
    "Mask",
    "Program",
    "ProgramCache",
    "SelectorOutcome",
    "TraceStep",
    "check_admission",
    "compile_expression",
    "falsities",
    "is_plain",
    "mask",
    "new_environment",
    "trace",
]
