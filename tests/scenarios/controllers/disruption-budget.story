# A Deployment of two and a budget that spares one of its pods (a share is rounded up). The first
# eviction takes the disruption away at once, the next one is refused until the replacement is ready.
cluster kubelet=on
----
(nothing)

world nodes=1 devices=0
----
1 node(s) with 0 device(s) each

deployment web replicas=2 start_seconds=3 stop_seconds=5
----
    0.000  deployments/web replicas=2 ready=0 progressing=-
    0.000  replicasets/web-57dc64c48 replicas=2 ready=0
    0.000  says about web: "Scaled up replica set web-57dc64c48 from 0 to 2"
    0.000  deployments/web progressing=True/NewReplicaSetCreated
    0.000  pods/web-57dc64c48-9nfzc phase=Pending claims=- nominated=- node=- scheduled=- disrupted=- terminating=-
    0.000  says about web-57dc64c48: "Created pod: web-57dc64c48-9nfzc"
    0.000  pods/web-57dc64c48-fg8tf phase=Pending claims=- nominated=- node=- scheduled=- disrupted=- terminating=-
    0.000  says about web-57dc64c48: "Created pod: web-57dc64c48-fg8tf"
    0.000  replicasets/web-57dc64c48 (no change to tell)
    0.000  scheduling decides Scheduled for web-57dc64c48-9nfzc on n1
    0.000  pods/web-57dc64c48-9nfzc node=n1 scheduled=True
    0.000  says about web-57dc64c48-9nfzc: "Successfully assigned default/web-57dc64c48-9nfzc to n1"
    0.000  scheduling decides Scheduled for web-57dc64c48-fg8tf on n1
    0.000  pods/web-57dc64c48-fg8tf node=n1 scheduled=True
    0.000  says about web-57dc64c48-fg8tf: "Successfully assigned default/web-57dc64c48-fg8tf to n1"
    0.000  deployments/web progressing=True/ReplicaSetUpdated

wait 3
----
    3.000  pods/web-57dc64c48-9nfzc phase=Running
    3.000  pods/web-57dc64c48-fg8tf phase=Running
    3.000  replicasets/web-57dc64c48 ready=2
    3.000  deployments/web ready=2 progressing=True/NewReplicaSetAvailable

budget web web most=34%
----
    3.000  poddisruptionbudgets/web expected=0 healthy=0 wanted=0 allowed=0 announced=- condition=-
    3.000  poddisruptionbudgets/web expected=2 healthy=2 wanted=1 allowed=1 condition=True/SufficientPods

evict web-*
----
    3.000  poddisruptionbudgets/web allowed=0 announced=web-57dc64c48-9nfzc condition=False/InsufficientPods
    3.000  pods/web-57dc64c48-9nfzc terminating=yes
    3.000  poddisruptionbudgets/web healthy=1 announced=-
    3.000  pods/web-57dc64c48-9d8vq phase=Pending claims=- nominated=- node=- scheduled=- disrupted=- terminating=-
    3.000  says about web-57dc64c48: "Created pod: web-57dc64c48-9d8vq"
    3.000  replicasets/web-57dc64c48 ready=1
    3.000  scheduling decides Scheduled for web-57dc64c48-9d8vq on n1
    3.000  pods/web-57dc64c48-9d8vq node=n1 scheduled=True
    3.000  says about web-57dc64c48-9d8vq: "Successfully assigned default/web-57dc64c48-9d8vq to n1"
    3.000  deployments/web ready=1

evict web-57dc64c48-fg8tf
----
refused: The disruption budget web needs 1 healthy pods and has 1 currently

wait 3
----
    6.000  pods/web-57dc64c48-9d8vq phase=Running
    6.000  poddisruptionbudgets/web healthy=2 allowed=1 condition=True/SufficientPods
    6.000  replicasets/web-57dc64c48 ready=2
    6.000  deployments/web ready=2

# Nobody can have nine: a pod that is not ready may go if the budget says so, and only then.
delete poddisruptionbudgets/web
----
    6.000  poddisruptionbudgets/web is gone

budget strict web least=9 unready=AlwaysAllow
----
    6.000  poddisruptionbudgets/strict expected=0 healthy=0 wanted=0 allowed=0 announced=- condition=-
    6.000  poddisruptionbudgets/strict expected=3 healthy=2 wanted=9 condition=False/InsufficientPods

evict web-*
----
refused: The disruption budget strict needs 9 healthy pods and has 2 currently

unready web-*
----
    6.000  pods/web-57dc64c48-9d8vq scheduled=-
    6.000  poddisruptionbudgets/strict healthy=1
    6.000  replicasets/web-57dc64c48 ready=1
    6.000  deployments/web ready=1

evict web-*
----
    6.000  pods/web-57dc64c48-9d8vq terminating=yes
    6.000  pods/web-57dc64c48-7jkzh phase=Pending claims=- nominated=- node=- scheduled=- disrupted=- terminating=-
    6.000  says about web-57dc64c48: "Created pod: web-57dc64c48-7jkzh"
    6.000  replicasets/web-57dc64c48 (no change to tell)
    6.000  poddisruptionbudgets/strict expected=4
    6.000  scheduling decides Scheduled for web-57dc64c48-7jkzh on n1
    6.000  pods/web-57dc64c48-7jkzh node=n1 scheduled=True
    6.000  says about web-57dc64c48-7jkzh: "Successfully assigned default/web-57dc64c48-7jkzh to n1"
    6.000  deployments/web (no change to tell)
