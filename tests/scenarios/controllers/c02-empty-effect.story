# C2: a toleration with an empty effect lets a pod onto the device and does not keep it there.
node n1 devices=1
----
    0.000  node-lifecycle decides Registered for n1
    0.000  says about n1: "Node n1 event: Registered Node n1 in Controller"
    0.000  node-lifecycle decides Untainted for n1

class gpu
----
(nothing)

template brave tolerate=any
----
(nothing)

rule bad
----
    0.000  devicetaintrules/bad effect=NoExecute condition=- message=-
    0.000  rule-status decides NotStarted for bad
    0.000  devicetaintrules/bad condition=False/NotStarted message=""

pod web template=brave
----
    0.000  pods/web phase=Pending claims=- nominated=- node=- scheduled=- disrupted=- terminating=-
    0.000  resourceclaims/web-gpu-pzbmh finalizers=0 devices=- reserved=- terminating=-
    0.000  pods/web claims=web-gpu-pzbmh
    0.000  scheduling decides Scheduled for web on n1 n1/gpu-0
    0.000  pods/web nominated=n1
    0.000  resourceclaims/web-gpu-pzbmh finalizers=1
    0.000  resourceclaims/web-gpu-pzbmh devices=n1/gpu-0 reserved=web
    0.000  pods/web nominated=- node=n1 scheduled=True
    0.000  says about web: "Successfully assigned default/web to n1"
    0.000  eviction decides Evicted for web
    0.000  says about web: "Marking for deletion"
    0.000  pods/web disrupted=True/DeletionByDeviceTaintManager
    0.000  pods/web terminating=yes

# Switched off: who is let onto the device may stay.
cluster c2=off
----
(nothing)

world tolerate=any
----
1 node(s) with 1 device(s) each

rule bad
----
    0.000  devicetaintrules/bad effect=NoExecute condition=- message=-
    0.000  rule-status decides NotStarted for bad
    0.000  devicetaintrules/bad condition=False/NotStarted message=""

pod web template=gpu
----
    0.000  pods/web phase=Pending claims=- nominated=- node=- scheduled=- disrupted=- terminating=-
    0.000  resourceclaims/web-gpu-pzbmh finalizers=0 devices=- reserved=- terminating=-
    0.000  pods/web claims=web-gpu-pzbmh
    0.000  scheduling decides Scheduled for web on n1 n1/gpu-0
    0.000  pods/web nominated=n1
    0.000  resourceclaims/web-gpu-pzbmh finalizers=1
    0.000  resourceclaims/web-gpu-pzbmh devices=n1/gpu-0 reserved=web
    0.000  pods/web nominated=- node=n1 scheduled=True
    0.000  says about web: "Successfully assigned default/web to n1"

show pods/web
----
pods/web phase=Pending claims=web-gpu-pzbmh nominated=- node=n1 scheduled=True disrupted=- terminating=-
