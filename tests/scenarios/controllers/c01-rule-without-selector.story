# C1: a rule without selector keeps new pods away everywhere and evicts nobody.
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

pod before template=gpu
----
    0.000  pods/before phase=Pending claims=- nominated=- node=- scheduled=- disrupted=- terminating=-
    0.000  resourceclaims/before-gpu-wcplz finalizers=0 devices=- reserved=- terminating=-
    0.000  pods/before claims=before-gpu-wcplz
    0.000  scheduling decides Scheduled for before on n1 n1/gpu-0
    0.000  pods/before nominated=n1
    0.000  resourceclaims/before-gpu-wcplz finalizers=1
    0.000  resourceclaims/before-gpu-wcplz devices=n1/gpu-0 reserved=before
    0.000  pods/before nominated=- node=n1 scheduled=True
    0.000  says about before: "Successfully assigned default/before to n1"

rule all all=yes
----
    0.000  devicetaintrules/all effect=NoExecute condition=- message=-
    0.000  rule-status decides NotStarted for all
    0.000  devicetaintrules/all condition=False/NotStarted message=""

pod after template=gpu
----
    0.000  pods/after phase=Pending claims=- nominated=- node=- scheduled=- disrupted=- terminating=-
    0.000  resourceclaims/after-gpu-d8rsq finalizers=0 devices=- reserved=- terminating=-
    0.000  pods/after claims=after-gpu-d8rsq
    0.000  scheduling decides Unschedulable for after
    0.000  says about after: "0/1 nodes are available: 1 cannot allocate all claims. preemption: 0/1 nodes are available: 1 Preemption is not helpful for scheduling."
    0.000  pods/after scheduled=False/Unschedulable

why after
----
0/1 nodes are available: 1 cannot allocate all claims. preemption: 0/1 nodes are available: 1 Preemption is not helpful for scheduling.

# Switched off: it evicts as well.
cluster c1=off
----
(nothing)

world devices=2
----
1 node(s) with 2 device(s) each

pod before template=gpu
----
    0.000  pods/before phase=Pending claims=- nominated=- node=- scheduled=- disrupted=- terminating=-
    0.000  resourceclaims/before-gpu-wcplz finalizers=0 devices=- reserved=- terminating=-
    0.000  pods/before claims=before-gpu-wcplz
    0.000  scheduling decides Scheduled for before on n1 n1/gpu-0
    0.000  pods/before nominated=n1
    0.000  resourceclaims/before-gpu-wcplz finalizers=1
    0.000  resourceclaims/before-gpu-wcplz devices=n1/gpu-0 reserved=before
    0.000  pods/before nominated=- node=n1 scheduled=True
    0.000  says about before: "Successfully assigned default/before to n1"

rule all all=yes
----
    0.000  devicetaintrules/all effect=NoExecute condition=- message=-
    0.000  rule-status decides PodsPendingEviction for all
    0.000  devicetaintrules/all condition=True/PodsPendingEviction message="1 pod needs to be evicted in 1 namespace."
    0.000  eviction decides Evicted for before
    0.000  says about before: "Marking for deletion"
    0.000  pods/before disrupted=True/DeletionByDeviceTaintManager
    0.000  pods/before terminating=yes
