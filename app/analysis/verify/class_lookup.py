"""Device classes by name, as an allocator asks for them, of a state that may be another one."""

from collections.abc import Iterator, Mapping

from app.analysis.views import LiveViews
from app.domain.log import ObjectKey
from app.domain.values import api_groups, api_resources
from app.domain.values.json_tree import JsonObject, JsonView


class ClassLookup(Mapping[str, JsonView]):
    """The device classes of the views by name, except those of another state."""

    def __init__(self, views: LiveViews, others: Mapping[ObjectKey, JsonObject | None]) -> None:
        """`others` are not as in the views; None is one that is missing."""
        self._objects = views.objects
        self._others = others

    def __getitem__(self, name: str) -> JsonView:
        key = ObjectKey(*api_resources.DEVICE_CLASSES, "", name)
        device_class = self._others[key] if key in self._others else self._objects.get(key)
        if device_class is None:
            raise KeyError(name)
        return device_class

    def __iter__(self) -> Iterator[str]:
        return (key.name for key in self._objects.keys(api_groups.RESOURCE, "deviceclasses"))

    def __len__(self) -> int:
        return sum(1 for _ in self)
