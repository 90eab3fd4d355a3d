# The template comes late.
node n1 devices=1
----
    0.000  node-lifecycle decides Registered for n1
    0.000  says about n1: "Node n1 event: Registered Node n1 in Controller"
    0.000  node-lifecycle decides Untainted for n1

class gpu
----
(nothing)

pod web template=late
----
    0.000  pods/web phase=Pending claims=- nominated=- node=- scheduled=- disrupted=- terminating=-
    0.000  says about web: "PodResourceClaim gpu: resource claim template "late": resourceclaimtemplate.resource.k8s.io "late" not found"

wait 0.1
----
    0.005  repeats (2) about web
    0.015  repeats (3) about web
    0.035  repeats (4) about web
    0.075  repeats (5) about web

template late
----
    0.100  resourceclaims/web-gpu-pzbmh finalizers=0 devices=- reserved=- terminating=-
    0.100  pods/web claims=web-gpu-pzbmh
    0.100  scheduling decides Scheduled for web on n1 n1/gpu-0
    0.100  pods/web nominated=n1
    0.100  resourceclaims/web-gpu-pzbmh finalizers=1
    0.100  resourceclaims/web-gpu-pzbmh devices=n1/gpu-0 reserved=web
    0.100  pods/web nominated=- node=n1 scheduled=True
    0.100  says about web: "Successfully assigned default/web to n1"
