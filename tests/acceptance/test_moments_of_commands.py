"""A moment has the same forms in every option that takes one."""

import itertools
import json
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from app.cli.application import program
from app.domain.values import moments, timestamps
from app.domain.values.timestamps import SECOND, Instant
from tests import draws
from tests.command_line import ROOT, database_running, redra

RECORDING = ROOT / "examples" / "recordings" / "maintenance"
SENTENCE = (
    "redra: 'yesterday' is neither a revision nor an instant; give a number such as 42, a time "
    "such as 2026-01-02T03:04:05Z or 03:04:05, or 10m (before now, in a recording before its last "
    "event)\n"
)
OF_MOMENTS = {"--at", "--since", "--until", "--after", "--from"}


def commands(group: object = None, front: tuple[str, ...] = ()) -> Iterator[tuple]:
    """Each command with the words that name it."""
    group = group or program()
    for name, command in group.commands.items():
        if hasattr(command, "commands"):
            yield from commands(command, (*front, name))
        yield (*front, name), command


def required(command: object) -> list[str]:
    """Something for each argument and option that has to be given."""
    words: list[str] = []
    for parameter in command.params:
        if parameter.required:
            is_option = parameter.param_type_name == "option"
            words += [parameter.opts[0], "prod"] if is_option else ["prod"]
    return words


TAKING = [
    (words, command, option)
    for words, command in commands()
    for option in command.params
    if option.param_type_name == "option" and option.metavar == "MOMENT"
]


def test_every_option_of_a_moment_is_read_in_one_place() -> None:
    named = [
        (words, option.opts)
        for words, command in commands()
        for option in command.params
        if option.param_type_name == "option"
        and OF_MOMENTS & {*option.opts}
        and option.metavar != "MOMENT"
    ]
    assert named == []
    assert len(TAKING) >= 25


@pytest.mark.parametrize(
    ("words", "command", "option"),
    TAKING,
    ids=[f"{' '.join(words)} {option.opts[0]}" for words, _, option in TAKING],
)
def test_text_that_is_no_moment_is_refused_in_the_same_words(
    words: tuple[str, ...], command: object, option: object, tmp_path: Path
) -> None:
    for name in option.opts:
        given = redra(*words, *required(command), name, "yesterday", data=None)
        assert given == (2, "", SENTENCE)


@pytest.mark.parametrize(
    "words",
    [
        ("fork", "prod@yesterday", "--history", "new"),
        ("rehearse", "prod@yesterday", "--to", "1.37"),
        ("minimise", "prod@yesterday", "--keep", "violation", "-o", "out.zip"),
        ("export", "prod@yesterday", "--as", "pytest", "-o", "out.py"),
        ("diff", "prod@yesterday", "prod"),
        ("diff", "prod", "prod@yesterday"),
    ],
    ids=" ".join,
)
def test_moment_behind_a_history_is_refused_in_the_same_words(
    words: tuple[str, ...], tmp_path: Path
) -> None:
    assert redra(*words, data=tmp_path) == (2, "", SENTENCE)


@pytest.mark.parametrize(
    "words",
    [
        ("fork", "prod@", "--history", "new"),
        ("rehearse", "prod@", "--to", "1.37"),
        ("minimise", "prod@", "--keep", "violation", "-o", "out.zip"),
        ("diff", "prod@", "prod"),
        ("diff", "prod", "prod@"),
        ("why", "pod/web", "--history", "prod@"),
        ("findings", "--server", "http://127.0.0.1:1/h/prod@/"),
    ],
    ids=" ".join,
)
def test_mark_without_a_moment_is_refused_and_is_not_the_end(
    words: tuple[str, ...], tmp_path: Path
) -> None:
    code, out, error = redra(*words, data=tmp_path)
    assert (code, out) == (2, "")
    assert "there is no moment behind the @ of 'prod@'" in error


@pytest.mark.parametrize("words", [("fork", "prod@3", "--history", "x"), ("rehearse", "prod@3")])
def test_moment_that_is_named_twice_is_refused(words: tuple[str, ...], tmp_path: Path) -> None:
    more = ("--to", "1.37") if words[0] == "rehearse" else ()
    code, out, error = redra(*words, *more, "--at", "4", data=tmp_path)
    assert (code, out) == (2, "")
    assert "the moment is named twice, '3' and '4'" in error


def test_common_moment_that_applies_to_no_side_is_refused(tmp_path: Path) -> None:
    refusal = "redra: --at: both histories have a moment of their own; leave it out\n"
    assert redra("diff", "a@5", "b@2", "--at", "9", data=tmp_path) == (2, "", refusal)


@pytest.fixture(scope="module")
def data(tmp_path_factory):
    """A data folder with a recording, whose database runs."""
    folder = tmp_path_factory.mktemp("moments") / "data"
    with database_running(folder, recorded=True):
        yield folder


@pytest.fixture(scope="module")
def forms(data: Path) -> list[str]:
    """One moment amid the history in all its forms; the first is the revision."""
    _, out, _ = redra("log", "prod", data=data)
    events = [json.loads(line) for line in out.splitlines()]
    times = [event["stamp"]["time"] for event in events]
    revision = next(
        event["revision"]
        for event, after in itertools.pairwise(events)
        if event["revision"] > 300 and event["stamp"]["time"] != after["stamp"]["time"]
    )
    time = times[revision - 1]
    instant, end = timestamps.parse(time), timestamps.parse(times[-1])
    # Whole seconds before the end name the moment where nothing else happened since that second.
    before = (end - instant) // SECOND
    rough = [f"{before}s", f"-{before}s"]
    rough = [text for text in rough if _revision(data, text) == revision]
    day, _, clock = time.partition("T")
    offset = timestamps.micro_text(instant + 2 * 3600 * SECOND).removesuffix("Z") + "+02:00"
    return [str(revision), time, f"{day} {clock}", clock, clock.removesuffix("Z"), offset, *rough]


@pytest.fixture(scope="module")
def end(data: Path) -> Instant:
    """The time of the last event."""
    events = [json.loads(line) for line in redra("log", "prod", data=data)[1].splitlines()]
    return timestamps.parse(events[-1]["stamp"]["time"])


def _revision(data: Path, moment: str) -> int:
    code, out, error = redra("head", "prod", "--to", moment, data=data)
    assert code == 0, error
    return int(json.loads(out)["revision"])


QUESTIONS = {
    "findings": ("findings", "prod", "--at"),
    "why": ("why", "device/gpu.example.com/worker-1/gpu-0", "--history", "prod", "--at"),
    "timeline until": ("timeline", "prod", "--until"),
    "timeline at": ("timeline", "prod", "--at"),
    "map": ("map", "--history", "prod", "--at"),
    "scan": ("scan", "prod", "--at"),
    "log": ("log", "prod", "--after"),
    "log since": ("log", "prod", "--since"),
    "head": ("head", "prod", "--to"),
    "head at": ("head", "prod", "--at"),
    "blast": ("blast", "--delete", "node/worker-1", "--history", "prod", "--at"),
    "lint": ("lint", "--history", "prod", "--at"),
    "cel": ("cel", "true", "--history", "prod", "--at"),
    "verify": ("verify", "prod", "--to"),
    "diff": ("diff", "prod", "prod", "--at"),
}  # fmt: skip


OF_LINES = {"timeline until", "timeline at", "log", "log since", "head", "head at", "cel", "scan"}
"""Questions whose answer is a list, is signed, or is a value, and has no field `asOf`."""


@draws.BY_DAY
@pytest.mark.database
@pytest.mark.parametrize("name", QUESTIONS)
def test_all_forms_of_a_moment_mean_the_same(
    data: Path, forms: list[str], end: Instant, name: str
) -> None:
    """Each question takes the revision, the time and one more form, by turns; all with draws."""
    first_two, others = forms[:2], forms[2:]
    if not draws.WHOLE:
        others = [others[[*QUESTIONS].index(name) % len(others)]]
    answers = {form: redra(*QUESTIONS[name], form, data=data) for form in (*first_two, *others)}
    first = answers[forms[0]]
    assert first[1]
    meant = {form: _meaning(form, end) for form in answers}
    assert [
        form
        for form, (code, out, error) in answers.items()
        if (code, out, error.replace(meant[form], "")) != first
    ] == []


def _meaning(form: str, end: Instant) -> str:
    """What a command says of a relative moment on standard error."""
    meaning = moments.meaning(form, moments.HistoryEnd(instant=end))
    return f"{meaning}\n" if meaning else "\0"


@draws.in_turn("rows of wrongs")
@pytest.mark.database
@pytest.mark.parametrize("name", QUESTIONS)
def test_relative_moment_is_named_as_an_instant(data: Path, end: Instant, name: str) -> None:
    words = QUESTIONS[name]
    assert _meaning("1m", end) in redra(*words, "1m", data=data)[2]
    if name not in OF_LINES:
        _, out, error = redra(*words, "1m", "-o", "json", data=data)
        assert _meaning("1m", end) in error
        assert json.loads(out)["asOf"] + "\n" == _meaning("1m", end)
    assert "before the last event" not in redra(*words, "100", data=data)[2]


@pytest.mark.database
def test_refusal_names_the_instant_of_a_relative_moment(data: Path, end: Instant) -> None:
    """The day of a time that is later than the end is the one before."""
    late = timestamps.micro_text(Instant(end + SECOND))[11:19]
    words = ("why", "pod/nobody", "-n", "taints", "--history", "prod", "--at", late)
    code, _, error = redra(*words, data=data)
    assert code
    assert error.startswith(_meaning(late, end))
    assert "not found" in error
    code, out, error = redra("map", "prod", "--at", late, data=data)
    assert (code, error) == (0, _meaning(late, end))
    assert out == "no pool is published at revision 0\n"


@pytest.mark.database
def test_taken_name_is_refused_without_an_option(data: Path) -> None:
    for words in (("copy", "prod", "prod"), ("create", "prod")):
        sentence = "redra: the history 'prod' already exists; choose another name\n"
        assert redra("histories", *words, data=data)[2] == sentence, words


# {} stands for the moment, a minute before the end.
OF_HISTORIES_UP_TO = {
    "export": "export prod@{} --force --as audit -o {out}",
    "export bundle": "export prod@{} --force -o {out}",
    "export manifests": "export prod@{} --as manifests -o {out}",
    "fork": "fork prod@{} --history made",
    "fork until": "fork prod@500 --history made --inputs recorded --until {}",
    "histories copy": "histories copy prod made --to {}",
    "minimise": "minimise prod@{} --keep violation --force -o {out}",
    "rehearse": "rehearse prod --to 1.36 --at {}",
    "watch-over": "watch-over prod --until {}",
    "watch-over since": "watch-over prod --until 532 --since {}",
}
"""Commands that make something of a history up to a moment."""


@draws.in_turn("ways")
@pytest.mark.database
@pytest.mark.parametrize("name", OF_HISTORIES_UP_TO)
def test_command_that_makes_something_names_the_instant_of_a_relative_moment(
    data: Path, tmp_path: Path, end: Instant, name: str
) -> None:
    line = OF_HISTORIES_UP_TO[name].replace("{out}", str(tmp_path / "out"))
    error = redra(*line.replace("{}", "1m").split(), data=data, **BOUNDS)[2]
    redra("histories", "delete", "made", "--yes", data=data)
    assert error.count(_meaning("1m", end)) == 1, error


@pytest.mark.database
def test_fork_says_in_json_which_instant_it_begins_at(data: Path, end: Instant) -> None:
    _, out, _ = redra("fork", "prod@1m", "--history", "made", "-o", "json", data=data)
    redra("histories", "delete", "made", "--yes", data=data)
    assert json.loads(out)["asOf"] + "\n" == _meaning("1m", end)


IN_JSON = {
    "minimise": "minimise prod@{} --keep evicted --seconds 1 --force -o {out} --output json",
    "rehearse": "rehearse prod@{} --to 1.36 -o json",
}
"""Commands of which the JSON has a field with the instant."""


@draws.in_turn("ways")
@pytest.mark.database
@pytest.mark.parametrize("name", IN_JSON)
def test_long_command_says_in_json_which_instant_it_stands_for(
    data: Path, tmp_path: Path, end: Instant, name: str
) -> None:
    line = IN_JSON[name].replace("{out}", str(tmp_path / "out"))
    answers = {}
    for moment in ("1m", "400"):
        _, out, error = redra(*line.replace("{}", moment).split(), data=data, **BOUNDS)
        answers[moment] = json.loads(out)
        assert error.count(_meaning("1m", end)) == (moment == "1m"), error
    assert answers["1m"]["asOf"] + "\n" == _meaning("1m", end)
    assert "asOf" not in answers["400"]


PRINTED = re.compile(
    r"\d{4}-\d\d-\d\d[T ]\d\d:\d\d(?::\d\d)?(?:\.\d+)?Z?|(?<![\d:])\d\d:\d\d:\d\d(?:\.\d+)?Z?"
)


@draws.in_turn("ways")
@pytest.mark.database
def test_every_time_that_is_printed_is_taken_as_a_moment(data: Path) -> None:
    end = timestamps.parse("2030-01-01T00:00:00Z")
    outputs = [
        redra(*words, data=data)[1]
        for words in (
            ("timeline", "prod", "--decisions"),
            ("why", "pod/plain-0", "-n", "taints", "--history", "prod"),
            ("why", "pod/n-3", "-n", "taints", "--history", "prod", "--at", "369"),
            ("why", "devicetaintrule/pool-ns", "--history", "prod", "--at", "369"),
            ("why", "device/gpu.example.com/worker-1/gpu-0", "--history", "prod"),
            ("histories",),
            ("capacity", "prod"),
            ("diff", "prod", "prod@300"),
            ("timeline", "prod", "-o", "json"),
            ("import", RECORDING, "--history", "again"),
        )
    ]
    printed = [{found[0] for found in PRINTED.finditer(out)} for out in outputs]
    assert all(printed[:3])
    for text in set().union(*printed):
        moments.check(text)
        moments.parse(text, end)
    for text in sorted(printed[0])[:3]:
        assert _revision(data, text) > 0


@pytest.mark.database
def test_kubeconfig_names_an_instant_and_refuses_moments_after_the_end(data: Path) -> None:
    server = "http://127.0.0.1:1"
    (data / "kubeconfig").write_text(
        "clusters: [{name: redra, cluster: {server: 'http://127.0.0.1:1'}}]\n"
        "users: [{name: redra, user: {}}]\n"
    )
    words = ("kubeconfig", "--history", "prod", "--server", server, "--at")
    code, out, error = redra(*words, "30s", data=data)
    assert (code, error) == (0, "")
    name = re.search(r"name: '?prod@([^'\n]+)", out)
    assert name is not None
    assert _revision(data, name[1]) == _revision(data, "30s")
    for moment, problem in (("99999", "has no revision"), ("2099-01-01T00:00:00Z", "ends at")):
        code, out, error = redra(*words, "20", "--at", moment, data=data)
        assert (code, out) == (2, "")
        assert f"--at: history 'prod' {problem}" in error


@pytest.mark.parametrize(
    "words",
    [
        ("--history", "prod@3", "--at", "3"),
        ("--history", "prod@3", "--history", "prod"),
        ("--history", "prod", "--history", "prod@3"),
    ],
)
def test_kubeconfig_takes_a_moment_behind_one_history_alone(tmp_path: Path, words) -> None:
    code, out, error = redra("kubeconfig", *words, data=tmp_path)
    assert (code, out) == (2, "")
    assert error == (
        "redra: --history: HISTORY@MOMENT cannot be combined with other histories or moments; "
        "name the moments with --at, or one history at a time\n"
    )


@pytest.mark.database
def test_dump_has_no_revisions(data: Path, tmp_path: Path) -> None:
    dump = tmp_path / "pods.yaml"
    dump.write_text("{apiVersion: v1, kind: List, items: []}\n")
    code, _, error = redra("import", dump, "--history", "dump", "--at", "42", data=data)
    assert (code, "42 is a revision, and a dump has no revisions" in error) == (2, True)


def test_rehearsal_of_nothing_compares_nothing(data) -> None:
    code, out, _ = redra("rehearse", "prod@0", "--to", "1.37", data=data)
    assert code == 2
    assert "nothing could be compared" in out
    assert "nothing changes" not in out


BOUNDS = {"REDRA_REHEARSE_RUNS_MAX": "1"}
"""What proves the causes of changes takes many runs; here answers are compared with each other."""

# {} is the history, and what follows means the same moment where it stands behind the history. An
# early moment may follow, and a second one with another answer, where the whole takes long.
BEHIND = {
    "blast": ("blast --delete node/worker-1 --history {}", "--at"),
    "capacity": ("capacity {}", "--at"),
    "cel": ("cel true --history {}", "--at", "3"),
    "export": ("export {} --force --as audit -o {out}", None),
    "export bundle": ("export {} --force -o {out}", None),
    "find": ("find worker --history {}", "--at"),
    "findings": ("findings {}", "--at"),
    "fit": ("fit {}", "--at"),
    "fork": ("fork {} --history made", "--at"),
    "head": ("head {}", "--at"),
    "histories copy": ("histories copy {} made", "--to"),
    "kubeconfig": ("kubeconfig --server http://127.0.0.1:1 --history {}", "--at"),
    "lint": ("lint --history {}", "--at"),
    "log": ("log {}", "--until"),
    "map": ("map --history {}", "--at"),
    "rehearse": ("rehearse {} --to 1.37", "--at", "120", "40"),
    "replay": ("replay {}", "--to"),
    "replay decide": ("replay {} --mode decide", "--to", "120", "60"),
    "report": ("report {} --force -o {out}", "--at", "120", "60"),
    "scan": ("scan {}", "--at", "20"),
    "timeline": ("timeline {}", "--until"),
    "verify": ("verify {}", "--to"),
    "verify live": ("verify {} --live", "--to"),
    "watch-over": ("watch-over {}", "--until"),
    "why": ("why node/worker-1 --history {}", "--at"),
}
LONG = ("findings", "fit", "rehearse", "replay decide", "report", "scan")
"""Half of the work of all."""

WHOLE = {
    "controllers": "controllers {}",
    "histories delete": "histories delete {} --yes",
    "histories rename": "histories rename {} made",
    "rebuild": "rebuild {}",
    "sql": "sql --history {} SELECT(1)",
}
"""Commands about histories as wholes."""


@draws.in_turn("rows of ways")
@pytest.mark.database
@pytest.mark.parametrize("name", [draws.by_day(name) if name in LONG else name for name in BEHIND])
def test_moment_stands_behind_the_history_or_in_its_option(
    data: Path, tmp_path: Path, name: str
) -> None:
    line, option, *early = BEHIND[name]
    moment, *another = early or ["300"]
    line = line.replace("{out}", str(tmp_path / "out"))
    (data / "kubeconfig").write_text(
        "clusters: [{name: redra, cluster: {server: 'http://127.0.0.1:1'}}]\n"
        "users: [{name: redra, user: {}}]\n"
    )
    behind = redra(*line.replace("{}", f"prod@{moment}").split(), data=data, **BOUNDS)
    redra("histories", "delete", "made", "--yes", data=data)
    assert behind[0] in (0, 1, 3), behind[2]
    if option is not None:
        words = line.replace("{}", "prod").split()
        alone = redra(*words, option, moment, data=data, **BOUNDS)
        redra("histories", "delete", "made", "--yes", data=data)
        assert _without_seconds(behind) == _without_seconds(alone)
    if name in ("verify live", "watch-over"):
        # Without an end they go on.
        return
    other = "@".join(["prod", *another])
    differs = redra(*line.replace("{}", other).split(), data=data, **BOUNDS)
    redra("histories", "delete", "made", "--yes", data=data)
    assert _without_seconds(behind) != _without_seconds(differs)


def _without_seconds(answer: tuple[int, str, str]) -> tuple[int, str, str]:
    """An answer without how long the work took."""
    code, out, error = answer
    return code, re.sub(r"in \d+ s$", "", out.strip()), error


@pytest.mark.database
@pytest.mark.parametrize("name", WHOLE)
def test_moment_of_what_is_whole_is_refused_in_the_same_words(data: Path, name: str) -> None:
    code, out, error = redra(*WHOLE[name].replace("{}", "prod@300").split(), data=data)
    assert (code, out) == (2, "")
    assert error == (
        "redra: 'prod@300' names a moment, but this question is about a whole history; leave "
        "out @300\n"
    )


@pytest.mark.database
def test_bundle_of_a_moment_ends_there(data: Path, tmp_path: Path) -> None:
    bundle = tmp_path / "part.zip"
    assert redra("export", "prod@300", "-o", bundle, data=data)[0] == 0
    code, out, error = redra("replay", bundle, "-o", "json")
    assert code == 0, error
    assert json.loads(out)["revision"] == 300
    whole = redra("replay", "prod", "--to", "300", "-o", "json", data=data)[1]
    assert json.loads(whole)["stateHashes"] == json.loads(out)["stateHashes"]


def test_every_command_of_a_history_says_what_a_moment_behind_it_means() -> None:
    from tests.acceptance.test_exit_codes import OF_HISTORIES

    by_others = {
        "diff", "diff again", "diff with", "export audit", "export pytest", "minimise",
        "serve-replay",
    }  # fmt: skip
    assert {*OF_HISTORIES} - by_others <= {*BEHIND, *WHOLE}


AS_THE_SOURCE = {
    "blast": "blast --delete node/worker-1 --history {} --at 100",
    "capacity": "capacity {} --at 100 -o json",
    "diff again": "diff {} --again --at 40 -o json",
    "findings": "findings {} --at 100",
    "fit": "fit {} --at 100",
    "rehearse": "rehearse {} --to 1.37 --at 40",
    "scan": "scan {} --at 100",
    "verify": "verify {} --to 100",
    "why": "why pod/more-0 -n taints --history {} --at 100",
}
"""Commands whose answer depends on release and gates."""


@draws.in_turn("ways")
@pytest.mark.database
def test_fork_answers_about_a_moment_before_it_as_its_source(data: Path) -> None:
    """Its source decided by then, under other settings than those of the fork."""
    switches = ("--profile", "1.34", "--gate", "DRADeviceTaints=false")
    code, _, error = redra("fork", "prod@110", "--history", "fork", *switches, data=data)
    assert code == 0, error
    try:
        for name, line in AS_THE_SOURCE.items():
            first, second = [
                redra(*line.replace("{}", history).split(), data=data, **BOUNDS)[:2]
                for history in ("prod", "fork")
            ]
            assert first[1], name
            assert (second[0], second[1].replace("fork", "prod")) == first, name
        code, out, _ = redra("diff", "prod@100", "fork@100", "-o", "json", data=data)
        assert (code, json.loads(out)["settings"]) == (0, [])
        # What is older than the fork was decided under the settings of the source, too.
        asked = "why pod/plain-0 -n taints --node worker-1 --history"
        then, now = [
            redra(*asked.split(), place, data=data)[1].splitlines()[1:]
            for place in ("prod@110", "fork")
        ]
        assert "unhealthy=true:NoSchedule is not tolerated" in "".join(then)
        assert now == then
    finally:
        redra("histories", "delete", "fork", "--yes", data=data)
