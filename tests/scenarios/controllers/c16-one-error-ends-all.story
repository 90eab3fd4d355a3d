# C16: an error of the allocator on one node ends the attempt for all nodes.
node n1 devices=1
----
    0.000  node-lifecycle decides Registered for n1
    0.000  says about n1: "Node n1 event: Registered Node n1 in Controller"
    0.000  node-lifecycle decides Untainted for n1

node n2 devices=1
----
    0.000  node-lifecycle decides Registered for n2
    0.000  says about n2: "Node n2 event: Registered Node n2 in Controller"
    0.000  node-lifecycle decides Untainted for n2

class gpu
----
(nothing)

template broken cel="device.attributes[\"gpu.example.com\"].missing == 1"
----
(nothing)

pod web template=broken
----
    0.000  pods/web phase=Pending claims=- nominated=- node=- scheduled=- disrupted=- terminating=-
    0.000  resourceclaims/web-gpu-xd94g finalizers=0 devices=- reserved=- terminating=-
    0.000  pods/web claims=web-gpu-xd94g
    0.000  scheduling decides Error for web
    0.000  says about web: "running "DynamicResources" filter plugin: claim default/web-gpu-xd94g: selector #0 on device gpu.example.com/n1/gpu-0: CEL runtime error: no such key: missing. consider using CEL optional chaining (.? followed by orValue()) or guarding the check with has() for optional fields"
    0.000  pods/web scheduled=False/SchedulerError
