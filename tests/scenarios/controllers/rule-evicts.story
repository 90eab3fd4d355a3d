# A rule evicts at once; its status tells, at most every ten seconds.
node n1 devices=2
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

template patient tolerate=NoExecute:60
----
(nothing)

pod now template=gpu
----
    0.000  pods/now phase=Pending claims=- nominated=- node=- scheduled=- disrupted=- terminating=-
    0.000  resourceclaims/now-gpu-pzbmh finalizers=0 devices=- reserved=- terminating=-
    0.000  pods/now claims=now-gpu-pzbmh
    0.000  scheduling decides Scheduled for now on n1 n1/gpu-0
    0.000  pods/now nominated=n1
    0.000  resourceclaims/now-gpu-pzbmh finalizers=1
    0.000  resourceclaims/now-gpu-pzbmh devices=n1/gpu-0 reserved=now
    0.000  pods/now nominated=- node=n1 scheduled=True
    0.000  says about now: "Successfully assigned default/now to n1"

pod later template=patient
----
    0.000  pods/later phase=Pending claims=- nominated=- node=- scheduled=- disrupted=- terminating=-
    0.000  resourceclaims/later-gpu-d8rsq finalizers=0 devices=- reserved=- terminating=-
    0.000  pods/later claims=later-gpu-d8rsq
    0.000  scheduling decides Scheduled for later on n1 n1/gpu-1
    0.000  pods/later nominated=n1
    0.000  resourceclaims/later-gpu-d8rsq finalizers=1
    0.000  resourceclaims/later-gpu-d8rsq devices=n1/gpu-1 reserved=later
    0.000  pods/later nominated=- node=n1 scheduled=True
    0.000  says about later: "Successfully assigned default/later to n1"

rule bad
----
    0.000  devicetaintrules/bad effect=NoExecute condition=- message=-
    0.000  rule-status decides PodsPendingEviction for bad
    0.000  devicetaintrules/bad condition=True/PodsPendingEviction message="2 pods need to be evicted in 1 namespace."
    0.000  eviction decides Evicted for now
    0.000  says about now: "Marking for deletion"
    0.000  pods/now disrupted=True/DeletionByDeviceTaintManager
    0.000  pods/now terminating=yes

kill now
----
    0.000  pods/now (no change to tell)
    0.000  pods/now is gone
    0.000  claims decides Deallocated for now-gpu-pzbmh now: pod is gone
    0.000  resourceclaims/now-gpu-pzbmh devices=- reserved=-
    0.000  resourceclaims/now-gpu-pzbmh finalizers=0
    0.000  resourceclaims/now-gpu-pzbmh is gone

wait 10
----
   10.000  rule-status decides PodsPendingEviction for bad
   10.000  devicetaintrules/bad message="1 pod needs to be evicted in 1 namespace. 1 pod evicted since starting the controller."

wait 50
----
   60.000  eviction decides Evicted for later
   60.000  says about later: "Marking for deletion"
   60.000  pods/later disrupted=True/DeletionByDeviceTaintManager
   60.000  pods/later terminating=yes

kill later
----
   60.000  pods/later (no change to tell)
   60.000  pods/later is gone
   60.000  claims decides Deallocated for later-gpu-d8rsq later: pod is gone
   60.000  resourceclaims/later-gpu-d8rsq devices=- reserved=-
   60.000  resourceclaims/later-gpu-d8rsq finalizers=0
   60.000  resourceclaims/later-gpu-d8rsq is gone

wait 10
----
   70.000  rule-status decides Completed for bad
   70.000  devicetaintrules/bad condition=False/Completed message="2 pods evicted since starting the controller."
