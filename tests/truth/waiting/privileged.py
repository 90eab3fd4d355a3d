"""Small clusters in which pods, waiting ones and holders, ask for administrative access."""

import random

from tests.truth.waiting.worlds import SmallWorld


class PrivilegedWorld(SmallWorld):
    """A drawn cluster whose namespace allows administrative access, with its pod `p`.

    What it draws besides comes from a source of its own: the rest is the small world of its seed.
    """

    def __init__(self, seed: int) -> None:
        self.more = random.Random(f"privileged world {seed}")
        super().__init__(seed)

    def _hardware(self) -> None:
        labels = {"resource.kubernetes.io/admin-access": "true"}
        self.cluster.patch("namespaces", "default", {"metadata": {"labels": labels}})
        super()._hardware()

    def _holders(self) -> None:
        super()._holders()
        self.cluster.template("look", adminAccess=True)
        for number in range(self.more.randint(0, 2)):
            self.cluster.pod(f"a{number}", template="look")
            self.cluster.settle()
            if "nodeName" not in self.cluster.must("pods", f"a{number}")["spec"]:
                self.cluster.delete("pods", f"a{number}")
                self.cluster.settle()

    def _wish(self, *, alone: bool = False) -> dict:
        wish = super()._wish(alone=alone)
        if not alone and self.more.randrange(100) < 45:
            wish["adminAccess"] = True
        return wish
