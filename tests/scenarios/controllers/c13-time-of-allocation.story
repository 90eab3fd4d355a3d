# C13: a claim that another allocator has allocated has no time of allocation. The scheduler adds
# one, which the API refuses, and the pod is tried again for ever.
world
----
1 node(s) with 1 device(s) each

claim old
----
    0.000  resourceclaims/old finalizers=0 devices=- reserved=- terminating=-

allocate old n1/gpu-0
----
    0.000  resourceclaims/old finalizers=1
    0.000  resourceclaims/old devices=n1/gpu-0

pod web claim=old
----
    0.000  pods/web phase=Pending claims=- nominated=- node=- scheduled=- disrupted=- terminating=-
    0.000  scheduling decides Error for web
    0.000  says about web: "running PreBind plugin "DynamicResources": add reservation to claim default/old: ResourceClaim.resource.k8s.io "old" is invalid: status.allocation: Invalid value: {"Devices":{"Results":[{"Request":"gpu","Driver":"gpu.example.com","Pool":"n1","Device":"gpu-0","AdminAccess":null,"Tolerations":null,"BindingConditions":null,"BindingFailureConditions":null,"ShareID":null,"ConsumedCapacity":null}],"Config":null},"NodeSelector":null,"AllocationTimestamp":"2026-01-02T03:00:00Z"}: field is immutable"
    0.000  pods/web scheduled=False/SchedulerError

wait 3
----
    2.000  scheduling decides Error for web
    2.000  says about web: "running PreBind plugin "DynamicResources": add reservation to claim default/old: ResourceClaim.resource.k8s.io "old" is invalid: status.allocation: Invalid value: {"Devices":{"Results":[{"Request":"gpu","Driver":"gpu.example.com","Pool":"n1","Device":"gpu-0","AdminAccess":null,"Tolerations":null,"BindingConditions":null,"BindingFailureConditions":null,"ShareID":null,"ConsumedCapacity":null}],"Config":null},"NodeSelector":null,"AllocationTimestamp":"2026-01-02T03:00:02Z"}: field is immutable"
    2.000  pods/web (no change to tell)

show resourceclaims/old
----
resourceclaims/old finalizers=1 devices=n1/gpu-0 reserved=- terminating=-
