# The effect is reduced before the window is over.
node n1 devices=1
----
    0.000  node-lifecycle decides Registered for n1
    0.000  says about n1: "Node n1 event: Registered Node n1 in Controller"
    0.000  node-lifecycle decides Untainted for n1

class gpu
----
(nothing)

template patient tolerate=NoExecute:60
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

wait 30
----
   10.000  rule-status decides Unchanged for bad

effect bad NoSchedule
----
   30.000  devicetaintrules/bad effect=NoSchedule
   30.000  rule-status decides OtherEffect for bad
   30.000  devicetaintrules/bad condition=False/OtherEffect message="Eviction only happens for the NoExecute effect."
   30.000  eviction decides Cancelled for web
   30.000  says about web: "Cancelling deletion"

wait 60
----
(nothing)

show pods/web
----
pods/web phase=Pending claims=web-gpu-wcplz nominated=- node=n1 scheduled=True disrupted=- terminating=-
