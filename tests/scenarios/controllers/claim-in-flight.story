# Two pods that share a new claim, where a binding takes 100 ms: the second finds the claim in flight
# and is woken by its allocation.
cluster bind=100
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
    0.000  scheduling decides Assumed for a on n1 n1/gpu-0
    0.000  pods/a nominated=n1

pod b claim=mine
----
    0.000  pods/b phase=Pending claims=- nominated=- node=- scheduled=- disrupted=- terminating=-
    0.000  scheduling decides Unschedulable for b
    0.000  says about b: "0/1 nodes are available: resource claim default/mine is in the process of being allocated. preemption: 0/1 nodes are available: 1 Preemption is not helpful for scheduling."
    0.000  pods/b scheduled=False/Unschedulable

wait 0.05
----
    0.050  scheduling decides Reserved for a on n1
    0.050  resourceclaims/mine finalizers=1
    0.050  resourceclaims/mine devices=n1/gpu-0 reserved=a
    0.050  scheduling decides Assumed for b on n1 n1/gpu-0
    0.050  pods/b nominated=n1

wait 2
----
    0.100  scheduling decides Scheduled for a on n1
    0.100  pods/a nominated=- node=n1 scheduled=True
    0.100  says about a: "Successfully assigned default/a to n1"
    0.100  scheduling decides Reserved for b on n1
    0.100  resourceclaims/mine reserved=a,b
    0.150  scheduling decides Scheduled for b on n1
    0.150  pods/b nominated=- node=n1 scheduled=True
    0.150  says about b: "Successfully assigned default/b to n1"
