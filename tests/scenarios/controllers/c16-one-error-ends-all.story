# C16: a selector fails on the device of n1; the pod would fit on n2 and waits all the same.
class gpu
----
(nothing)

node n1
----
    0.000  node-lifecycle decides Registered for n1
    0.000  says about n1: "Node n1 event: Registered Node n1 in Controller"
    0.000  node-lifecycle decides Untainted for n1

slice n1 other=1
----
(nothing)

node n2
----
    0.000  node-lifecycle decides Registered for n2
    0.000  says about n2: "Node n2 event: Registered Node n2 in Controller"
    0.000  node-lifecycle decides Untainted for n2

slice n2 size=40
----
(nothing)

template sized cel="device.attributes[\"gpu.example.com\"].size == 40"
----
(nothing)

pod web template=sized
----
    0.000  pods/web phase=Pending claims=- nominated=- node=- scheduled=- disrupted=- terminating=-
    0.000  resourceclaims/web-gpu-xd94g finalizers=0 devices=- reserved=- terminating=-
    0.000  pods/web claims=web-gpu-xd94g
    0.000  scheduling decides Error for web
    0.000  says about web: "running "DynamicResources" filter plugin: claim default/web-gpu-xd94g: selector #0 on device gpu.example.com/n1/gpu-0: CEL runtime error: no such key: size. consider using CEL optional chaining (.? followed by orValue()) or guarding the check with has() for optional fields"
    0.000  pods/web scheduled=False/SchedulerError

wait 20
----
    2.000  scheduling decides Error for web
    2.000  says about web: "running "DynamicResources" filter plugin: claim default/web-gpu-xd94g: selector #0 on device gpu.example.com/n1/gpu-0: CEL runtime error: no such key: size. consider using CEL optional chaining (.? followed by orValue()) or guarding the check with has() for optional fields"
    5.000  scheduling decides Error for web
    5.000  repeats (2) about web
   10.000  scheduling decides Unchanged for all
   19.000  scheduling decides Unchanged for all

why web
----
running "DynamicResources" filter plugin: claim default/web-gpu-xd94g: selector #0 on device gpu.example.com/n1/gpu-0: CEL runtime error: no such key: size. consider using CEL optional chaining (.? followed by orValue()) or guarding the check with has() for optional fields

# Switched off: the error rejects its own node only.
cluster c16=off
----
(nothing)

class gpu
----
(nothing)

node n1
----
    0.000  node-lifecycle decides Registered for n1
    0.000  says about n1: "Node n1 event: Registered Node n1 in Controller"
    0.000  node-lifecycle decides Untainted for n1

slice n1 other=1
----
(nothing)

node n2
----
    0.000  node-lifecycle decides Registered for n2
    0.000  says about n2: "Node n2 event: Registered Node n2 in Controller"
    0.000  node-lifecycle decides Untainted for n2

slice n2 size=40
----
(nothing)

template sized cel="device.attributes[\"gpu.example.com\"].size == 40"
----
(nothing)

pod web template=sized
----
    0.000  pods/web phase=Pending claims=- nominated=- node=- scheduled=- disrupted=- terminating=-
    0.000  resourceclaims/web-gpu-xd94g finalizers=0 devices=- reserved=- terminating=-
    0.000  pods/web claims=web-gpu-xd94g
    0.000  scheduling decides Scheduled for web on n2 n2/gpu-0
    0.000  pods/web nominated=n2
    0.000  resourceclaims/web-gpu-xd94g finalizers=1
    0.000  resourceclaims/web-gpu-xd94g devices=n2/gpu-0 reserved=web
    0.000  pods/web nominated=- node=n2 scheduled=True
    0.000  says about web: "Successfully assigned default/web to n2"
