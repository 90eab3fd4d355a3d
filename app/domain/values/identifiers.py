"""Identifiers that must not be mixed up: each has its own type, and is a text when the code runs.

The readers of fields (`fields`) and the records that are decoded from bytes give these types; other
code passes them on. A text that comes from elsewhere (a command, a path of a request) becomes one
where it is parsed.
"""

from typing import Any, NewType, TypeAlias

Uid = NewType("Uid", str)
"""The `metadata.uid` of an object, empty when it is not known."""

DriverName = NewType("DriverName", str)
PoolName = NewType("PoolName", str)
DeviceName = NewType("DeviceName", str)

DeviceId: TypeAlias = tuple[DriverName, PoolName, DeviceName]
"""The driver, pool and name of a device."""

PoolId: TypeAlias = tuple[DriverName, PoolName]
"""The driver and name of a pool."""

NamespacedName: TypeAlias = tuple[str, str]
"""The namespace and name of an object."""

GroupResource: TypeAlias = tuple[str, str]
"""The API group and resource of a kind, such as `resource.k8s.io` and `resourceclaims`."""

NO_UID = Uid("")
NO_DRIVER, NO_POOL, NO_DEVICE = DriverName(""), PoolName(""), DeviceName("")


def parse_device(text: str) -> DeviceId:
    """The parts of `DRIVER/POOL/NAME`; the name of a pool may contain slashes of its own.

    A part that the text lacks is empty.
    """
    driver, _, rest = text.partition("/")
    pool, _, device = rest.rpartition("/")
    return DriverName(driver), PoolName(pool), DeviceName(device)


def parse_pool(text: str) -> PoolId:
    """The parts of `DRIVER/POOL`; a part that the text lacks is empty."""
    driver, _, pool = text.partition("/")
    return DriverName(driver), PoolName(pool)


def qualified_resource(group: str, resource: str) -> str:
    """A resource as kubectl writes it, such as `resourceclaims.resource.k8s.io` or `pods`."""
    return f"{resource}.{group}" if group else resource


def namespaced_name(namespace: str, name: str) -> str:
    """`namespace/name`, or the name of a cluster-scoped object."""
    return f"{namespace}/{name}" if namespace else name


def plain(form: Any) -> Any:
    """A type as it is when the code runs: the type itself, and `str` for an identifier."""
    return getattr(form, "__supertype__", form)
