"""The commands of kubectl in a text, which say what the tables below them show.

    $ kubectl get resourceclaims -n shop        the kind and the namespace
    NAME   STATE     AGE
    one    pending   9s

A document shows its command and the output in two blocks, often with a sentence between them; a
command that asks for several kinds has a table for each.
"""

import re
from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass

from app.adapters.history.printouts import columns
from app.domain.objects import registry
from app.domain.objects.kind import Kind
from app.domain.values import names

COMMANDS_MAX = 4
"""Commands that are remembered, newest first, for the tables that follow."""

LINES_BETWEEN_MAX = 10
"""Lines between a command, or its last table, and a table of it."""

LINES_TOGETHER_MAX = 2
"""Lines from one command to the next within a group; a table has more."""

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

_NAMED_AFTER = ("kubectl_", "oc_")
"""The beginnings of files that are called after the command whose output they hold."""

_SCREEN = re.compile(r"(?P<kind>[a-z.]+)-(?P<namespace>[a-z0-9-]+)-\d{13,19}\.csv")
"""The name of a file in which k9s keeps a screen: kind, namespace and time."""

_NOT_PRINTED = ("yaml", "json", "name", "go-template", "template")
"""Output formats that print no table."""

_TEMPLATES = ("jsonpath", "go-template", "template")
"""Output formats whose text only the template explains."""

_ENDS = frozenset({"|", "||", "&&", ";", "&", ">", ">>", "2>", "2>&1", "--", "\\"})
_AROUND = "`'\"()$*_,:"
_AROUND_VALUES = "`'\")*_,:"
_PROMPT = re.compile(
    r"\s*(?:\S*[$%#]|\[\S+ \S+\][$#]|\S+@\S+(?: \S+ [$#]|>)|PS [^>]*>|[\u279c\u276f](?: \S+)?)\s+\S"
)
PROMPT_MAX = 256
"""Characters of a line that are searched for the prompt of a shell."""


@dataclass(slots=True)
class PrintedCommand:
    """A command that asks for objects; `line` is its line, or that of its last table.

    `kinds` are those that redra knows among the asked ones. `is_open` is true when it asks for
    kinds that redra does not know too, `is_any` when for all of a category, and `has_columns` when
    for other columns than those of the kind: `columns` are their titles and paths. `is_filtered` is
    true when the titles may be missing. `group` is that of the commands that stand together.
    """

    line: int
    group: int
    kinds: tuple[Kind, ...]
    namespace: str
    is_open: bool
    is_any: bool
    has_columns: bool
    columns: tuple[tuple[str, str], ...]
    is_filtered: bool

    def is_of(self, kind: Kind | None) -> bool:
        """True when the command may have printed a table of this kind."""
        return self.is_any or kind in self.kinds


@dataclass(frozen=True, slots=True)
class NamesCommand:
    """A command with `-o name`; the names of all namespaces stand there without theirs."""

    namespace: str
    is_of_all: bool


class Commands:
    """The newest commands of a text, while it is read from the top.

    Commands that stand together are a group. Nothing tells which of them printed a table below
    them, unless only one asks for its kind.
    """

    def __init__(self) -> None:
        self._commands: deque[PrintedCommand] = deque(maxlen=COMMANDS_MAX)
        self._group = 0
        self._line = 0
        self._names: NamesCommand | None = None
        self._has_template = False
        self._noted = 0

    def note(self, line: str, number: int) -> None:
        """Remember the commands in a line of text; a prompt with another program ends them."""
        commands = list(_commands(line, number))
        self._names, self._has_template = _other_output(line)
        self._noted = number
        if not commands or number - self._line > LINES_TOGETHER_MAX:
            self._group += 1
        self._line = number
        for command in commands:
            command.group = self._group
            self._commands.appendleft(command)
        if not commands and _PROMPT.match(line[:PROMPT_MAX]):
            self._commands.clear()

    def names_above(self, number: int) -> NamesCommand | None:
        """The command with `-o name` on the line above a line; None without one."""
        return self._names if self._noted == number - 1 else None

    def is_template_above(self, number: int) -> bool:
        """True when the command on the line above a line prints with a template."""
        return self._has_template and self._noted == number - 1

    def of(self, number: int, kind: Kind | None) -> PrintedCommand | None:
        """The newest command that may have printed a table of this kind at a line.

        For an unknown kind, that is the newest one.
        """
        for command in self._commands:
            if number - command.line > LINES_BETWEEN_MAX:
                continue
            if kind is None:
                return command
            if command.is_of(kind):
                return command
        return None

    def others_of_group(self, command: PrintedCommand) -> list[PrintedCommand]:
        """The other commands of the group of a command."""
        return [
            other
            for other in self._commands
            if other is not command and other.group == command.group
        ]

    def namespace(self, command: PrintedCommand, kind: Kind | None) -> str:
        """The namespace of a table of this kind that a command printed; empty if not known."""
        others = (
            each for each in self.others_of_group(command) if kind is None or each.is_of(kind)
        )
        is_sure = all(each.namespace == command.namespace for each in others)
        return command.namespace if is_sure else ""


def of_file(name: str) -> Commands:
    """The commands of a text in a file; collectors such as sos call the file after the command.

    Examples: `kubectl_get_resourceclaims_-n_shop`, and `pods-shop-1767323045000000000.csv` of k9s.
    """
    commands = Commands()
    base = name.rpartition("/")[2]
    if base.startswith(_NAMED_AFTER):
        commands.note(base.replace("_", " ").removesuffix(".txt"), 0)
    elif (screen := _SCREEN.fullmatch(base)) is not None and screen["namespace"] != "all":
        commands.note(f"kubectl get {screen['kind']} -n {screen['namespace']}", 0)
    return commands


def _commands(line: str, number: int) -> Iterator[PrintedCommand]:
    """The commands in a line, alone or within a sentence, that print tables.

    `kubectl events` gets Events.
    """
    if len(line) > LINE_MAX:
        return
    words = line.split(maxsplit=WORDS_MAX)[:WORDS_MAX]
    begins = [at for at, word in enumerate(words) if _is_program(word)]
    for begin in begins:
        # A short name of the program may be the name of an object, too.
        later = (at for at in begins if at > begin and words[at + 1 : at + 2] == ["get"])
        arguments, options = _arguments(words[begin + 1 : next(later, None)])
        if arguments[:1] == ["events"]:
            arguments.insert(0, "get")
        output = options.get("-o", options.get("--output", "")).lstrip("'\"")
        if arguments[:1] != ["get"] or len(arguments) == 1 or output.startswith(_NOT_PRINTED):
            continue
        kind_names = [name.partition("/")[0] for name in arguments[1].split(",") if name]
        known = [registry.find_name(name) for name in kind_names]
        namespace = options.get("-n", options.get("--namespace", "")).strip(_AROUND_VALUES)
        yield PrintedCommand(
            line=number,
            group=0,
            kinds=tuple(named[0] for named in known if named),
            # In place of a name may stand a variable, or words such as <namespace>.
            namespace=namespace if not names.label(namespace) else "",
            is_open=not all(known),
            is_any="all" in kind_names,
            has_columns=output.startswith("custom-columns"),
            columns=columns.of_output(output),
            is_filtered="--no-headers" in options or any("|" in word for word in words[begin:]),
        )


def _other_output(line: str) -> tuple[NamesCommand | None, bool]:
    """The last command in a line with `-o name`, and whether it has one with a template."""
    names_command, has_template = None, False
    words = line.split(maxsplit=WORDS_MAX)[:WORDS_MAX] if len(line) <= LINE_MAX else []
    for begin in (at for at, word in enumerate(words) if _is_program(word)):
        arguments, options = _arguments(words[begin + 1 :])
        output = options.get("-o", options.get("--output", "")).lstrip("'\"")
        if arguments[:1] != ["get"] or "|" in words[begin:]:
            continue
        namespace = options.get("-n", options.get("--namespace", "")).strip(_AROUND_VALUES)
        has_template = has_template or output.startswith(_TEMPLATES)
        if output == "name":
            is_of_all = bool({"-A", "--all-namespaces"} & options.keys())
            namespace = namespace if not names.label(namespace) else ""
            names_command = NamesCommand(namespace, is_of_all)
    return names_command, has_template


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
                word = words[at]
                value = word.rstrip("`;),'\"")
                at += 1
            elif not equals and len(name) > 2 and name[:2] in ("-n", "-o") and name[2] != "-":
                name, value = name[:2], name[2:]
            options[name] = value
        else:
            arguments.append(bare)
        if word.rstrip(",.:)*_'\"").endswith(("`", ";")):
            break
    return arguments, options
