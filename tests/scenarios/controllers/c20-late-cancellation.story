# C20: an evicted pod that loses its reservation before it is gone is "cancelled" late.
node n1 devices=1
----
    0.000  node-lifecycle decides Registered for n1
    0.000  says about n1: "Node n1 event: Registered Node n1 in Controller"
    0.000  node-lifecycle decides Untainted for n1

class gpu
----
(nothing)

claim shared
----
    0.000  resourceclaims/shared finalizers=0 devices=- reserved=- terminating=-

pod a claim=shared
----
    0.000  pods/a phase=Pending claims=- nominated=- node=- scheduled=- disrupted=- terminating=-
    0.000  scheduling decides Scheduled for a on n1 n1/gpu-0
    0.000  pods/a nominated=n1
    0.000  resourceclaims/shared finalizers=1
    0.000  resourceclaims/shared devices=n1/gpu-0 reserved=a
    0.000  pods/a nominated=- node=n1 scheduled=True
    0.000  says about a: "Successfully assigned default/a to n1"

pod b claim=shared
----
    0.000  pods/b phase=Pending claims=- nominated=- node=- scheduled=- disrupted=- terminating=-
    0.000  scheduling decides Scheduled for b on n1 n1/gpu-0
    0.000  pods/b nominated=n1
    0.000  resourceclaims/shared reserved=a,b
    0.000  pods/b nominated=- node=n1 scheduled=True
    0.000  says about b: "Successfully assigned default/b to n1"

rule bad
----
    0.000  devicetaintrules/bad effect=NoExecute condition=- message=-
    0.000  rule-status decides PodsPendingEviction for bad
    0.000  devicetaintrules/bad condition=True/PodsPendingEviction message="2 pods need to be evicted in 1 namespace."
    0.000  eviction decides Evicted for a
    0.000  says about a: "Marking for deletion"
    0.000  pods/a disrupted=True/DeletionByDeviceTaintManager
    0.000  pods/a terminating=yes
    0.000  eviction decides Evicted for b
    0.000  says about b: "Marking for deletion"
    0.000  pods/b disrupted=True/DeletionByDeviceTaintManager
    0.000  pods/b terminating=yes

finish a Failed
----
    0.000  pods/a phase=Failed
    0.000  claims decides Released for shared a: pod is Failed
    0.000  resourceclaims/shared reserved=b

finish b Failed
----
    0.000  pods/b phase=Failed
    0.000  claims decides Deallocated for shared b: pod is Failed
    0.000  resourceclaims/shared devices=- reserved=-
    0.000  resourceclaims/shared finalizers=0
    0.000  eviction decides Cancelled for b
    0.000  says about b: "Cancelling deletion"
