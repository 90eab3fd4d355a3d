# Two pods share one claim; it is freed after the last.
node n1 devices=1
----
    0.000  node-lifecycle decides Registered for n1
    0.000  says about n1: "Node n1 event: Registered Node n1 in Controller"
    0.000  node-lifecycle decides Untainted for n1

class gpu
----
(nothing)

claim shared
----
    0.000  resourceclaims/shared finalizers=0 devices=- reserved=- terminating=-

pod a claim=shared
----
    0.000  pods/a phase=Pending claims=- nominated=- node=- scheduled=- disrupted=- terminating=-
    0.000  scheduling decides Scheduled for a on n1 n1/gpu-0
    0.000  pods/a nominated=n1
    0.000  resourceclaims/shared finalizers=1
    0.000  resourceclaims/shared devices=n1/gpu-0 reserved=a
    0.000  pods/a nominated=- node=n1 scheduled=True
    0.000  says about a: "Successfully assigned default/a to n1"

pod b claim=shared
----
    0.000  pods/b phase=Pending claims=- nominated=- node=- scheduled=- disrupted=- terminating=-
    0.000  scheduling decides Scheduled for b on n1 n1/gpu-0
    0.000  pods/b nominated=n1
    0.000  resourceclaims/shared reserved=a,b
    0.000  pods/b nominated=- node=n1 scheduled=True
    0.000  says about b: "Successfully assigned default/b to n1"

delete pods/a
----
    0.000  pods/a terminating=yes

# A terminating pod keeps its devices until it is gone.
show resourceclaims/shared
----
resourceclaims/shared finalizers=1 devices=n1/gpu-0 reserved=a,b terminating=-

kill a
----
    0.000  pods/a (no change to tell)
    0.000  pods/a is gone
    0.000  claims decides Released for shared a: pod is gone
    0.000  resourceclaims/shared reserved=b

finish b
----
    0.000  pods/b phase=Succeeded
    0.000  claims decides Deallocated for shared b: pod is Succeeded
    0.000  resourceclaims/shared devices=- reserved=-
    0.000  resourceclaims/shared finalizers=0
