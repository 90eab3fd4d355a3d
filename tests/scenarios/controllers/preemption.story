# A pod of higher priority finds no room: another one goes, and its claim with it.
world devices=1
----
1 node(s) with 1 device(s) each

priority high 1000
----
(nothing)

pod small template=gpu cpu=30
----
    0.000  pods/small phase=Pending claims=- nominated=- node=- scheduled=- disrupted=- terminating=-
    0.000  resourceclaims/small-gpu-pzbmh finalizers=0 devices=- reserved=- terminating=-
    0.000  pods/small claims=small-gpu-pzbmh
    0.000  scheduling decides Scheduled for small on n1 n1/gpu-0
    0.000  pods/small nominated=n1
    0.000  resourceclaims/small-gpu-pzbmh finalizers=1
    0.000  resourceclaims/small-gpu-pzbmh devices=n1/gpu-0 reserved=small
    0.000  pods/small nominated=- node=n1 scheduled=True
    0.000  says about small: "Successfully assigned default/small to n1"

pod big cpu=31 priority=high
----
    0.000  pods/big phase=Pending claims=- nominated=- node=- scheduled=- disrupted=- terminating=-
    0.000  scheduling decides Unschedulable for big
    0.000  pods/small disrupted=True/PreemptionByScheduler
    0.000  pods/small terminating=yes
    0.000  says about small: "Preempted by pod 49fef75a-cd55-41bc-b976-88b73b85d88f on node n1"
    0.000  says about big: "0/1 nodes are available: 1 Insufficient cpu. preemption: found a potential placement for pod on node n1, preempting 1 victims"
    0.000  pods/big nominated=n1 scheduled=False/Unschedulable

# The node is kept for it: who is not more important does not get the room that is left.
pod late cpu=2
----
    0.000  pods/late phase=Pending claims=- nominated=- node=- scheduled=- disrupted=- terminating=-
    0.000  scheduling decides Unschedulable for late
    0.000  says about late: "0/1 nodes are available: 1 Insufficient cpu. preemption: 0/1 nodes are available: 1 No preemption victims found for incoming pod."
    0.000  pods/late scheduled=False/Unschedulable

# While its victim ends, the pod evicts nobody else.
node n2 cpu=1
----
    0.000  node-lifecycle decides Registered for n2
    0.000  says about n2: "Node n2 event: Registered Node n2 in Controller"
    0.000  node-lifecycle decides Untainted for n2
    0.000  scheduling decides Unschedulable for big
    0.000  says about big: "0/2 nodes are available: 2 Insufficient cpu. preemption: not eligible due to a terminating pod on the nominated node."
    0.000  pods/big (no change to tell)
    0.000  scheduling decides Unschedulable for late
    0.000  says about late: "0/2 nodes are available: 2 Insufficient cpu. preemption: 0/2 nodes are available: 1 No preemption victims found for incoming pod, 1 Preemption is not helpful for scheduling."
    0.000  pods/late (no change to tell)

why big
----
0/2 nodes are available: 2 Insufficient cpu. preemption: not eligible due to a terminating pod on the nominated node.

kill small
----
    0.000  pods/small (no change to tell)
    0.000  pods/small is gone
    0.000  claims decides Deallocated for small-gpu-pzbmh small: pod is gone
    0.000  resourceclaims/small-gpu-pzbmh devices=- reserved=-
    0.000  resourceclaims/small-gpu-pzbmh finalizers=0
    0.000  resourceclaims/small-gpu-pzbmh is gone
    0.000  scheduling decides Scheduled for big on n1
    0.000  pods/big nominated=- node=n1 scheduled=True
    0.000  says about big: "Successfully assigned default/big to n1"
    0.000  scheduling decides Unschedulable for late
    0.000  says about late: "0/2 nodes are available: 2 Insufficient cpu. preemption: 0/2 nodes are available: 1 No preemption victims found for incoming pod, 1 Preemption is not helpful for scheduling."

# Whoever may not evict waits, and nobody goes for a pod of the same priority.
priority patient 2000 policy=Never
----
(nothing)

pod humble cpu=30 priority=patient
----
    0.000  pods/humble phase=Pending claims=- nominated=- node=- scheduled=- disrupted=- terminating=-
    0.000  scheduling decides Unschedulable for humble
    0.000  says about humble: "0/2 nodes are available: 2 Insufficient cpu. preemption: not eligible due to preemptionPolicy=Never."
    0.000  pods/humble scheduled=False/Unschedulable

pod equal cpu=30 priority=high
----
    0.000  pods/equal phase=Pending claims=- nominated=- node=- scheduled=- disrupted=- terminating=-
    0.000  scheduling decides Unschedulable for equal
    0.000  says about equal: "0/2 nodes are available: 2 Insufficient cpu. preemption: 0/2 nodes are available: 1 No preemption victims found for incoming pod, 1 Preemption is not helpful for scheduling."
    0.000  pods/equal scheduled=False/Unschedulable

# Devices are never freed in this way.
delete pods/big
----
    0.000  pods/big terminating=yes

kill big
----
    0.000  pods/big (no change to tell)
    0.000  pods/big is gone
    0.000  scheduling decides Scheduled for humble on n1
    0.000  pods/humble node=n1 scheduled=True
    0.000  says about humble: "Successfully assigned default/humble to n1"
    0.000  scheduling decides Unschedulable for equal
    0.000  says about equal: "0/2 nodes are available: 2 Insufficient cpu. preemption: 0/2 nodes are available: 1 No preemption victims found for incoming pod, 1 Preemption is not helpful for scheduling."
    0.000  scheduling decides Scheduled for late on n1
    0.000  pods/late node=n1 scheduled=True
    0.000  says about late: "Successfully assigned default/late to n1"

pod holder template=gpu
----
    0.000  pods/holder phase=Pending claims=- nominated=- node=- scheduled=- disrupted=- terminating=-
    0.000  resourceclaims/holder-gpu-b6nkw finalizers=0 devices=- reserved=- terminating=-
    0.000  pods/holder claims=holder-gpu-b6nkw
    0.000  scheduling decides Scheduled for holder on n1 n1/gpu-0
    0.000  pods/holder nominated=n1
    0.000  resourceclaims/holder-gpu-b6nkw finalizers=1
    0.000  resourceclaims/holder-gpu-b6nkw devices=n1/gpu-0 reserved=holder
    0.000  pods/holder nominated=- node=n1 scheduled=True
    0.000  says about holder: "Successfully assigned default/holder to n1"

pod envious template=gpu priority=high
----
    0.000  pods/envious phase=Pending claims=- nominated=- node=- scheduled=- disrupted=- terminating=-
    0.000  resourceclaims/envious-gpu-grr94 finalizers=0 devices=- reserved=- terminating=-
    0.000  pods/envious claims=envious-gpu-grr94
    0.000  scheduling decides Unschedulable for envious
    0.000  says about envious: "0/2 nodes are available: 2 cannot allocate all claims. preemption: 0/2 nodes are available: 2 Preemption is not helpful for scheduling."
    0.000  pods/envious scheduled=False/Unschedulable
