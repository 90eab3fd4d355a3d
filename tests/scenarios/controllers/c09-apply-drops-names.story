# C9, as it is by default: a lost claim is made again and the pod keeps the name of the other.
world devices=2
----
1 node(s) with 2 device(s) each

pod web templates=gpu,gpu node=nowhere
----
    0.000  pods/web phase=Pending claims=- nominated=- node=- scheduled=- disrupted=- terminating=-
    0.000  resourceclaims/web-a-wcplz finalizers=0 devices=- reserved=- terminating=-
    0.000  resourceclaims/web-b-pzbmh finalizers=0 devices=- reserved=- terminating=-
    0.000  pods/web claims=web-a-wcplz,web-b-pzbmh
    0.000  scheduling decides Unschedulable for web
    0.000  says about web: "0/1 nodes are available: 1 node(s) didn't match Pod's node affinity/selector. preemption: 0/1 nodes are available: 1 Preemption is not helpful for scheduling."
    0.000  pods/web scheduled=False/Unschedulable

delete resourceclaims/web-a-*
----
    0.000  resourceclaims/web-a-wcplz is gone
    0.000  resourceclaims/web-a-xd94g finalizers=0 devices=- reserved=- terminating=-
    0.000  pods/web claims=web-a-xd94g,web-b-pzbmh

show pods/web
----
pods/web phase=Pending claims=web-a-xd94g,web-b-pzbmh nominated=- node=- scheduled=False/Unschedulable disrupted=- terminating=-

# Switched on: the apply names the new claim only; the other entry is dropped, its claim is found
# again by its annotation, and the pod has both names after one more write.
cluster c9=on
----
(nothing)

world devices=2
----
1 node(s) with 2 device(s) each

pod web templates=gpu,gpu node=nowhere
----
    0.000  pods/web phase=Pending claims=- nominated=- node=- scheduled=- disrupted=- terminating=-
    0.000  resourceclaims/web-a-wcplz finalizers=0 devices=- reserved=- terminating=-
    0.000  resourceclaims/web-b-pzbmh finalizers=0 devices=- reserved=- terminating=-
    0.000  pods/web claims=web-a-wcplz,web-b-pzbmh
    0.000  scheduling decides Unschedulable for web
    0.000  says about web: "0/1 nodes are available: 1 node(s) didn't match Pod's node affinity/selector. preemption: 0/1 nodes are available: 1 Preemption is not helpful for scheduling."
    0.000  pods/web scheduled=False/Unschedulable

delete resourceclaims/web-a-*
----
    0.000  resourceclaims/web-a-wcplz is gone
    0.000  resourceclaims/web-a-xd94g finalizers=0 devices=- reserved=- terminating=-
    0.000  pods/web claims=web-a-xd94g
    0.000  pods/web claims=web-a-xd94g,web-b-pzbmh

show pods/web
----
pods/web phase=Pending claims=web-a-xd94g,web-b-pzbmh nominated=- node=- scheduled=False/Unschedulable disrupted=- terminating=-
