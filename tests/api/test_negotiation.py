"""The Accept header decides the form."""

import pytest

from app.api.kubernetes import negotiation
from app.api.kubernetes.negotiation import Encoding, NegotiatedForm, Shape
from app.domain.errors import NotAcceptable

TABLE = "application/json;as=Table;v=v1;g=meta.k8s.io"
PARTIAL = "application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1"

ROWS = [
    ("", NegotiatedForm()),
    ("*/*", NegotiatedForm()),
    ("application/json, */*", NegotiatedForm()),
    ("application/json, */*;q=0.8", NegotiatedForm()),
    ("application/vnd.kubernetes.protobuf,application/json", NegotiatedForm()),
    (f"{TABLE},application/json", NegotiatedForm(shape=Shape.TABLE)),
    (f"application/json;as=Other;g=x;v=v1,{TABLE}", NegotiatedForm(shape=Shape.TABLE)),
    (
        "application/json;as=Table;v=v1beta1;g=meta.k8s.io",
        NegotiatedForm(shape=Shape.TABLE, version="v1beta1"),
    ),
    (PARTIAL, NegotiatedForm(shape=Shape.METADATA, of="object")),
    (
        PARTIAL.replace("Metadata;", "MetadataList;"),
        NegotiatedForm(shape=Shape.METADATA, of="list"),
    ),
    ("application/yaml", NegotiatedForm(encoding=Encoding.YAML)),
    ("application/json;q=0, application/yaml", NegotiatedForm(encoding=Encoding.YAML)),
    ("application/json;stream=watch", NegotiatedForm()),
]


@pytest.mark.parametrize(("accept", "form"), ROWS, ids=[row[0] or "none" for row in ROWS])
def test_first_form_that_can_be_served_is_taken(accept, form):
    assert negotiation.choose(accept) == form


@pytest.mark.parametrize("accept", ["application/vnd.kubernetes.protobuf", "text/html", "image/*"])
def test_nothing_that_can_be_served_is_refused(accept):
    with pytest.raises(NotAcceptable):
        negotiation.choose(accept)


AGGREGATED = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList"
DISCOVERY = [
    (f"{AGGREGATED},application/json", True),
    (f"{AGGREGATED};profile=nopeer,{AGGREGATED},application/json", True),
    (f"{AGGREGATED.replace('v2', 'v2beta1')},application/json", False),
    ("application/json", False),
    ("", False),
]


@pytest.mark.parametrize(("accept", "wanted"), DISCOVERY, ids=range(len(DISCOVERY)))
def test_aggregated_discovery_is_given_to_who_asks_first_for_it(accept, wanted):
    assert negotiation.wants_aggregated_discovery(accept) is wanted
