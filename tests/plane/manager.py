"""One run of the controller manager: its caches, its Events and its controllers."""

from tests.plane.claims import ClaimController
from tests.plane.eviction import Evictor
from tests.plane.garbage import Collector
from tests.plane.informers import Informers
from tests.plane.objects import KCM, key_of, uid_of


class Manager:
    """One run of the controller manager."""

    def __init__(self, server, spread, options):
        self.server, self.sim, self.options = server, server.sim, options
        kinds = [
            "Pod",
            "ResourceClaim",
            "ResourceClaimTemplate",
            "ResourceSlice",
            "DeviceTaintRule",
            "Node",
        ]
        self.informers = Informers(server, kinds, spread)
        self.life = self.informers.life
        self.pods = self.informers.cache["Pod"]
        self.claims = self.informers.cache["ResourceClaim"]
        self.said = {}
        self.claim_controller = ClaimController(self)
        self.collector = Collector(self, spread)
        self.eviction = Evictor(self)
        self.informers.start()
        self.collector.informers.start()

    def stop(self):
        self.informers.stop()
        self.collector.informers.stop()

    def say(self, user, component, about, kind, reason, message, key=None):
        """A core Event, sent beside everything else; equal ones are counted."""
        sim, server = self.sim, self.server
        now = sim.seconds()
        mark = (uid_of(about), reason, message)
        ns, name = key_of(about)
        if mark in self.said:
            event, count = self.said[mark]
            self.said[mark] = (event, count + 1)
            body = {"count": count + 1, "lastTimestamp": now, "message": message}

            def act():
                return server.change("CoreEvent", (ns, event), lambda t: t.update(body))

            sim.spawn(
                server.call(user, "patch", "CoreEvent", (ns, event), act, body=body, agent=KCM),
                self.life,
            )
            return
        event = f"{name}.{1795248000250000000 + sim.now * 1000 + sim.rng.randrange(1000):016x}"
        self.said[mark] = (event, 1)
        involved = {
            "kind": about["kind"],
            "namespace": ns,
            "name": name,
            "uid": uid_of(about),
            "apiVersion": about["apiVersion"],
        }
        tree = {
            "metadata": {"name": event, "namespace": ns or "default"},
            "involvedObject": involved,
            "reason": reason,
            "message": message,
            "source": {"component": component},
            "firstTimestamp": now,
            "lastTimestamp": now,
            "count": 1,
            "type": kind,
            "eventTime": None,
            "reportingComponent": component,
            "reportingInstance": "",
        }
        sim.spawn(
            server.call(
                user,
                "create",
                "CoreEvent",
                (ns, event),
                lambda: server.create("CoreEvent", tree),
                body=tree,
                agent=KCM,
            ),
            self.life,
        )
