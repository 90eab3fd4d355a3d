"""A comparison as a page: root causes first, each followed by its consequences."""

import re
from collections.abc import Iterator, Sequence

from app.analysis import profiles
from app.analysis.diff import words
from app.analysis.diff.causes import PodDifference, Proof, Root, RootKind
from app.analysis.diff.classes import Class, PodAspect
from app.analysis.diff.inputs import InputDifference
from app.analysis.diff.matching import Pair
from app.analysis.diff.outcomes import EndReport
from app.analysis.diff.report import DiffReport, place_text
from app.analysis.explain import pages
from app.analysis.explain.reasons import Reason
from app.analysis.recordings import uncertainty
from app.domain.objects.printing import durations
from app.domain.values import counts, timestamps
from app.domain.values.json_tree import JsonObject
from app.domain.values.timestamps import SECOND, Instant

NAMED_MAX = 3
"""The number of objects named in the line about the part after an end."""

TEXT_MAX = 240
"""The maximum length of the text of a change, and of each side's answer."""

_EXACT_BELOW = 120 * SECOND
"""The time between two histories from which on it is shown in the form of ages."""

SETTINGS_MAX = 480
"""The maximum length of the text of differing settings, quirks before gates."""

DESCRIBED_MAX = 3
"""The number of differing settings up to which the text says what each does."""

_SETTING = re.compile(r"(?:quirk|rule) [\w-]+: \w+ → \w+\b(?! \()")


def page_json(report: DiffReport | EndReport) -> JsonObject:
    """The parts of a report's page, independent of its width; see `pages.of_json`."""
    body: JsonObject = {"outcome": "same" if report.is_same else "different"}
    if isinstance(report, EndReport):
        return {**body, "lines": end_page(report)}
    return {
        **body,
        "head": head_of(report),
        "notes": notes_of(report),
        "reasons": [reason.to_json() for reason in reasons_of(report)],
    }


def head_of(report: DiffReport | EndReport) -> str:
    """The two histories that are compared, with their last revisions."""
    a, b = report.a, report.b
    head = f"A: {a.name} at revision {a.revision}; B: {b.name} at revision {b.revision}"
    if isinstance(report, DiffReport) and a.common:
        head += f"; the same up to revision {a.common}"
    return head


def reasons_of(report: DiffReport) -> list[Reason]:
    """Root causes, each followed by its consequences; then changes without consequences."""
    reasons = [_root(root, below, report) for root, below in report.roots()]
    shown = {root.name for root, _ in report.roots()}
    texts = [
        Reason(
            text=_root(root, (), report).text,
            children=(
                *(_refused(root.name, report) if root.name not in shown else ()),
                *(words.reason_of(each) for each in entries),
            ),
        )
        for root, entries in report.texts()
    ]
    if texts:
        reasons.append(Reason(text="only the text changes", children=tuple(texts), is_kept=True))
    roots = [root for root, _ in (*report.roots(), *report.texts())]
    if report.switches and not any(root.kind is RootKind.SETTINGS for root in roots):
        reasons.append(Reason(text=f"settings, without a consequence: {_switches(report)}"))
    reasons += [
        Reason(text=_changed(change), children=tuple(_refused(str(change.key), report)))
        for change in report.refusing()
    ]
    reasons += [Reason(text=f"{_changed(change)}: nothing follows") for change in report.idle()]
    return reasons


def notes_of(report: DiffReport) -> list[str]:
    """Notes: how much is the same, and what was not compared."""
    a, b = report.a, report.b
    notes = [counts_text(report)]
    if b.shift:
        when = "before" if b.shift < 0 else "after"
        shift = abs(b.shift)
        lasted = f"{shift / SECOND:.3f} seconds"
        if shift >= _EXACT_BELOW:
            lasted = durations.duration_text(shift)
        notes.append(
            f"B happened {lasted} {when} A: its times are shown as if they had begun as one"
        )
    notes += after_end_notes(report)
    for letter, side in (("A", a), ("B", b)):
        if side.left_out and not side.beyond:
            moment = timestamps.micro_text(side.until)
            notes.append(f"{letter} has {_more(side.left_out)}, after {moment}: not compared")
    notes += [f"not done in B, {count}: {why}" for why, count in sorted(report.not_done.items())]
    if report.unexplained:
        notes.append(f"no cause was found for {report.unexplained} of them")
    return [*notes, *order_notes(report), *uncertainty.lines(report.doubts)]


def order_notes(report: DiffReport) -> list[str]:
    """The notes about placements that follow from an order of attempts which is not known."""
    if not report.contests:
        return []
    notes = [each.text for each in report.contests[:NAMED_MAX]]
    more = len(report.contests) - NAMED_MAX
    if more > 0:
        notes.append(f"and {counts.of(more, 'more placement')} of this kind: -o json")
    return [
        "in which order the pods are tried that waited at the moment of the fork is not known:",
        *(f"  {note}" for note in notes),
    ]


def after_end_notes(report: DiffReport | EndReport) -> list[str]:
    """At most one line about what the longer of two recordings has after the end of the other."""
    after = report.after_end
    if after is None:
        return []
    names = ", ".join(after.subjects[:NAMED_MAX])
    more = len(after.subjects) - NAMED_MAX
    names += f" and {more} more" if more > 0 else ""
    about = f" ({names})" if names else ""
    moment = timestamps.micro_text(after.time)
    side, other = after.side.upper(), after.other.upper()
    return [
        f"after the end of {other}, at {moment}, {side} has {_more(after.events)}{about}: "
        "not compared"
    ]


def _more(count: int) -> str:
    return counts.of(count, "more event")


def counts_text(report: DiffReport) -> str:
    """The number of pods that are the same, and of the others by class.

    Pods that were gone at the last common revision are in none of these numbers.
    """
    if report.is_same:
        since = f" from revision {report.a.common} on" if report.a.common else ""
        return f"every decision is the same: {counts.of(report.same, 'pod')}{since}"
    in_text_only = sum(each.is_about_words for each in report.differences)
    if in_text_only == len(report.differences):
        pods = counts.of(report.same + in_text_only, "pod")
        return f"no pod has another outcome; only texts change, of {in_text_only} of {pods}"
    in_words = {Class.SAID.value: "in text only"}
    classes = ", ".join(
        f"{count} {in_words.get(name, name)}" for name, count in report.counts.items() if count
    )
    same, different = counts.of(report.same, "pod"), len(report.differences)
    differ = counts.verb(different, "differs")
    return f"{same} {counts.verb(report.same, 'is')} the same, {different} {differ}: {classes}"


def end_page(report: EndReport) -> list[str]:
    """The lines for the differences at the end."""
    lines = [
        head_of(report),
        f"{report.same} are the same, {len(report.entries)} differ",
        *after_end_notes(report),
    ]
    most = pages.COMPARED_LINES_MAX
    for entry in report.entries[:most]:
        lines += [entry.subject, f"  A: {entry.a}", f"  B: {entry.b}"]
    if len(report.entries) > pages.COMPARED_LINES_MAX:
        lines.append(
            f"… {len(report.entries) - pages.COMPARED_LINES_MAX} more; -o json has all of them"
        )
    return lines


def _root(root: Root, below: Sequence[PodDifference], report: DiffReport) -> Reason:
    match root.kind:
        case RootKind.SETTINGS:
            text = f"settings: {_described(root.text)}"
        case RootKind.CHANGE:
            text = pages.shortened(f"{root.name} {root.text}", TEXT_MAX)
        case RootKind.END | RootKind.RUN:
            text = f"{root.name}: {root.text}"
        case RootKind.UNKNOWN:
            text = root.text
    proofs = {each.proof for each in below}
    proof = proofs.pop() if len(proofs) == 1 else None
    children = [*_refused(root.name, report), *(_difference(each, proof) for each in below)]
    if proof is not None and root.kind is not RootKind.SETTINGS and text != proof.text:
        by = f"by {_described(proof.text)}"
        children.insert(0, Reason(text=by, is_kept=True))
    return Reason(text=text, children=tuple(children))


def _refused(name: str, report: DiffReport) -> Iterator[Reason]:
    """The objects that a changed quota or limit range refuses."""
    for key, refusal in report.refused.items():
        if str(refusal.by) == name:
            # The words before name the object again.
            why = refusal.text.rpartition("is forbidden: ")[2]
            side = refusal.side.upper()
            yield Reason(text=f"{side} refuses {key}: {pages.shortened(why, TEXT_MAX)}")


def _difference(difference: PodDifference, known: Proof | None) -> Reason:
    """A difference with its consequences. `known` is a proof that is already shown above."""
    pair, parting = difference.pair, difference.parting
    classes = ", ".join(_class_text(each, pair) for each in difference.classes)
    when = timestamps.micro_text(Instant(difference.parted.time))
    text = f"pod {pair.name}: {classes}, from {when} on"
    children: list[Reason] = []
    if pair.a is not None and pair.b is not None:
        children.append(Reason(text=f"A: {_place(difference, 'a')}"))
        children.append(Reason(text=f"B: {_place(difference, 'b')}"))
    # If both answers are the same, no distinguishing fact is known.
    if parting is not None and parting.a != parting.b:
        place = parting.device or parting.node or "the pod"
        a, b = (pages.shortened(answer, TEXT_MAX) for answer in (parting.a, parting.b))
        children.append(Reason(text=f"they part at {place}: in A {a}; in B {b}"))
    proof = difference.proof
    if proof is not None and proof != known:
        children.append(Reason(text=f"by {_described(proof.text)}"))
    children += [_difference(each, proof or known) for each in difference.below]
    return Reason(text=text, children=tuple(children))


def _class_text(of_class: Class, pair: Pair) -> str:
    if of_class is not Class.MOVED or pair.a is None or pair.b is None:
        return of_class.value
    nodes = {course.placed.node for course in (pair.a, pair.b) if course.placed is not None}
    return "moved to another device of its node" if len(nodes) == 1 else of_class.value


def _place(difference: PodDifference, side: str) -> str:
    course = difference.pair.side(side)
    text = place_text(course)
    is_about_time = difference.parted.aspect in (PodAspect.PLACEMENT, PodAspect.END)
    if course is not None and course.placed is not None and is_about_time:
        text += f", bound at {timestamps.micro_text(Instant(course.placed.at.time))}"
    return text


def _switches(report: DiffReport) -> str:
    return _described("; ".join(report.switches))


def _described(settings: str) -> str:
    """Settings as text; if they are few, with the effect and the origin of each quirk and rule."""
    if len(_SETTING.findall(settings)) <= DESCRIBED_MAX:
        settings = _SETTING.sub(_with_words, settings)
    return pages.shortened(settings, SETTINGS_MAX)


def _with_words(change: re.Match[str]) -> str:
    words_of_it = profiles.setting_described(change[0])
    return f"{change[0]} ({words_of_it})" if words_of_it else change[0]


def _changed(change: InputDifference) -> str:
    return pages.shortened(f"{change.key} {change.text}", TEXT_MAX)
