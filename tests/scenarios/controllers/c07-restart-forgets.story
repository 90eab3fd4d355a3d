# C7, as it is by default: how many pods a rule has evicted is kept when the controller restarts.
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

rule bad
----
    0.000  devicetaintrules/bad effect=NoExecute condition=- message=-
    0.000  rule-status decides PodsPendingEviction for bad
    0.000  devicetaintrules/bad condition=True/PodsPendingEviction message="1 pod needs to be evicted in 1 namespace."
    0.000  eviction decides Evicted for web
    0.000  says about web: "Marking for deletion"
    0.000  pods/web disrupted=True/DeletionByDeviceTaintManager
    0.000  pods/web terminating=yes

wait 15
----
   10.000  rule-status decides Completed for bad
   10.000  devicetaintrules/bad condition=False/Completed message="1 pod evicted since starting the controller."

restart
----
(nothing)

wait 15
----
   20.000  rule-status decides Unchanged for bad

show devicetaintrules/bad
----
devicetaintrules/bad effect=NoExecute condition=False/Completed message="1 pod evicted since starting the controller."

# Switched on: the count is forgotten.
cluster c7=on
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

rule bad
----
    0.000  devicetaintrules/bad effect=NoExecute condition=- message=-
    0.000  rule-status decides PodsPendingEviction for bad
    0.000  devicetaintrules/bad condition=True/PodsPendingEviction message="1 pod needs to be evicted in 1 namespace."
    0.000  eviction decides Evicted for web
    0.000  says about web: "Marking for deletion"
    0.000  pods/web disrupted=True/DeletionByDeviceTaintManager
    0.000  pods/web terminating=yes

wait 15
----
   10.000  rule-status decides Completed for bad
   10.000  devicetaintrules/bad condition=False/Completed message="1 pod evicted since starting the controller."

restart
----
(nothing)

wait 15
----
   20.000  rule-status decides NotStarted for bad
   20.000  devicetaintrules/bad condition=False/NotStarted message=""

show devicetaintrules/bad
----
devicetaintrules/bad effect=NoExecute condition=False/NotStarted message=""
