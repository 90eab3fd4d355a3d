# C6: a pending pod that its owner removes leaves the count as it was, once the look of ten seconds
# after its eviction was planned is over.
node n1 devices=1
----
    0.000  node-lifecycle decides Registered for n1
    0.000  says about n1: "Node n1 event: Registered Node n1 in Controller"
    0.000  node-lifecycle decides Untainted for n1

class gpu
----
(nothing)

template patient tolerate=NoExecute:600
----
(nothing)

pod web template=patient
----
    0.000  pods/web phase=Pending claims=- nominated=- node=- scheduled=- disrupted=- terminating=-
    0.000  resourceclaims/web-gpu-wcplz finalizers=0 devices=- reserved=- terminating=-
    0.000  pods/web claims=web-gpu-wcplz
    0.000  scheduling decides Scheduled for web on n1 n1/gpu-0
    0.000  pods/web nominated=n1
    0.000  resourceclaims/web-gpu-wcplz finalizers=1
    0.000  resourceclaims/web-gpu-wcplz devices=n1/gpu-0 reserved=web
    0.000  pods/web nominated=- node=n1 scheduled=True
    0.000  says about web: "Successfully assigned default/web to n1"

rule bad
----
    0.000  devicetaintrules/bad effect=NoExecute condition=- message=-
    0.000  rule-status decides PodsPendingEviction for bad
    0.000  devicetaintrules/bad condition=True/PodsPendingEviction message="1 pod needs to be evicted in 1 namespace."

wait 10
----
   10.000  rule-status decides Unchanged for bad

delete pods/web
----
   10.000  pods/web terminating=yes

kill web
----
   10.000  pods/web (no change to tell)
   10.000  pods/web is gone
   10.000  claims decides Deallocated for web-gpu-wcplz web: pod is gone
   10.000  resourceclaims/web-gpu-wcplz devices=- reserved=-
   10.000  resourceclaims/web-gpu-wcplz finalizers=0
   10.000  resourceclaims/web-gpu-wcplz is gone

wait 60
----
(nothing)

show devicetaintrules/bad
----
devicetaintrules/bad effect=NoExecute condition=True/PodsPendingEviction message="1 pod needs to be evicted in 1 namespace."
