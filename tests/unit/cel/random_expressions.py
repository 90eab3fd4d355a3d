"""Random expressions of the language itself, without `device`, for comparison with oracles.

Expressions are typed by construction most of the time; one in twelve places gets an expression of
any type, so that refusals are compared too.
"""

import random

_INTS = ("0", "1", "2", "-1", "3", "7", "9223372036854775807", "-9223372036854775808")
_UINTS = ("0u", "1u", "3u", "18446744073709551615u")
_DOUBLES = ("0.0", "1.0", "-1.5", "2.5", "1e10", "3.0")
_STRINGS = ('"a"', '"abc"', '""', "'x-y'", '"é"', 'r"\\d"', '"Abc"', '"b\\u0061"')
_BYTES = ('b"a"', 'b""', 'b"\\xff"', 'b"abc"')
_DURATIONS = ('duration("1h")', 'duration("90s")', 'duration("-1.5s")', 'duration("0")')
_TIMES = ('timestamp("2026-01-01T00:00:00Z")', 'timestamp("2025-06-30T12:30:45.5+02:00")')


class Generator:
    """Expressions of a wanted type, with nesting that ends."""

    def __init__(self, seed: int) -> None:
        self.random = random.Random(seed)
        self.names: list[tuple[str, str]] = []

    def boolean(self, depth: int) -> str:
        """An expression that gives a bool."""
        pick = self.random.choice
        kind = pick(("int", "uint", "double", "string", "bytes", "duration", "timestamp", "bool"))
        if depth <= 0:
            return pick(("true", "false", self._compared(kind, 0)))
        again = depth - 1
        choices = (
            lambda: f"({self.boolean(again)} && {self.boolean(again)})",
            lambda: f"({self.boolean(again)} || {self.boolean(again)})",
            lambda: f"!{self.boolean(again)}",
            lambda: f"({self.boolean(again)} ? {self.boolean(again)} : {self.boolean(again)})",
            lambda: self._compared(kind, again),
            lambda: self._compared(kind, again),
            lambda: f"({self.of(kind, again)} in {self.list_of(kind, again)})",
            lambda: f"{self.of('string', again)}.{self._text_test()}({self.of('string', again)})",
            lambda: self._loop(kind, again),
            lambda: f"(dyn({self.of(self._any(), again)}) == {self.of(self._any(), again)})",
            lambda: f'has({{"a": {self.of(kind, again)}}}.{pick("ab")})',
            lambda: f"({self.list_of(kind, again)} == {self.list_of(kind, again)})",
            lambda: f"(type({self.of(kind, again)}) == type({self.of(self._any(), again)}))",
            lambda: f"(size({self.list_of(kind, again)}) {self._relation()} {self.of('int', 0)})",
        )
        return pick(choices)()

    def of(self, kind: str, depth: int) -> str:
        """An expression of a kind; now and then of another one."""
        if self.random.random() < 0.01:
            kind = self._any()
        known = [name for name, held in self.names if held == kind]
        if known and self.random.random() < 0.4:
            return self.random.choice(known)
        if kind == "bool":
            return self.boolean(depth)
        if depth <= 0 or self.random.random() < 0.3:
            return self.random.choice(_LEAVES[kind])
        return self._composed(kind, depth - 1)

    def list_of(self, kind: str, depth: int) -> str:
        """A list literal, or one made by a macro."""
        if depth > 0 and self.random.random() < 0.3:
            return self._made_list(kind, depth - 1)
        items = [self.of(kind, depth - 1) for _ in range(self.random.randint(0, 3))]
        return f"[{', '.join(items)}]"

    def _made_list(self, kind: str, depth: int) -> str:
        source = self.list_of(kind, depth)
        name = self._name()
        self.names.append((name, kind))
        if self.random.random() < 0.5:
            made = f"{source}.filter({name}, {self.boolean(depth)})"
        else:
            made = f"{source}.map({name}, {self.of(kind, depth)})"
        self.names.pop()
        return made

    def _loop(self, kind: str, depth: int) -> str:
        source = self.list_of(kind, depth)
        name = self._name()
        self.names.append((name, kind))
        macro = self.random.choice(("all", "exists", "exists_one"))
        text = f"{source}.{macro}({name}, {self.boolean(depth)})"
        self.names.pop()
        return text

    def _composed(self, kind: str, depth: int) -> str:
        pick = self.random.choice
        left, right = self.of(kind, depth), self.of(kind, depth)
        if self.random.random() < 0.15:
            return f"({self.boolean(depth)} ? {left} : {right})"
        match kind:
            case "int":
                converted = f"int({self.of(pick(('int', 'uint', 'double', 'string')), depth)})"
                sized = f"size({self.of('string', depth)})"
                part = f"{self.of('timestamp', depth)}.{pick(_TIME_PARTS)}()"
                plain = f"({left} {pick('+-*/%')} {right})"
                return pick((plain, plain, plain, converted, sized, part, f"-({left})"))
            case "uint":
                return pick((f"({left} {pick('+-*/%')} {right})", f"uint({self.of('int', depth)})"))
            case "double":
                converted = f"double({self.of(pick(('int', 'uint', 'string')), depth)})"
                return pick((f"({left} {pick('+-*/')} {right})", converted))
            case "string":
                source = pick(("int", "uint", "bool", "string", "bytes", "duration", "timestamp"))
                return pick((f"({left} + {right})", f"string({self.of(source, depth)})"))
            case "bytes":
                return pick((f"({left} + {right})", f"bytes({self.of('string', depth)})"))
            case "duration":
                times = f"({self.of('timestamp', depth)} - {self.of('timestamp', depth)})"
                return pick((f"({left} {pick('+-')} {right})", times))
            case _:
                return f"({left} {pick('+-')} {self.of('duration', depth)})"

    def _compared(self, kind: str, depth: int) -> str:
        if kind in ("int", "uint", "double") and self.random.random() < 0.3:
            other = self.random.choice(("int", "uint", "double"))
            relation = self.random.choice(("<", "<=", ">", ">="))
            return f"(dyn({self.of(kind, depth)}) {relation} {self.of(other, depth)})"
        return f"({self.of(kind, depth)} {self._relation()} {self.of(kind, depth)})"

    def _relation(self) -> str:
        return self.random.choice(("==", "!=", "<", "<=", ">", ">="))

    def _text_test(self) -> str:
        return self.random.choice(("startsWith", "endsWith", "contains"))

    def _any(self) -> str:
        return self.random.choice(tuple(_LEAVES))

    def _name(self) -> str:
        return f"v{len(self.names)}"


_TIME_PARTS = ("getFullYear", "getMonth", "getDayOfYear", "getDate", "getDayOfWeek", "getHours")
_LEAVES = {
    "int": _INTS,
    "uint": _UINTS,
    "double": _DOUBLES,
    "string": _STRINGS,
    "bytes": _BYTES,
    "duration": _DURATIONS,
    "timestamp": _TIMES,
    "bool": ("true", "false"),
}
