# C11: a pod whose claim does not exist waits without a word.
node n1 devices=1
----
    0.000  node-lifecycle decides Registered for n1
    0.000  says about n1: "Node n1 event: Registered Node n1 in Controller"
    0.000  node-lifecycle decides Untainted for n1

class gpu
----
(nothing)

pod web claim=missing
----
    0.000  pods/web phase=Pending claims=- nominated=- node=- scheduled=- disrupted=- terminating=-

wait 3600
----
(nothing)

why web
----
no condition

claim missing
----
 3600.000  resourceclaims/missing finalizers=0 devices=- reserved=- terminating=-
 3600.000  scheduling decides Scheduled for web on n1 n1/gpu-0
 3600.000  pods/web nominated=n1
 3600.000  resourceclaims/missing finalizers=1
 3600.000  resourceclaims/missing devices=n1/gpu-0 reserved=web
 3600.000  pods/web nominated=- node=n1 scheduled=True
 3600.000  says about web: "Successfully assigned default/web to n1"
