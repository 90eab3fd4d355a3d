"""Judges what a server holds in memory: events against their stored bytes, and what follows from
them against itself at another time."""

import gc
from types import BuiltinFunctionType, CodeType, FunctionType, MethodType, ModuleType

from app.domain.log import Event
from app.domain.log.chain import canonical_json

_DERIVED = {
    "inventory": (
        "_published", "_effective", "_by_pool", "_local", "_shared", "_rules", "_patches",
        "_classes",
    ),
    "allocated": (
        "_holdings", "_in_flight", "_dedicated", "_shares", "_aggregated", "_holders",
    ),
}  # fmt: skip
"""What views hold beside the objects; the caches beside these grow with questions."""

_PLAIN = (str, bytes, int, float, bool, type(None))
_CODE = (type, ModuleType, CodeType, BuiltinFunctionType)


def events_below(*roots):
    """All events that can be reached from objects, through whatever holds them.

    Classes, modules and the globals of functions are left out: they belong to no server.
    """
    known, waiting, events = set(), list(roots), []
    while waiting:
        one = waiting.pop()
        if isinstance(one, (*_PLAIN, *_CODE)) or id(one) in known:
            continue
        known.add(id(one))
        if isinstance(one, Event):
            events.append(one)
        elif isinstance(one, FunctionType):
            waiting += [one.__closure__, one.__defaults__, one.__kwdefaults__]
        elif isinstance(one, MethodType):
            waiting += [one.__self__, one.__func__]
        else:
            waiting += gc.get_referents(one)
    return events


def changed(events):
    """The events whose decoded object is not the one that their stored bytes hold."""
    return [
        event
        for event in events
        if event.tree is not None and canonical_json(event.tree) != event.body
    ]


def derived(views):
    """What views derive from objects, as text: devices, taints, rules, holders, amounts."""
    return {
        (part, name): repr(getattr(getattr(views, part), name))
        for part, names in _DERIVED.items()
        for name in names
    }
