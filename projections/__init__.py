"""Pure folds over the log, one module per view, each named and versioned.

Belongs here: how an event changes a view, which rows of the view's tables changed, the state hash.
Does not belong here: queries, I/O, other projections. Projections do not import each other; code
that several need is in `row_changes` and `tables`, code that one needs is beside that projection.
Imported by the service; imports only the domain.
"""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from app.domain.devices.device_selectors import SelectorCompiler
    from app.domain.log.projection import Projection

__all__ = ["all_projections"]


def all_projections(
    *,
    compiler: "SelectorCompiler | None" = None,
    with_rules: bool = True,
    with_patches: bool = True,
    rules_unseen: bool = False,
    rules_without_selector_match: bool = True,
    rules_without_selector_evict: bool = False,
    empty_effect_tolerates: bool = False,
    decoded_max: int | None = None,
    plain_max: int | None = None,
) -> "tuple[Projection, ...]":
    """Fresh, empty instances of every view.

    `compiler` reads the CEL of ResourceSlicePatches. `with_rules` and `with_patches` are the gates
    that let DeviceTaintRules and patches act on devices. With `rules_unseen` the scheduler doesn't
    see rules (C24). `rules_without_selector_match` is whether a rule without selector taints
    every device (Q14), `rules_without_selector_evict` whether its taint evicts (C1 repaired), and
    `empty_effect_tolerates` whether a toleration without an effect keeps from eviction (C2
    repaired). `decoded_max` limits the decoded trees, `plain_max` the objects that
    are not compressed.
    """
    # The folds load CEL and the inventory; `projections.tables` is read without them.
    from projections import objects
    from projections.activity import ActivityProjection
    from projections.claims import ClaimsProjection
    from projections.counters import CountersProjection
    from projections.decisions import DecisionsProjection
    from projections.inventory import InventoryProjection
    from projections.objects import ObjectsProjection
    from projections.taints import TaintsProjection
    from projections.timeline import TimelineProjection

    return (
        ObjectsProjection(
            objects.DECODED_MAX if decoded_max is None else decoded_max, plain_max=plain_max
        ),
        InventoryProjection(
            compiler=compiler,
            with_rules=with_rules and not rules_unseen,
            with_patches=with_patches,
            rules_without_selector_match=rules_without_selector_match,
        ),
        CountersProjection(),
        TaintsProjection(
            with_rules=with_rules,
            rules_without_selector_match=rules_without_selector_match,
            rules_without_selector_evict=rules_without_selector_evict,
            empty_effect_tolerates=empty_effect_tolerates,
        ),
        ClaimsProjection(),
        DecisionsProjection(),
        TimelineProjection(),
        ActivityProjection(),
    )
