# C3: a pod whose device came through an extended resource is not evicted.
class gpu extended=example.com/gpu
----
(nothing)

node n1 devices=1
----
    0.000  node-lifecycle decides Registered for n1
    0.000  says about n1: "Node n1 event: Registered Node n1 in Controller"
    0.000  node-lifecycle decides Untainted for n1

pod web extended=example.com/gpu
----
    0.000  pods/web phase=Pending claims=- nominated=- node=- scheduled=- disrupted=- terminating=-
    0.000  scheduling decides Scheduled for web on n1 n1/gpu-0
    0.000  pods/web nominated=n1
    0.000  resourceclaims/web-extended-resources-5snbf finalizers=0 devices=- reserved=- terminating=-
    0.000  resourceclaims/web-extended-resources-5snbf finalizers=1
    0.000  resourceclaims/web-extended-resources-5snbf devices=n1/gpu-0 reserved=web
    0.000  pods/web claims=web-extended-resources-5snbf
    0.000  pods/web nominated=- node=n1 scheduled=True
    0.000  says about web: "Successfully assigned default/web to n1"

rule bad
----
    0.000  devicetaintrules/bad effect=NoExecute condition=- message=-
    0.000  rule-status decides NotStarted for bad
    0.000  devicetaintrules/bad condition=False/NotStarted message=""

wait 60
----
(nothing)

show pods/web
----
pods/web phase=Pending claims=web-extended-resources-5snbf nominated=- node=n1 scheduled=True disrupted=- terminating=-

# Switched off: it goes like any other pod.
cluster c3=off
----
(nothing)

class gpu extended=example.com/gpu
----
(nothing)

node n1 devices=1
----
    0.000  node-lifecycle decides Registered for n1
    0.000  says about n1: "Node n1 event: Registered Node n1 in Controller"
    0.000  node-lifecycle decides Untainted for n1

pod web extended=example.com/gpu
----
    0.000  pods/web phase=Pending claims=- nominated=- node=- scheduled=- disrupted=- terminating=-
    0.000  scheduling decides Scheduled for web on n1 n1/gpu-0
    0.000  pods/web nominated=n1
    0.000  resourceclaims/web-extended-resources-5snbf finalizers=0 devices=- reserved=- terminating=-
    0.000  resourceclaims/web-extended-resources-5snbf finalizers=1
    0.000  resourceclaims/web-extended-resources-5snbf devices=n1/gpu-0 reserved=web
    0.000  pods/web claims=web-extended-resources-5snbf
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

show pods/web
----
pods/web phase=Pending claims=web-extended-resources-5snbf nominated=- node=n1 scheduled=True disrupted=True/DeletionByDeviceTaintManager terminating=yes
