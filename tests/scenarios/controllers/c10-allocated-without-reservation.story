# C10: an allocation without reservations stays, until somebody uses or deletes the claim.
node n1 devices=1
----
    0.000  node-lifecycle decides Registered for n1
    0.000  says about n1: "Node n1 event: Registered Node n1 in Controller"
    0.000  node-lifecycle decides Untainted for n1

class gpu
----
(nothing)

claim mine
----
    0.000  resourceclaims/mine finalizers=0 devices=- reserved=- terminating=-

pod a claim=mine
----
    0.000  pods/a phase=Pending claims=- nominated=- node=- scheduled=- disrupted=- terminating=-
    0.000  scheduling decides Scheduled for a on n1 n1/gpu-0
    0.000  pods/a nominated=n1
    0.000  resourceclaims/mine finalizers=1
    0.000  resourceclaims/mine devices=n1/gpu-0 reserved=a
    0.000  pods/a nominated=- node=n1 scheduled=True
    0.000  says about a: "Successfully assigned default/a to n1"

delete pods/a
----
    0.000  pods/a terminating=yes

unreserve mine
----
    0.000  resourceclaims/mine reserved=-

kill a
----
    0.000  pods/a (no change to tell)
    0.000  pods/a is gone

wait 600
----
(nothing)

show resourceclaims/mine
----
resourceclaims/mine finalizers=1 devices=n1/gpu-0 reserved=- terminating=-

pod b claim=mine
----
  600.000  pods/b phase=Pending claims=- nominated=- node=- scheduled=- disrupted=- terminating=-
  600.000  scheduling decides Scheduled for b on n1 n1/gpu-0
  600.000  pods/b nominated=n1
  600.000  resourceclaims/mine reserved=b
  600.000  pods/b nominated=- node=n1 scheduled=True
  600.000  says about b: "Successfully assigned default/b to n1"
