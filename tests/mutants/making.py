"""The mutants of a module: small changes, one at a time, made by the operators of mutmut.

A mutant is named as mutmut names it (`app.domain.devices.taints.x_fits__mutmut_3`), so a seed draws
the same ones as long as the code is the same. mutmut mutates functions and methods, but none that
are decorated (except class and static methods), and no code of modules.
"""

import ast
import difflib
import importlib
import inspect
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from types import CodeType, FunctionType

import libcst as cst
from libcst.metadata import MetadataWrapper, ParentNodeProvider, PositionProvider
from mutmut.mutation import file_mutation
from mutmut.mutation.trampoline_templates import mangle_function_name
from mutmut.utils.format_utils import get_mutant_name


class NotApplicable(Exception):
    """A mutant that cannot be put into the running function."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Mutant:
    """A change of one function."""

    name: str
    path: Path
    """Relative to the root of the repository."""
    module: str
    owner: str | None
    """The class of a method."""
    function: str
    lines: range
    """The lines of the changed statement; of a compound one, of its header."""
    body: range
    """The lines of the whole function."""
    tree: cst.Module
    change: file_mutation.Mutation

    def source(self) -> str:
        """The text of the changed module."""
        changed = file_mutation.deep_replace(
            self.tree, self.change.original_node, self.change.mutated_node
        )
        assert isinstance(changed, cst.Module)
        return changed.code

    def difference(self) -> list[str]:
        """The removed and the added lines."""
        before, after = self.tree.code.splitlines(), self.source().splitlines()
        lines = difflib.unified_diff(before, after, lineterm="", n=0)
        return [line for line in lines if line[:3] not in ("---", "+++") and line[:2] != "@@"]

    def apply(self) -> None:
        """Changes the function in this process, for all who have imported it."""
        function = _live(self)
        source = self.source()
        code = _code(compile(source, str(self.path), "exec", dont_inherit=True), self, function)
        try:
            function.__code__ = code.replace(co_filename=function.__code__.co_filename)
        except ValueError as problem:
            raise NotApplicable(str(problem)) from problem
        defaults = _defaults(source, function)
        if defaults != _defaults(self.tree.code, function):
            names = vars(importlib.import_module(self.module))
            positional, named = (
                [None if text is None else eval(text, names) for text in texts]
                for texts in defaults
            )
            function.__defaults__ = tuple(positional) or None
            keys = function.__kwdefaults__ or {}
            function.__kwdefaults__ = dict(zip(keys, named, strict=True)) or None


def mutants(root: Path, path: Path) -> Iterator[Mutant]:
    """All mutants of a module; `path` is relative to `root`."""
    tree, changes, _, _ = file_mutation.create_mutations(str(path), (root / path).read_text())
    wrapper = MetadataWrapper(tree, unsafe_skip_copy=True)
    places = wrapper.resolve(PositionProvider)
    parents = wrapper.resolve(ParentNodeProvider)
    module = ".".join(path.with_suffix("").parts).removesuffix(".__init__")
    for function, of_function in file_mutation.group_by_top_level_node(changes).items():
        if not isinstance(function, cst.FunctionDef):
            continue
        above = parents.get(parents[function])
        owner = above.name.value if isinstance(above, cst.ClassDef) else None
        mangled = mangle_function_name(name=function.name.value, class_name=owner)
        for number, change in enumerate(of_function, 1):
            yield Mutant(
                name=get_mutant_name(path, f"{mangled}__mutmut_{number}"),
                path=path,
                module=module,
                owner=owner,
                function=function.name.value,
                lines=_statement(change.original_node, places, parents),
                body=range(places[function].start.line, places[function].end.line + 1),
                tree=tree,
                change=change,
            )


def _statement(node: cst.CSTNode, places, parents) -> range:
    """The lines of the statement around a node, without the body of a compound statement."""
    statement = node
    while not isinstance(statement, cst.BaseSmallStatement | cst.BaseCompoundStatement):
        statement = parents[statement]
    first, last = places[statement].start.line, places[statement].end.line
    body = getattr(statement, "body", None) or getattr(statement, "cases", None)
    if body and statement is not node:
        inner = body[0] if isinstance(body, tuple | list) else body
        if isinstance(inner, cst.BaseSuite):
            inner = inner.body[0]
        # A node of the header; those of the body are inside of statements of their own.
        last = max(first, places[inner].start.line - 1)
        last = max(last, places[node].end.line if node in places else last)
    return range(first, last + 1)


def _live(mutant: Mutant) -> FunctionType:
    owner = importlib.import_module(mutant.module)
    if mutant.owner is not None:
        owner = getattr(owner, mutant.owner)
    function = vars(owner).get(mutant.function)
    function = getattr(function, "__func__", function)
    if not isinstance(function, FunctionType) or hasattr(function, "__wrapped__"):
        raise NotApplicable(f"{mutant.name}: no plain function")
    return function


def _code(module: CodeType, mutant: Mutant, function: FunctionType) -> CodeType:
    """The code of the function among the constants of a compiled module."""
    level = [module]
    if mutant.owner is not None:
        level = [code for code in _codes(module) if code.co_name == mutant.owner]
    line = function.__code__.co_firstlineno
    for outer in level:
        for code in _codes(outer):
            if code.co_name == mutant.function and code.co_firstlineno == line:
                return code
    raise NotApplicable(f"{mutant.name}: not in the compiled module")


def _codes(outer: CodeType) -> Iterator[CodeType]:
    return (constant for constant in outer.co_consts if inspect.iscode(constant))


def _defaults(source: str, function: FunctionType) -> tuple[list[str], list[str | None]]:
    """The texts of the default values of a function, positional and named ones."""
    line = function.__code__.co_firstlineno
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            first = min([node.lineno, *(each.lineno for each in node.decorator_list)])
            if first == line:
                named = [each for each in node.args.kw_defaults if each is not None]
                return list(map(ast.unparse, node.args.defaults)), list(map(ast.unparse, named))
    raise NotApplicable(f"no function begins in line {line}")
