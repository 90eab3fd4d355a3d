# C23, with c8=on: a shared claim is deleted while in use and one of its pods finishes. Pod sync
# wants to reserve the terminating claim again and is refused until the claim is gone.
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

delete resourceclaims/mine
----
    0.000  resourceclaims/mine terminating=yes

finish a
----
    0.000  pods/a phase=Succeeded
    0.000  claims decides Released for mine a: pod is Succeeded
    0.000  resourceclaims/mine reserved=b
refused to claims: ResourceClaim.resource.k8s.io "mine" is invalid: status.reservedFor: Forbidden: new entries may not be added while `deallocationRequested` or `deletionTimestamp` are set

wait 1
----
refused to claims: ResourceClaim.resource.k8s.io "mine" is invalid: status.reservedFor: Forbidden: new entries may not be added while `deallocationRequested` or `deletionTimestamp` are set

show resourceclaims/mine
----
resourceclaims/mine finalizers=1 devices=n1/gpu-0 reserved=b terminating=yes

finish b
----
    1.000  pods/b phase=Succeeded
    1.000  claims decides Deleted for mine b: pod is Succeeded
    1.000  resourceclaims/mine devices=- reserved=-
    1.000  resourceclaims/mine is gone
