# Effect None evicts nobody and tells what NoExecute would do.
node n1 devices=3
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

pod a template=gpu
----
    0.000  pods/a phase=Pending claims=- nominated=- node=- scheduled=- disrupted=- terminating=-
    0.000  resourceclaims/a-gpu-wcplz finalizers=0 devices=- reserved=- terminating=-
    0.000  pods/a claims=a-gpu-wcplz
    0.000  scheduling decides Scheduled for a on n1 n1/gpu-0
    0.000  pods/a nominated=n1
    0.000  resourceclaims/a-gpu-wcplz finalizers=1
    0.000  resourceclaims/a-gpu-wcplz devices=n1/gpu-0 reserved=a
    0.000  pods/a nominated=- node=n1 scheduled=True
    0.000  says about a: "Successfully assigned default/a to n1"

pod b template=gpu
----
    0.000  pods/b phase=Pending claims=- nominated=- node=- scheduled=- disrupted=- terminating=-
    0.000  resourceclaims/b-gpu-xd94g finalizers=0 devices=- reserved=- terminating=-
    0.000  pods/b claims=b-gpu-xd94g
    0.000  scheduling decides Scheduled for b on n1 n1/gpu-1
    0.000  pods/b nominated=n1
    0.000  resourceclaims/b-gpu-xd94g finalizers=1
    0.000  resourceclaims/b-gpu-xd94g devices=n1/gpu-1 reserved=b
    0.000  pods/b nominated=- node=n1 scheduled=True
    0.000  says about b: "Successfully assigned default/b to n1"

rule maybe effect=None
----
    0.000  devicetaintrules/maybe effect=None condition=- message=-
    0.000  rule-status decides NoEffect for maybe
    0.000  devicetaintrules/maybe condition=False/NoEffect message="3 published devices selected. 2 allocated devices selected. 2 pods would be evicted in 1 namespace if the effect was NoExecute. This information will not be updated again. Recreate the DeviceTaintRule to trigger an update."

# The numbers stay as they are until the spec changes.
pod c template=gpu
----
    0.000  pods/c phase=Pending claims=- nominated=- node=- scheduled=- disrupted=- terminating=-
    0.000  resourceclaims/c-gpu-lc9hx finalizers=0 devices=- reserved=- terminating=-
    0.000  pods/c claims=c-gpu-lc9hx
    0.000  scheduling decides Scheduled for c on n1 n1/gpu-2
    0.000  pods/c nominated=n1
    0.000  resourceclaims/c-gpu-lc9hx finalizers=1
    0.000  resourceclaims/c-gpu-lc9hx devices=n1/gpu-2 reserved=c
    0.000  pods/c nominated=- node=n1 scheduled=True
    0.000  says about c: "Successfully assigned default/c to n1"

wait 60
----
(nothing)

effect maybe NoExecute
----
   60.000  devicetaintrules/maybe effect=NoExecute
   60.000  rule-status decides PodsPendingEviction for maybe
   60.000  devicetaintrules/maybe condition=True/PodsPendingEviction message="3 pods need to be evicted in 1 namespace."
   60.000  eviction decides Evicted for a
   60.000  says about a: "Marking for deletion"
   60.000  pods/a disrupted=True/DeletionByDeviceTaintManager
   60.000  pods/a terminating=yes
   60.000  eviction decides Evicted for b
   60.000  says about b: "Marking for deletion"
   60.000  pods/b disrupted=True/DeletionByDeviceTaintManager
   60.000  pods/b terminating=yes
   60.000  eviction decides Evicted for c
   60.000  says about c: "Marking for deletion"
   60.000  pods/c disrupted=True/DeletionByDeviceTaintManager
   60.000  pods/c terminating=yes
