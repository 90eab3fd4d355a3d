# C14: the 257th consumer passes every check and fails at the write, again and again.
world
----
1 node(s) with 1 device(s) each

claim busy
----
    0.000  resourceclaims/busy finalizers=0 devices=- reserved=- terminating=-

pod first claim=busy
----
    0.000  pods/first phase=Pending claims=- nominated=- node=- scheduled=- disrupted=- terminating=-
    0.000  scheduling decides Scheduled for first on n1 n1/gpu-0
    0.000  pods/first nominated=n1
    0.000  resourceclaims/busy finalizers=1
    0.000  resourceclaims/busy devices=n1/gpu-0 reserved=first
    0.000  pods/first nominated=- node=n1 scheduled=True
    0.000  says about first: "Successfully assigned default/first to n1"

crowd busy 255
----
256 consumers

pod late claim=busy
----
    0.000  pods/late phase=Pending claims=- nominated=- node=- scheduled=- disrupted=- terminating=-
    0.000  scheduling decides Error for late
    0.000  says about late: "running PreBind plugin "DynamicResources": add reservation to claim default/busy: ResourceClaim.resource.k8s.io "busy" is invalid: status.reservedFor: Too many: 257: must have at most 256 items"
    0.000  pods/late scheduled=False/SchedulerError

wait 60
----
    2.000  scheduling decides Error for late
    2.000  says about late: "running PreBind plugin "DynamicResources": add reservation to claim default/busy: ResourceClaim.resource.k8s.io "busy" is invalid: status.reservedFor: Too many: 257: must have at most 256 items"
    5.000  scheduling decides Error for late
    5.000  repeats (2) about late
   10.000  scheduling decides Unchanged for all
   19.000  scheduling decides Unchanged for all
   30.000  scheduling decides Unchanged for all
   41.000  scheduling decides Unchanged for all
   52.000  scheduling decides Unchanged for all

show pods/late
----
pods/late phase=Pending claims=- nominated=- node=- scheduled=False/SchedulerError disrupted=- terminating=-
