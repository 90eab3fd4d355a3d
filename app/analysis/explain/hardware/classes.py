"""Device classes: which devices they select, and who uses them."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass

from app.analysis.explain.pods import Steps
from app.analysis.explain.reasons import Reason, listed
from app.analysis.explain.tallies import devices_text
from app.analysis.views import LiveViews
from app.domain.devices import patches, pools
from app.domain.devices.device_selectors import SelectorCompiler
from app.domain.devices.model import Device
from app.domain.log import ObjectKey
from app.domain.values import api_resources, counts
from app.domain.values.fields import dra, meta
from app.domain.values.json_tree import JsonObject, JsonView

POOLS_MAX = 8
"""The number of pools shown one by one with their selected devices."""

STEP_MAX = 256


@dataclass(frozen=True, slots=True, kw_only=True)
class ClassSelection:
    """The numbers of devices that a class selects, in total and per pool.

    `errors` counts the devices on which a selector failed; `problem` is the first error text.
    """

    total: int
    selected: int
    pools: dict[str, tuple[int, int]]
    errors: int = 0
    problem: str = ""

    @property
    def text(self) -> str:
        """`selects 3 of 5 devices`."""
        return f"selects {self.selected} of {devices_text(self.total)}"


def select(views: LiveViews, tree: JsonObject, compiler: SelectorCompiler) -> Steps[ClassSelection]:
    """Evaluates the selectors of the class on every published device."""
    chosen = patches.class_filter_of(tree, compiler)
    counts_of: dict[str, tuple[int, int]] = {}
    total = selected = errors = 0
    problem = chosen.problem
    for pool in list(views.inventory.pool_ids()):
        yield
        devices: list[Device] = [
            device
            for item in pools.newest(views.inventory.slices_of(pool))
            for device in item.devices
        ]
        alive = [] if chosen.problem else devices
        for selector in chosen.selectors:
            verdicts = selector.judge(alive)
            failed = [verdict.error for verdict in verdicts if verdict.error]
            errors += len(failed)
            problem = problem or next(iter(failed), "")
            alive = [one for one, verdict in zip(alive, verdicts, strict=True) if verdict.match]
        # Two slices of a pool that cannot be used may name the same device.
        numbers = len({one.id for one in alive}), len({one.id for one in devices})
        total += numbers[1]
        selected += numbers[0]
        counts_of["/".join(pool)] = numbers
    return ClassSelection(
        total=total, selected=selected, pools=counts_of, errors=errors, problem=problem
    )


def reasons(selection: ClassSelection) -> Iterator[Reason]:
    """The selected devices per pool, pools with the most selected devices first."""
    if selection.problem:
        what = devices_text(selection.errors) if selection.errors else "every device"
        yield Reason(text=f"its selectors fail on {what}: {selection.problem}", is_kept=True)
    ranked = sorted(selection.pools.items(), key=lambda item: (-item[1][0], item[0]))
    shown = [(name, numbers) for name, numbers in ranked if numbers[0]][:POOLS_MAX]
    lines = [
        Reason(text=f"pool {name}: {count} of {devices_text(total)}", count=count)
        for name, (count, total) in shown
    ]
    if (rest := sum(bool(numbers[0]) for _, numbers in ranked) - len(shown)) > 0:
        lines.append(Reason(text=counts.of(rest, "more pool")))
    yield Reason(text=selection.text, children=tuple(lines), count=selection.selected)


def users(views: LiveViews, name: str, sees: Callable[[ObjectKey], bool]) -> Steps[list[Reason]]:
    """The claims, templates and patches that name the class, as far as the reader `sees` them."""
    reasons: list[Reason] = []
    for noun, place in (
        ("claim", api_resources.RESOURCE_CLAIMS),
        ("template", api_resources.RESOURCE_CLAIM_TEMPLATES),
    ):
        names: list[str] = []
        allocated = 0
        for number, key in enumerate(list(views.objects.keys(*place))):
            if number % STEP_MAX == 0:
                yield
            tree = views.objects.get(key) or {}
            spec = tree if noun == "claim" else meta.spec(tree)
            if _names_class(spec, name) and (noun == "claim" or sees(key)):
                names.append(f"{key.namespace}/{key.name}")
                allocated += dra.allocation(tree) is not None
        if names:
            nouns = noun if len(names) == 1 else f"{noun}s"
            state = f", {allocated} allocated" if noun == "claim" else ""
            text = f"used by {len(names)} {nouns}{state}: {listed(names, len(names))}"
            reasons.append(Reason(text=text, count=len(names), is_kept=True))
    naming = [
        patch.name for patch in views.inventory.patches().values() if patch.class_name == name
    ]
    if naming:
        text = f"named in the filter of {listed(naming, len(naming))}"
        reasons.append(Reason(text=text, count=len(naming)))
    if reasons:
        return reasons
    # A collection is named without an object.
    if sees(ObjectKey(*api_resources.RESOURCE_CLAIM_TEMPLATES, "", "")):
        return [Reason(text="no claim and no template names it")]
    return [Reason(text="no claim names it, and no template that you may read")]


def _names_class(tree: JsonView, name: str) -> bool:
    return any(
        ask.device_class_name == name
        for request in dra.requests(tree)
        for ask in (*([request.exactly] if request.exactly else []), *request.first_available)
    )
