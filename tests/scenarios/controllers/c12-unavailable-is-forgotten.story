# C12: one claim lies on another node, the second fits nowhere: the first is never freed.
node n1 devices=1
----
    0.000  node-lifecycle decides Registered for n1
    0.000  says about n1: "Node n1 event: Registered Node n1 in Controller"
    0.000  node-lifecycle decides Untainted for n1

node n2 devices=1
----
    0.000  node-lifecycle decides Registered for n2
    0.000  says about n2: "Node n2 event: Registered Node n2 in Controller"
    0.000  node-lifecycle decides Untainted for n2

class gpu
----
(nothing)

claim mine
----
    0.000  resourceclaims/mine finalizers=0 devices=- reserved=- terminating=-

pod a claim=mine
----
    0.000  pods/a phase=Pending claims=- nominated=- node=- scheduled=- disrupted=- terminating=-
    0.000  scheduling decides Scheduled for a on n1 n1/gpu-0
    0.000  pods/a nominated=n1
    0.000  resourceclaims/mine finalizers=1
    0.000  resourceclaims/mine devices=n1/gpu-0 reserved=a
    0.000  pods/a nominated=- node=n1 scheduled=True
    0.000  says about a: "Successfully assigned default/a to n1"

delete pods/a
----
    0.000  pods/a terminating=yes

unreserve mine
----
    0.000  resourceclaims/mine reserved=-

kill a
----
    0.000  pods/a (no change to tell)
    0.000  pods/a is gone

claim huge count=5
----
    0.000  resourceclaims/huge finalizers=0 devices=- reserved=- terminating=-

pod b both=mine,huge node=n2
----
    0.000  pods/b phase=Pending claims=- nominated=- node=- scheduled=- disrupted=- terminating=-
    0.000  scheduling decides Unschedulable for b
    0.000  says about b: "0/2 nodes are available: 1 cannot allocate all claims, 1 node(s) didn't match Pod's node affinity/selector. preemption: 0/2 nodes are available: 2 Preemption is not helpful for scheduling."
    0.000  pods/b scheduled=False/Unschedulable

why b
----
0/2 nodes are available: 1 cannot allocate all claims, 1 node(s) didn't match Pod's node affinity/selector. preemption: 0/2 nodes are available: 2 Preemption is not helpful for scheduling.

wait 600
----
  300.000  scheduling decides Unschedulable for b
  300.000  says about b: "0/2 nodes are available: 1 cannot allocate all claims, 1 node(s) didn't match Pod's node affinity/selector. preemption: 0/2 nodes are available: 2 Preemption is not helpful for scheduling."
  600.000  scheduling decides Unschedulable for b
  600.000  repeats (2) about b

show resourceclaims/mine
----
resourceclaims/mine finalizers=1 devices=n1/gpu-0 reserved=- terminating=-

# Switched off: the misplaced claim is remembered and freed.
cluster c12=off
----
(nothing)

world nodes=2
----
2 node(s) with 1 device(s) each

claim mine
----
    0.000  resourceclaims/mine finalizers=0 devices=- reserved=- terminating=-

pod a claim=mine
----
    0.000  pods/a phase=Pending claims=- nominated=- node=- scheduled=- disrupted=- terminating=-
    0.000  scheduling decides Scheduled for a on n1 n1/gpu-0
    0.000  pods/a nominated=n1
    0.000  resourceclaims/mine finalizers=1
    0.000  resourceclaims/mine devices=n1/gpu-0 reserved=a
    0.000  pods/a nominated=- node=n1 scheduled=True
    0.000  says about a: "Successfully assigned default/a to n1"

delete pods/a
----
    0.000  pods/a terminating=yes

unreserve mine
----
    0.000  resourceclaims/mine reserved=-

kill a
----
    0.000  pods/a (no change to tell)
    0.000  pods/a is gone

claim huge count=5
----
    0.000  resourceclaims/huge finalizers=0 devices=- reserved=- terminating=-

pod b both=mine,huge node=n2
----
    0.000  pods/b phase=Pending claims=- nominated=- node=- scheduled=- disrupted=- terminating=-
    0.000  scheduling decides Unschedulable for b
    0.000  resourceclaims/mine devices=-
    0.000  says about b: "0/2 nodes are available: 1 cannot allocate all claims, 1 node(s) didn't match Pod's node affinity/selector. deallocation of ResourceClaim completed, preemption: 0/2 nodes are available: 2 Preemption is not helpful for scheduling."
    0.000  pods/b scheduled=False/Unschedulable
    0.000  scheduling decides Unschedulable for b
    0.000  says about b: "0/2 nodes are available: 1 cannot allocate all claims, 1 node(s) didn't match Pod's node affinity/selector. preemption: 0/2 nodes are available: 2 Preemption is not helpful for scheduling."
    0.000  pods/b (no change to tell)

show resourceclaims/mine
----
resourceclaims/mine finalizers=1 devices=- reserved=- terminating=-
