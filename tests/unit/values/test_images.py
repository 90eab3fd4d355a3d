"""Tags of images, as the public grammar of references reads them."""

import pytest

from app.domain.values import images

DIGEST = "sha256:" + "a" * 64

TAGS = [
    ("nginx", "latest"),
    ("nginx:latest", "latest"),
    ("nginx:LATEST", "LATEST"),
    ("nginx:1.27", "1.27"),
    ("registry.k8s.io/pause:3.10", "3.10"),
    ("localhost:5000/a/b", "latest"),
    ("REGISTRY:5000/a", "latest"),
    (f"nginx@{DIGEST}", ""),
    (f"nginx:latest@{DIGEST}", "latest"),
    ("BUSYBOX_IMAGE", ""),
    ("docker.io/Library/nginx", ""),
    ("{{ .Image }}", ""),
    ("nginx:", ""),
    ("a//b", ""),
    ("x" * 300, ""),
    ("a" * 64, ""),
    ("", ""),
]


@pytest.mark.parametrize(("image", "tag"), TAGS)
def test_tag(image, tag):
    assert images.tag(image) == tag
