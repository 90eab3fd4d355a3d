# C22, switched on: a finished pod gets a second claim, which is deleted at once.
cluster c22=on
----
(nothing)

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

finish web
----
    0.000  pods/web phase=Succeeded
    0.000  claims decides Deleted for web-gpu-wcplz web: pod is Succeeded
    0.000  resourceclaims/web-gpu-wcplz devices=- reserved=-
    0.000  resourceclaims/web-gpu-wcplz finalizers=0
    0.000  resourceclaims/web-gpu-wcplz is gone
    0.000  resourceclaims/web-gpu-g57c8 finalizers=0 devices=- reserved=- terminating=-
    0.000  claims decides Deleted for web-gpu-g57c8
    0.000  resourceclaims/web-gpu-g57c8 is gone
    0.000  pods/web claims=web-gpu-g57c8

# As it is by default: the pod keeps naming the claim that is gone.
cluster
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

finish web
----
    0.000  pods/web phase=Succeeded
    0.000  claims decides Deleted for web-gpu-wcplz web: pod is Succeeded
    0.000  resourceclaims/web-gpu-wcplz devices=- reserved=-
    0.000  resourceclaims/web-gpu-wcplz finalizers=0
    0.000  resourceclaims/web-gpu-wcplz is gone

show pods/web
----
pods/web phase=Succeeded claims=web-gpu-wcplz nominated=- node=n1 scheduled=True disrupted=- terminating=-
