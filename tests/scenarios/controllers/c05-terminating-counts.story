# C5: a pod that its owner deleted counts as evicted.
node n1 devices=1
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

pod web template=gpu
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

delete pods/web
----
    0.000  pods/web terminating=yes

rule bad
----
    0.000  devicetaintrules/bad effect=NoExecute condition=- message=-
    0.000  rule-status decides NotStarted for bad
    0.000  devicetaintrules/bad condition=False/NotStarted message=""
    0.000  eviction decides AlreadyTerminating for web

wait 10
----
   10.000  rule-status decides Completed for bad
   10.000  devicetaintrules/bad condition=False/Completed message="1 pod evicted since starting the controller."

# Switched off: only evictions count.
cluster c5=off
----
(nothing)

world
----
1 node(s) with 1 device(s) each

pod web template=gpu
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

delete pods/web
----
    0.000  pods/web terminating=yes

rule bad
----
    0.000  devicetaintrules/bad effect=NoExecute condition=- message=-
    0.000  rule-status decides NotStarted for bad
    0.000  devicetaintrules/bad condition=False/NotStarted message=""
    0.000  eviction decides AlreadyTerminating for web

wait 10
----
   10.000  rule-status decides Unchanged for bad

show devicetaintrules/bad
----
devicetaintrules/bad effect=NoExecute condition=False/NotStarted message=""
