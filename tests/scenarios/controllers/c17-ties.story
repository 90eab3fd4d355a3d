# C17: equally good nodes are taken in the order of a heap: always the first.
world nodes=3 devices=0
----
3 node(s) with 0 device(s) each

pod a
----
    0.000  pods/a phase=Pending claims=- nominated=- node=- scheduled=- disrupted=- terminating=-
    0.000  scheduling decides Scheduled for a on n1
    0.000  pods/a node=n1 scheduled=True
    0.000  says about a: "Successfully assigned default/a to n1"

delete pods/a
----
    0.000  pods/a terminating=yes

kill a
----
    0.000  pods/a (no change to tell)
    0.000  pods/a is gone

pod b
----
    0.000  pods/b phase=Pending claims=- nominated=- node=- scheduled=- disrupted=- terminating=-
    0.000  scheduling decides Scheduled for b on n1
    0.000  pods/b node=n1 scheduled=True
    0.000  says about b: "Successfully assigned default/b to n1"

# Switched off: drawn, with the pod's uid as the seed.
cluster c17=off
----
(nothing)

world nodes=3 devices=0
----
3 node(s) with 0 device(s) each

pod a
----
    0.000  pods/a phase=Pending claims=- nominated=- node=- scheduled=- disrupted=- terminating=-
    0.000  scheduling decides Scheduled for a on n1
    0.000  pods/a node=n1 scheduled=True
    0.000  says about a: "Successfully assigned default/a to n1"

delete pods/a
----
    0.000  pods/a terminating=yes

kill a
----
    0.000  pods/a (no change to tell)
    0.000  pods/a is gone

pod b
----
    0.000  pods/b phase=Pending claims=- nominated=- node=- scheduled=- disrupted=- terminating=-
    0.000  scheduling decides Scheduled for b on n3
    0.000  pods/b node=n3 scheduled=True
    0.000  says about b: "Successfully assigned default/b to n3"
