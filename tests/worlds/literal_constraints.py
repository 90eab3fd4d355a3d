"""Section 6 of allocator.md, transcribed: constraints of one claim."""

from __future__ import annotations

SCALARS = ("string", "int", "bool", "version")


class Constraint:
    """The common part of both kinds: the requests and the attribute."""

    def __init__(self, tree, *, lists, quirks):
        self.matching = tree.get("matchAttribute") is not None
        self.name = tree["matchAttribute"] if self.matching else tree["distinctAttribute"]
        self.requests = tree.get("requests") or []
        self.lists, self.quirks = lists, quirks
        self.count = 0
        self.reference, self.history = None, []
        self.known = {}

    def concerns(self, wish):
        return (
            not self.requests
            or wish.main in self.requests
            or (wish.inner and wish.result_name in self.requests)
        )

    def attribute(self, device):
        found = device.attributes.get(self.name)
        domain, _, identifier = self.name.partition("/")
        if found is None and domain == device.id[0]:
            found = device.attributes.get(identifier)
        return found

    def add(self, device, wish):
        if not self.concerns(wish):
            return True
        attribute = self.attribute(device)
        if attribute is None:
            return False
        return (self.match if self.matching else self.differ)(attribute, device, wish)

    def match(self, attribute, _device, _wish):
        before = self.reference
        if self.lists:
            found = as_set(attribute)
            if found is None:
                return False
            if self.count:
                common = self.reference[1] & found[1]
                if self.reference[0] != found[0] or not common:
                    return False
                found = (found[0], common)
            self.reference = found
        elif self.count == 0:
            self.reference = attribute
        else:
            for kind in SCALARS:
                if attribute.get(kind) is not None:
                    if self.reference.get(kind) is None or self.reference[kind] != attribute[kind]:
                        return False
                    break
            else:
                return False
        self.history.append(before)
        self.count += 1
        return True

    def differ(self, attribute, device, wish):
        if self.count and self.conflicts(attribute):
            return False
        self.known[self.slot(device, wish)] = attribute
        self.count += 1
        return True

    def conflicts(self, attribute):
        if self.lists:
            found = as_set(attribute)
            if found is None:
                return True
            others = [as_set(other) for other in self.known.values()]
            return any(o and o[0] == found[0] and o[1] & found[1] for o in others)
        for kind in SCALARS:
            if attribute.get(kind) is not None:
                return any(o.get(kind) == attribute[kind] for o in self.known.values())
        return bool(self.known)

    def remove(self, device, wish):
        if not self.concerns(wish):
            return
        self.count -= 1
        if not self.matching:
            self.known.pop(self.slot(device, wish), None)
            return
        before = self.history.pop()
        if not self.quirks.q5:
            self.reference = before

    def slot(self, device, wish):
        return wish.main if self.quirks.q6 else (wish.main, device.id)


def as_set(attribute):
    for field, kind in (("ints", "i"), ("bools", "b"), ("strings", "s"), ("versions", "v")):
        if attribute.get(field):
            return kind, set(attribute[field])
    for field in ("int", "bool", "string", "version"):
        if attribute.get(field) is not None:
            return field[0], {attribute[field]}
    return None
