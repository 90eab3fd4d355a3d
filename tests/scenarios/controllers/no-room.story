# One device, two pods. The second waits, says so twice, then only counts.
node n1 devices=1
----
    0.000  node-lifecycle decides Registered for n1
    0.000  says about n1: "Node n1 event: Registered Node n1 in Controller"
    0.000  node-lifecycle decides Untainted for n1

class gpu
----
(nothing)

template gpu
----
(nothing)

pod first template=gpu
----
    0.000  pods/first phase=Pending claims=- nominated=- node=- scheduled=- disrupted=- terminating=-
    0.000  resourceclaims/first-gpu-wcplz finalizers=0 devices=- reserved=- terminating=-
    0.000  pods/first claims=first-gpu-wcplz
    0.000  scheduling decides Scheduled for first on n1 n1/gpu-0
    0.000  pods/first nominated=n1
    0.000  resourceclaims/first-gpu-wcplz finalizers=1
    0.000  resourceclaims/first-gpu-wcplz devices=n1/gpu-0 reserved=first
    0.000  pods/first nominated=- node=n1 scheduled=True
    0.000  says about first: "Successfully assigned default/first to n1"

pod second template=gpu
----
    0.000  pods/second phase=Pending claims=- nominated=- node=- scheduled=- disrupted=- terminating=-
    0.000  resourceclaims/second-gpu-xd94g finalizers=0 devices=- reserved=- terminating=-
    0.000  pods/second claims=second-gpu-xd94g
    0.000  scheduling decides Unschedulable for second
    0.000  says about second: "0/1 nodes are available: 1 cannot allocate all claims. preemption: 0/1 nodes are available: 1 Preemption is not helpful for scheduling."
    0.000  pods/second scheduled=False/Unschedulable

why second
----
0/1 nodes are available: 1 cannot allocate all claims. preemption: 0/1 nodes are available: 1 Preemption is not helpful for scheduling.

# Something that may help happens, and does not.
class another
----
    0.000  scheduling decides Unschedulable for second
    0.000  says about second: "0/1 nodes are available: 1 cannot allocate all claims. preemption: 0/1 nodes are available: 1 Preemption is not helpful for scheduling."

wait 12
----
(nothing)

class a-third
----
   12.000  scheduling decides Unschedulable for second
   12.000  repeats (2) about second

wait 12
----
(nothing)

finish first
----
   24.000  pods/first phase=Succeeded
   24.000  claims decides Deleted for first-gpu-wcplz first: pod is Succeeded
   24.000  resourceclaims/first-gpu-wcplz devices=- reserved=-
   24.000  resourceclaims/first-gpu-wcplz finalizers=0
   24.000  resourceclaims/first-gpu-wcplz is gone
   24.000  scheduling decides Scheduled for second on n1 n1/gpu-0
   24.000  pods/second nominated=n1
   24.000  resourceclaims/second-gpu-xd94g finalizers=1
   24.000  resourceclaims/second-gpu-xd94g devices=n1/gpu-0 reserved=second
   24.000  pods/second nominated=- node=n1 scheduled=True
   24.000  says about second: "Successfully assigned default/second to n1"

wait 3
----
(nothing)
