# C8, as it is by default: a finished pod of a shared claim is released once.
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

pod b claim=mine
----
    0.000  pods/b phase=Pending claims=- nominated=- node=- scheduled=- disrupted=- terminating=-
    0.000  scheduling decides Scheduled for b on n1 n1/gpu-0
    0.000  pods/b nominated=n1
    0.000  resourceclaims/mine reserved=a,b
    0.000  pods/b nominated=- node=n1 scheduled=True
    0.000  says about b: "Successfully assigned default/b to n1"

finish a
----
    0.000  pods/a phase=Succeeded
    0.000  claims decides Released for mine a: pod is Succeeded
    0.000  resourceclaims/mine reserved=b

show resourceclaims/mine
----
resourceclaims/mine finalizers=1 devices=n1/gpu-0 reserved=b terminating=-

# Switched on: pod sync and claim sync undo each other's work. Upstream's race ends by chance, here
# it ends after two rounds.
cluster c8=on
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

pod b claim=mine
----
    0.000  pods/b phase=Pending claims=- nominated=- node=- scheduled=- disrupted=- terminating=-
    0.000  scheduling decides Scheduled for b on n1 n1/gpu-0
    0.000  pods/b nominated=n1
    0.000  resourceclaims/mine reserved=a,b
    0.000  pods/b nominated=- node=n1 scheduled=True
    0.000  says about b: "Successfully assigned default/b to n1"

finish a
----
    0.000  pods/a phase=Succeeded
    0.000  claims decides Released for mine a: pod is Succeeded
    0.000  resourceclaims/mine reserved=b
    0.000  resourceclaims/mine reserved=b,a
    0.000  claims decides Released for mine a: pod is Succeeded
    0.000  resourceclaims/mine reserved=b
    0.000  resourceclaims/mine reserved=b,a
    0.000  claims decides Released for mine a: pod is Succeeded
    0.000  resourceclaims/mine reserved=b

show resourceclaims/mine
----
resourceclaims/mine finalizers=1 devices=n1/gpu-0 reserved=b terminating=-
