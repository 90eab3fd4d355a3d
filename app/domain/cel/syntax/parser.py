"""The parser of expressions: precedence climbing over the tokens, with macro expansion.

Grammar (cel.md 1), lowest precedence first: `?:` (its middle has no bare `?:`), `||`, `&&`,
relations (`< <= >= > == != in`, left to right), `+ -`, `* / %`, unary `!` or `-`, then selections,
indexes and calls. `-` directly before a number literal belongs to the literal.

Nesting is counted and bounded, so no input reaches the interpreter's own recursion bound. The
messages of common syntax errors name the same token and the same expected tokens as upstream's.
"""

from dataclasses import dataclass, field
from typing import Final, NoReturn

from app.domain.cel.limits import (
    DEPTH_MAX,
    EXPRESSION_CODE_POINTS_MAX,
    NESTING_MAX,
    NODES_MAX,
)
from app.domain.cel.syntax import macros, tokens, tree
from app.domain.cel.syntax.issues import CompileError, Issue, SourceText
from app.domain.cel.syntax.tokens import Token
from app.domain.cel.syntax.tree import ListLiteral, Literal, MapEntry, MapLiteral, Node

_OPERAND_EXPECTED: Final = (
    "{'[', '{', '(', '.', '-', '!', 'true', 'false', 'null', NUM_FLOAT, NUM_INT, NUM_UINT,"
    " STRING, BYTES, IDENTIFIER}"
)
_AFTER_MINUS_EXPECTED: Final = _OPERAND_EXPECTED.replace("'!', ", "")
_OPERAND_STARTS: Final = frozenset(
    (
        *("[", "{", "(", ".", "-", "!", "true", "false", "null"),
        *(tokens.FLOAT, tokens.INT, tokens.UINT, tokens.STRING, tokens.BYTES, tokens.IDENTIFIER),
    )
)
_AFTER_EXPRESSION: Final = (
    "'==', '!=', 'in', '<', '<=', '>=', '>', '&&', '||', '[', '.', '-', '?', '+', '*', '/', '%'"
)

_ANYTHING: Final = 0
_NO_CONDITIONAL: Final = 1
_LOGICAL: Final = 3
_RELATION: Final = 4
_BINARY: Final[dict[str, tuple[int, str]]] = {
    "||": (2, tree.LOGICAL_OR),
    "&&": (_LOGICAL, tree.LOGICAL_AND),
    "<": (_RELATION, "_<_"),
    "<=": (_RELATION, "_<=_"),
    ">=": (_RELATION, "_>=_"),
    ">": (_RELATION, "_>_"),
    "==": (_RELATION, tree.EQUALS),
    "!=": (_RELATION, tree.NOT_EQUALS),
    "in": (_RELATION, tree.IN),
    "+": (5, tree.ADD),
    "-": (5, "_-_"),
    "*": (6, "_*_"),
    "/": (6, "_/_"),
    "%": (6, "_%_"),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Parsed:
    """A tree with its source, and with the part of the text of each written node."""

    source: SourceText
    root: Node
    spans: dict[int, tuple[int, int]]


def parse(text: str) -> Parsed:
    """Returns the tree of an expression. Raises CompileError with all syntax errors found."""
    source = SourceText(text=text)
    if len(text) > EXPRESSION_CODE_POINTS_MAX:
        raise _unplaced(
            f"expression code point size exceeds limit: size: {len(text)},"
            f" limit {EXPRESSION_CODE_POINTS_MAX}"
        )
    issues: list[Issue] = []
    parser = _Parser(tokens=tokens.scan(text, issues), issues=issues)
    try:
        root = parser.whole()
    except _Abandoned:
        raise source.failure(issues) from None
    if issues:
        raise source.failure(issues)
    if parser.built.count > NODES_MAX or tree.depth(root) > DEPTH_MAX:
        raise _unplaced(f"expression recursion limit exceeded: {DEPTH_MAX}")
    return Parsed(source=source, root=root, spans=parser.spans)


class _Abandoned(Exception):
    """The parser cannot continue; the errors are in the issues."""


def _unplaced(message: str) -> CompileError:
    return CompileError(f"compilation failed: ERROR: <input>:-1:0: {message}")


@dataclass(slots=True)
class _Parser:
    tokens: list[Token]
    issues: list[Issue]
    built: macros.Builder = field(default_factory=macros.Builder)
    spans: dict[int, tuple[int, int]] = field(default_factory=dict)
    index: int = 0
    nesting: int = 0

    def whole(self) -> Node:
        root = self._expression()
        token = self.tokens[self.index]
        if token.kind != tokens.END:
            following = self.tokens[self.index + 1].kind
            how = "extraneous" if following == tokens.END else "mismatched"
            expected = "<EOF>" if how == "extraneous" else f"{{<EOF>, {_AFTER_EXPRESSION}}}"
            self._fail(token, f"{how} input '{token.text}' expecting {expected}")
        return root

    # Places, bounds and errors

    def _fail(self, token: Token, message: str) -> NoReturn:
        self.issues.append(Issue(position=token.position, message=f"Syntax error: {message}"))
        raise _Abandoned

    def _report(self, position: int, message: str) -> None:
        self.issues.append(Issue(position=position, message=message))

    def _expect(self, kind: str) -> Token:
        token = self.tokens[self.index]
        if token.kind != kind:
            self._fail(token, f"mismatched input '{token.text}' expecting '{kind}'")
        self.index += 1
        return token

    def _accept(self, kind: str) -> bool:
        if self.tokens[self.index].kind != kind:
            return False
        self.index += 1
        return True

    def _written(self, node: Node, start: int) -> Node:
        self.spans[node.id] = (start, self.tokens[self.index - 1].end)
        return node

    # Operators

    def _expression(self, floor: int = _ANYTHING) -> Node:
        """Parses an expression whose operators have a higher precedence than `floor`."""
        self.nesting += 1
        if self.nesting > NESTING_MAX:
            raise _unplaced(f"expression recursion limit exceeded: {NESTING_MAX}")
        start = self.tokens[self.index].position
        left = self._unary()
        while True:
            operator = self.tokens[self.index]
            level, function = _BINARY.get(operator.kind, (_ANYTHING, ""))
            if level > floor:
                left = self._binary(left, operator, level, function)
            elif floor == _ANYTHING and operator.kind == "?":
                left = self._conditional(left, operator)
            else:
                self.nesting -= 1
                return left
            self._written(left, start)

    def _binary(self, left: Node, operator: Token, level: int, function: str) -> Node:
        self.index += 1
        operands = [left, self._expression(level)]
        while level <= _LOGICAL and self._accept(operator.kind):
            operands.append(self._expression(level))
        return self.built.call(operator.position, function, *operands)

    def _conditional(self, condition: Node, operator: Token) -> Node:
        self.index += 1
        accepted = self._expression(_NO_CONDITIONAL)
        self._expect(":")
        rejected = self._expression()
        return self.built.call(operator.position, tree.CONDITIONAL, condition, accepted, rejected)

    def _unary(self) -> Node:
        first = self.tokens[self.index]
        if first.kind not in _OPERAND_STARTS:
            self._no_operand(first)
            first = self.tokens[self.index]
        if first.kind not in ("!", "-") or self._is_negative_number(first):
            return self._members(first.position)
        repeated = 0
        while self._accept(first.kind):
            repeated += 1
        following = self.tokens[self.index]
        if following.kind not in _OPERAND_STARTS:
            expected = _OPERAND_EXPECTED if first.kind == "!" else _AFTER_MINUS_EXPECTED
            self._fail(following, f"extraneous input '{following.text}' expecting {expected}")
        operand = self._members(following.position)
        if repeated % 2 == 0:
            return operand
        function = tree.NOT if first.kind == "!" else tree.NEGATE
        return self._written(self.built.call(first.position, function, operand), first.position)

    def _is_negative_number(self, token: Token) -> bool:
        return token.kind == "-" and self.tokens[self.index + 1].kind in (tokens.INT, tokens.FLOAT)

    # Selections, indexes and calls

    def _members(self, start: int) -> Node:
        node = self._operand()
        while True:
            token = self.tokens[self.index]
            if token.kind == ".":
                self.index += 1
                node = self._member(node, token)
            elif token.kind == "[":
                self.index += 1
                optional = self._accept("?")
                index = self._expression()
                self._expect("]")
                function = tree.OPTIONAL_INDEX if optional else tree.INDEX
                node = self.built.call(token.position, function, node, index)
            else:
                return node
            self._written(node, start)

    def _member(self, operand: Node, dot: Token) -> Node:
        optional = self._accept("?")
        name = self.tokens[self.index]
        if name.kind not in (tokens.IDENTIFIER, tokens.ESCAPED):
            self._fail(name, f"no viable alternative at input '.{name.text}'")
        self.index += 1
        if optional:
            field_name = self.built.literal(dot.position, _field_text(name))
            return self.built.call(dot.position, tree.OPTIONAL_SELECT, operand, field_name)
        if name.kind == tokens.ESCAPED or self.tokens[self.index].kind != "(":
            return self.built.select(dot.position, operand, _field_text(name))
        bracket = self._expect("(")
        arguments = self._arguments(")")
        return self._call(bracket, name.text, operand, arguments)

    def _call(self, bracket: Token, name: str, target: Node | None, arguments: list[Node]) -> Node:
        try:
            expanded = macros.expand(self.built, bracket.position, name, target, arguments)
        except macros.MacroError as error:
            self._report(error.position, str(error))
            return self.built.literal(bracket.position, None)
        if expanded is not None:
            if self.built.count > NODES_MAX:
                raise _unplaced(f"expression recursion limit exceeded: {DEPTH_MAX}")
            return expanded
        return self.built.call(bracket.position, name, *arguments, target=target)

    def _arguments(self, closing: str) -> list[Node]:
        arguments: list[Node] = []
        if self._accept(closing):
            return arguments
        while True:
            arguments.append(self._expression())
            if not self._accept(","):
                break
        self._expect(closing)
        return arguments

    # Operands

    def _operand(self) -> Node:
        token = self.tokens[self.index]
        misplaced = token.kind in ("!", "-") and not self._is_negative_number(token)
        if misplaced or token.kind not in _OPERAND_STARTS:
            self._no_operand(token)
            token = self.tokens[self.index]
        self.index += 1
        match token.kind:
            case "(":
                inner = self._expression()
                self._expect(")")
                return inner
            case "[":
                return self._written(self._list(token), token.position)
            case "{":
                return self._written(self._map(token), token.position)
            case tokens.IDENTIFIER | ".":
                return self._written(self._named(token), token.position)
            case _:
                return self._written(self._literal(token), token.position)

    def _no_operand(self, token: Token) -> None:
        """Reports a token that cannot begin an operand; continues if dropping the token is enough.

        Raises _Abandoned otherwise.
        """
        following = self.tokens[min(self.index + 1, len(self.tokens) - 1)].kind
        droppable = token.kind != tokens.END and following in _OPERAND_STARTS
        how = "extraneous" if droppable else "mismatched"
        message = f"Syntax error: {how} input '{token.text}' expecting {_OPERAND_EXPECTED}"
        self._report(token.position, message)
        if not droppable:
            raise _Abandoned
        self.index += 1

    def _named(self, token: Token) -> Node:
        position = token.position
        leading = token.kind == "."
        if leading:
            token = self._expect(tokens.IDENTIFIER)
        if token.text in tokens.RESERVED:
            self._report(token.position, f"reserved identifier: {token.text}")
        name = f".{token.text}" if leading else token.text
        following = self.tokens[self.index]
        if following.kind == "(":
            self.index += 1
            return self._call(following, name, None, self._arguments(")"))
        message = self._message_name(name)
        if message is not None:
            return self.built.message(self._skip_message(), message)
        return self.built.ident(position, name)

    def _message_name(self, name: str) -> str | None:
        """The dotted name if a message literal `a.b{` begins here, else None."""
        index = self.index
        while self.tokens[index].kind == "." and self.tokens[index + 1].kind == tokens.IDENTIFIER:
            name = f"{name}.{self.tokens[index + 1].text}"
            index += 2
        if self.tokens[index].kind != "{":
            return None
        self.index = index
        return name

    def _skip_message(self) -> int:
        """Reads the fields of a message literal, which is always refused; only its name is used."""
        opening = self._expect("{")
        while not self._accept("}"):
            self._accept("?")
            self._expect(tokens.IDENTIFIER)
            self._expect(":")
            self._expression()
            if not self._accept(","):
                self._expect("}")
                break
        return opening.position

    def _list(self, opening: Token) -> ListLiteral:
        elements: list[Node] = []
        optional: set[int] = set()
        while not self._accept("]"):
            if elements and self.tokens[self.index].kind == ",":
                self._fail(self.tokens[self.index], "extraneous input ',' expecting ']'")
            if self._accept("?"):
                optional.add(len(elements))
            elements.append(self._expression())
            if not self._accept(","):
                self._expect("]")
                break
        return self.built.list_of(opening.position, elements, frozenset(optional))

    def _map(self, opening: Token) -> MapLiteral:
        entries: list[MapEntry] = []
        while not self._accept("}"):
            optional = self._accept("?")
            key = self._expression()
            colon = self._expect(":")
            value = self._expression()
            entries.append(self.built.entry(colon.position, key, value, optional=optional))
            if not self._accept(","):
                self._expect("}")
                break
        return self.built.map_of(opening.position, entries)

    def _literal(self, token: Token) -> Literal:
        position, kind, text = token.position, token.kind, token.text
        if kind == "-":
            number = self.tokens[self.index]
            self.index += 1
            kind, text = number.kind, "-" + number.text
        try:
            return self.built.literal(position, _literal_value(kind, text))
        except tokens.LiteralError as error:
            self._report(position, str(error))
            return self.built.literal(position, None)


def _literal_value(kind: str, text: str) -> object:
    match kind:
        case tokens.INT:
            return tokens.integer(text)
        case tokens.UINT:
            return tokens.unsigned(text)
        case tokens.FLOAT:
            return tokens.double(text)
        case tokens.STRING:
            return tokens.string(text)
        case tokens.BYTES:
            return tokens.octets(text)
        case "true":
            return True
        case "false":
            return False
        case _:
            return None


def _field_text(name: Token) -> str:
    return name.text[1:-1] if name.kind == tokens.ESCAPED else name.text
