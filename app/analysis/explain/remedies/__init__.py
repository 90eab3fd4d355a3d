"""Remedies: changes apart from devices and claims with which a node takes a waiting pod.

Belongs here: changes of nodes and of a pod's own spec, each proved by an attempt. Does not belong
here: changes of devices and claims (`app/domain/allocation/reasons`). Imported by `pods`.
"""

from app.analysis.explain.remedies.beyond_devices import BeyondDevices, SpecSearch
from app.analysis.explain.remedies.spec_changes import SpecChange

__all__ = ["BeyondDevices", "SpecChange", "SpecSearch"]
