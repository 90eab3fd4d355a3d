"""The commands of kubectl in a text, which tell what the tables below them show.

    $ kubectl get resourceclaims -n shop        the kind and the namespace
    NAME   STATE     AGE
    one    pending   9s

A document shows its command and the output in two blocks, often with a sentence between them; a
command that asks for several kinds has a table for each.
"""

from collections import deque
from dataclasses import dataclass

from app.domain.objects import registry
from app.domain.objects.kind import Kind

COMMANDS_MAX = 4
"""Commands that are remembered, newest first, for the tables that follow."""

LINES_BETWEEN_MAX = 10
"""Lines between a command, or its last table, and a table of it."""

WORDS_MAX = 64
"""Words of a line that are searched for a command."""

LINE_MAX = 4096
"""Characters of a line that are searched for a command."""

_PROGRAMS = frozenset({"kubectl", "oc", "k"})
_WITH_VALUES = frozenset(
    {"-n", "-o", "-l", "-L", "-f", "-k", "--namespace", "--output", "--selector", "--label-columns"}
    | {"--context", "--kubeconfig", "--field-selector", "--sort-by", "--as", "--as-group"}
    | {"--cluster", "--user", "--server", "-s", "--token", "--chunk-size", "--request-timeout"}
)
"""Options whose value may be the next word."""

_NOT_PRINTED = ("yaml", "json", "name", "go-template", "template")
"""Output formats that print no table."""

_ENDS = frozenset({"|", "||", "&&", ";", "&", ">", ">>", "2>", "2>&1", "--", "\\"})
_AROUND = "`'\"()$*_,:"


@dataclass(slots=True)
class PrintedCommand:
    """A command that asks for objects; `line` is its line, or that of its last table.

    `kinds` are those that redra knows among the asked ones. `is_open` is true when it asks for
    kinds that redra does not know too, `is_any` when for all of a category, and `has_columns` when
    for other columns than those of the kind.
    """

    line: int
    kinds: tuple[Kind, ...]
    namespace: str
    is_open: bool
    is_any: bool
    has_columns: bool

    def is_of(self, kind: Kind | None) -> bool:
        """True when the command may have printed a table of this kind."""
        return self.is_any or kind in self.kinds


class Commands:
    """The newest commands of a text, while it is read from the top."""

    def __init__(self) -> None:
        self._commands: deque[PrintedCommand] = deque(maxlen=COMMANDS_MAX)

    def note(self, line: str, number: int) -> None:
        """Remember the command in a line of text; a prompt with another program ends them."""
        command = _command(line, number)
        if command is not None:
            self._commands.appendleft(command)
        elif _is_prompt(line):
            self._commands.clear()

    def of(self, number: int, kind: Kind | None) -> PrintedCommand | None:
        """The newest command that may have printed a table of this kind at a line.

        For an unknown kind, that is the newest one that asks for a single kind.
        """
        for command in self._commands:
            if number - command.line > LINES_BETWEEN_MAX:
                continue
            if kind is None:
                return command
            if command.is_of(kind):
                return command
        return None


def _is_prompt(line: str) -> bool:
    """True for a line behind the prompt of a shell, a comment of one, and a heading."""
    words = line[:LINE_MAX].split(maxsplit=2)[:2]
    return len(words) == 2 and words[0].endswith(("$", "%", "#"))


def _command(line: str, number: int) -> PrintedCommand | None:
    """The command in a line, alone or within a sentence; None without one that prints a table."""
    if len(line) > LINE_MAX:
        return None
    words = line.split(maxsplit=WORDS_MAX)[:WORDS_MAX]
    begins = [at for at, word in enumerate(words) if _is_program(word)]
    arguments, options = _first_get(words, begins)
    output = options.get("-o", options.get("--output", ""))
    if not arguments or output.startswith(_NOT_PRINTED):
        return None
    names = [name.partition("/")[0] for name in arguments[1].split(",") if name]
    known = [registry.find_name(name) for name in names]
    return PrintedCommand(
        line=number,
        kinds=tuple(named[0] for named in known if named),
        namespace=options.get("-n", options.get("--namespace", "")).strip(_AROUND),
        is_open=not all(known),
        is_any="all" in names,
        has_columns=output.startswith("custom-columns"),
    )


def _first_get(words: list[str], begins: list[int]) -> tuple[list[str], dict[str, str]]:
    """The arguments and options of the first of these commands that gets objects.

    `kubectl events` gets Events.
    """
    for begin in begins:
        arguments, options = _arguments(words[begin + 1 :])
        if arguments[:1] == ["events"]:
            return ["get", *arguments], options
        if len(arguments) > 1 and arguments[0] == "get":
            return arguments, options
    return [], {}


def _is_program(word: str) -> bool:
    name = word.strip(_AROUND).rpartition("/")[2]
    return name.removesuffix(".exe").removesuffix(".sh").rpartition(".")[2] in _PROGRAMS


def _arguments(words: list[str]) -> tuple[list[str], dict[str, str]]:
    """The arguments and options of a command, up to the end of its quotation or pipe."""
    arguments: list[str] = []
    options: dict[str, str] = {}
    at = 0
    while at < len(words):
        word = words[at]
        at += 1
        if word in _ENDS:
            break
        bare = word.rstrip("`;),.'\"")
        if bare.startswith("-"):
            name, equals, value = bare.partition("=")
            if not equals and name in _WITH_VALUES and at < len(words):
                value = words[at].rstrip("`;),'\"")
                at += 1
            elif not equals and len(name) > 2 and name[:2] in ("-n", "-o") and name[2] != "-":
                name, value = name[:2], name[2:]
            options[name] = value
        else:
            arguments.append(bare)
        if word.endswith(("`", ";")):
            break
    return arguments, options
