"""What is kept of the field sets that have been read (`managedFields`)."""

from app.domain.objects import managed_fields
from app.domain.objects.managed_fields import KNOWN_BYTES_MAX


def metadata(consumers: int) -> dict:
    """Of a claim whose status one client wrote, with so many consumers."""
    keys = (f'k:{{"uid":"{number:036}"}}' for number in range(consumers))
    fields = {"f:status": {"f:reservedFor": {key: {} for key in keys}}}
    entry = {"manager": "scheduler", "operation": "Update", "apiVersion": "v1"}
    written = {"time": "2026-01-01T00:00:00Z", "fieldsType": "FieldsV1", "fieldsV1": fields}
    return {"managedFields": [{**entry, **written}]}


def test_short_set_of_fields_is_read_once():
    first, second = (managed_fields.load(metadata(1)) for _ in range(2))
    assert first[0].fields is second[0].fields


def test_long_set_of_fields_is_not_kept():
    first, second = (managed_fields.load(metadata(KNOWN_BYTES_MAX // 40)) for _ in range(2))
    assert first[0].fields == second[0].fields
    assert first[0].fields is not second[0].fields


def test_long_set_of_fields_is_written_as_it_was_read():
    given = metadata(KNOWN_BYTES_MAX // 40)
    assert managed_fields.dump(managed_fields.load(given)) == given["managedFields"]
