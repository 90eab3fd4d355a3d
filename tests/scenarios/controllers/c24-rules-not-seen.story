# C24: the scheduler of 1.36.0 to 1.36.2 does not see rules, the eviction controller does: a new pod
# is bound and evicted at once.
cluster profile=1.36.2 gates=DRADeviceTaintRules
----
(nothing)

world
----
1 node(s) with 1 device(s) each

rule bad
----
    0.000  devicetaintrules/bad effect=NoExecute condition=- message=-
    0.000  rule-status decides NotStarted for bad
    0.000  devicetaintrules/bad condition=False/NotStarted message=""

pod web template=gpu
----
    0.000  pods/web phase=Pending claims=- nominated=- node=- scheduled=- disrupted=- terminating=-
    0.000  resourceclaims/web-gpu-pzbmh finalizers=0 devices=- reserved=- terminating=-
    0.000  pods/web claims=web-gpu-pzbmh
    0.000  scheduling decides Scheduled for web on n1 n1/gpu-0
    0.000  pods/web nominated=n1
    0.000  resourceclaims/web-gpu-pzbmh finalizers=1
    0.000  resourceclaims/web-gpu-pzbmh devices=n1/gpu-0 reserved=web
    0.000  pods/web nominated=- node=n1 scheduled=True
    0.000  says about web: "Successfully assigned default/web to n1"
    0.000  eviction decides Evicted for web
    0.000  says about web: "Marking for deletion"
    0.000  pods/web disrupted=True/DeletionByDeviceTaintManager
    0.000  pods/web terminating=yes

# Where rules are honoured (1.36 without the bug, and later) the pod waits.
cluster profile=1.36 gates=DRADeviceTaintRules
----
(nothing)

world
----
1 node(s) with 1 device(s) each

rule bad
----
    0.000  devicetaintrules/bad effect=NoExecute condition=- message=-
    0.000  rule-status decides NotStarted for bad
    0.000  devicetaintrules/bad condition=False/NotStarted message=""

pod web template=gpu
----
    0.000  pods/web phase=Pending claims=- nominated=- node=- scheduled=- disrupted=- terminating=-
    0.000  resourceclaims/web-gpu-pzbmh finalizers=0 devices=- reserved=- terminating=-
    0.000  pods/web claims=web-gpu-pzbmh
    0.000  scheduling decides Unschedulable for web
    0.000  says about web: "0/1 nodes are available: 1 cannot allocate all claims. still not schedulable, preemption: 0/1 nodes are available: 1 Preemption is not helpful for scheduling."
    0.000  pods/web scheduled=False/Unschedulable
