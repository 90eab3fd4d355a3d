# C15, up to 1.36: deleting an allocated claim frees its device and wakes no pod.
cluster profile=1.36
----
(nothing)

node n1 devices=1
----
    0.000  node-lifecycle decides Registered for n1
    0.000  says about n1: "Node n1 event: Registered Node n1 in Controller"
    0.000  node-lifecycle decides Untainted for n1

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

template gpu
----
(nothing)

pod b template=gpu
----
    0.000  pods/b phase=Pending claims=- nominated=- node=- scheduled=- disrupted=- terminating=-
    0.000  resourceclaims/b-gpu-xd94g finalizers=0 devices=- reserved=- terminating=-
    0.000  pods/b claims=b-gpu-xd94g
    0.000  scheduling decides Unschedulable for b
    0.000  says about b: "0/1 nodes are available: 1 cannot allocate all claims. still not schedulable, preemption: 0/1 nodes are available: 1 Preemption is not helpful for scheduling."
    0.000  pods/b scheduled=False/Unschedulable

delete pods/a
----
    0.000  pods/a terminating=yes

unreserve mine
----
    0.000  resourceclaims/mine reserved=-

unprotect mine
----
    0.000  resourceclaims/mine finalizers=0

kill a
----
    0.000  pods/a (no change to tell)
    0.000  pods/a is gone

delete resourceclaims/mine
----
    0.000  resourceclaims/mine is gone

wait 60
----
(nothing)

show pods/b
----
pods/b phase=Pending claims=b-gpu-xd94g nominated=- node=- scheduled=False/Unschedulable disrupted=- terminating=-

wait 300
----
  300.000  scheduling decides Scheduled for b on n1 n1/gpu-0
  300.000  pods/b nominated=n1
  300.000  resourceclaims/b-gpu-xd94g finalizers=1
  300.000  resourceclaims/b-gpu-xd94g devices=n1/gpu-0 reserved=b
  300.000  pods/b nominated=- node=n1 scheduled=True
  300.000  says about b: "Successfully assigned default/b to n1"

show pods/b
----
pods/b phase=Pending claims=b-gpu-xd94g nominated=- node=n1 scheduled=True disrupted=- terminating=-

# From 1.37 on the plug-in looks at deleted claims too.
cluster profile=1.37
----
(nothing)

world
----
1 node(s) with 1 device(s) each

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

pod b template=gpu
----
    0.000  pods/b phase=Pending claims=- nominated=- node=- scheduled=- disrupted=- terminating=-
    0.000  resourceclaims/b-gpu-xd94g finalizers=0 devices=- reserved=- terminating=-
    0.000  pods/b claims=b-gpu-xd94g
    0.000  scheduling decides Unschedulable for b
    0.000  says about b: "0/1 nodes are available: 1 cannot allocate all claims. preemption: 0/1 nodes are available: 1 Preemption is not helpful for scheduling."
    0.000  pods/b scheduled=False/Unschedulable

delete pods/a
----
    0.000  pods/a terminating=yes

unreserve mine
----
    0.000  resourceclaims/mine reserved=-

unprotect mine
----
    0.000  resourceclaims/mine finalizers=0

kill a
----
    0.000  pods/a (no change to tell)
    0.000  pods/a is gone

delete resourceclaims/mine
----
    0.000  resourceclaims/mine is gone
    0.000  scheduling decides Scheduled for b on n1 n1/gpu-0
    0.000  pods/b nominated=n1
    0.000  resourceclaims/b-gpu-xd94g finalizers=1
    0.000  resourceclaims/b-gpu-xd94g devices=n1/gpu-0 reserved=b
    0.000  pods/b nominated=- node=n1 scheduled=True
    0.000  says about b: "Successfully assigned default/b to n1"

wait 2
----
(nothing)
