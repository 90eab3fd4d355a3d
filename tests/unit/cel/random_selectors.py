"""Random selectors over the attributes of one domain, whose values are of all kinds.

Most parts are typed only when they run, so nearly everything compiles and much of it fails: what is
compared is which side of `&&`, `||` and `?:` decides, what equals what, and what is an error.
"""

from random import Random

DOMAIN = "a.com"
VALUES = {
    "x": {"int": 3},
    "y": {"int": 0},
    "s": {"string": "hello"},
    "t": {"string": "3"},
    "b": {"bool": True},
    "f": {"bool": False},
    "li": {"ints": [1, 2, 3]},
    "ls": {"strings": ["a", "bb"]},
    "lb": {"bools": [True]},
}
LITERALS = (
    *("0", "3", "-1", '"hello"', '"3"', '""', '"a"', "true", "false", "2.5", "3u"),
    *("[1, 2, 3]", '["a", "bb"]', "null"),
)
RELATIONS = ("==", "!=", "==", "!=", "<", "<=", ">", ">=")


class Selectors:
    """Selectors and devices of a seed."""

    def __init__(self, seed: int) -> None:
        self.random = Random(f"selectors-{seed}")
        self.names = (*VALUES, "nope")

    def device(self) -> dict:
        """The attributes of a device, by name without domain; some are missing."""
        return {name: found for name, found in VALUES.items() if self.random.random() < 0.85}

    def boolean(self, depth: int) -> str:
        """An expression that should give a bool."""
        pick, again = self.random.choice, depth - 1
        simple = (
            lambda: f"({self.value(again)} {pick(RELATIONS)} {self.value(again)})",
            lambda: f'has(device.attributes["{DOMAIN}"].{pick(self.names)})',
            lambda: f'("{pick(self.names)}" in device.attributes["{DOMAIN}"])',
            self.path,
        )
        nested = (
            lambda: f"({self.boolean(again)} && {self.boolean(again)})",
            lambda: f"({self.boolean(again)} || {self.boolean(again)})",
            lambda: f"!{self.boolean(again)}",
            lambda: f"({self.boolean(again)} ? {self.boolean(again)} : {self.boolean(again)})",
            lambda: f"({self.value(again)} in {self.value(again)})",
            lambda: (
                f"{self.path()}.{pick(('startsWith', 'endsWith', 'contains', 'matches'))}"
                f"({pick((self.path(), self.literal()))})"
            ),
            lambda: (
                f"{pick((self.path(), self.literal()))}.{pick(('all', 'exists', 'exists_one'))}"
                f"(i, {pick(('i == 1', 'i > 1', 'i', self.boolean(again)))})"
            ),
            lambda: f"(type({self.path()}) == {pick(('int', 'string', 'bool', 'list'))})",
        )
        return pick(simple if depth <= 0 else (*simple[:2], *nested))()

    def value(self, depth: int) -> str:
        """An expression of any type."""
        pick, again = self.random.choice, depth - 1
        if depth <= 0 or self.random.random() < 0.45:
            return self.path() if self.random.random() < 0.6 else self.literal()
        made = (
            lambda: f"({self.value(again)} {pick('+-*/%')} {self.value(again)})",
            lambda: f"{pick(('size', 'string', 'double'))}({self.path()})",
            lambda: f"{self.path()}[{pick(('0', '1', '9', '-1'))}]",
            lambda: f"({self.boolean(again)} ? {self.value(again)} : {self.value(again)})",
            lambda: f"{self.path()}.map(i, {pick(('i', 'i + 1', '[i]'))})",
            lambda: f"{self.path()}.filter(i, {pick(('true', 'i > 1'))})",
        )
        return pick(made)()

    def path(self) -> str:
        """An attribute, perhaps a missing one."""
        name = self.random.choice(self.names)
        held = f'device.attributes["{DOMAIN}"]'
        return self.random.choice((f"{held}.{name}", f'{held}["{name}"]'))

    def literal(self) -> str:
        """A literal of any type."""
        return self.random.choice(LITERALS)
