# C4: a finished pod that still holds its reservation is deleted too. The claim controller stands
# still here; in a real cluster it is a matter of milliseconds.
cluster off=claims
----
(nothing)

world
----
1 node(s) with 1 device(s) each

claim mine
----
    0.000  resourceclaims/mine finalizers=0 devices=- reserved=- terminating=-

pod job claim=mine
----
    0.000  pods/job phase=Pending claims=- nominated=- node=- scheduled=- disrupted=- terminating=-
    0.000  scheduling decides Scheduled for job on n1 n1/gpu-0
    0.000  pods/job nominated=n1
    0.000  resourceclaims/mine finalizers=1
    0.000  resourceclaims/mine devices=n1/gpu-0 reserved=job
    0.000  pods/job nominated=- node=n1 scheduled=True
    0.000  says about job: "Successfully assigned default/job to n1"

finish job
----
    0.000  pods/job phase=Succeeded

rule bad
----
    0.000  devicetaintrules/bad effect=NoExecute condition=- message=-
    0.000  rule-status decides PodsPendingEviction for bad
    0.000  devicetaintrules/bad condition=True/PodsPendingEviction message="1 pod needs to be evicted in 1 namespace."
    0.000  eviction decides Evicted for job
    0.000  says about job: "Marking for deletion"
    0.000  pods/job disrupted=True/DeletionByDeviceTaintManager
    0.000  pods/job terminating=yes
    0.000  pods/job is gone

# Switched off: the finished pod stays.
cluster off=claims c4=off
----
(nothing)

world
----
1 node(s) with 1 device(s) each

claim mine
----
    0.000  resourceclaims/mine finalizers=0 devices=- reserved=- terminating=-

pod job claim=mine
----
    0.000  pods/job phase=Pending claims=- nominated=- node=- scheduled=- disrupted=- terminating=-
    0.000  scheduling decides Scheduled for job on n1 n1/gpu-0
    0.000  pods/job nominated=n1
    0.000  resourceclaims/mine finalizers=1
    0.000  resourceclaims/mine devices=n1/gpu-0 reserved=job
    0.000  pods/job nominated=- node=n1 scheduled=True
    0.000  says about job: "Successfully assigned default/job to n1"

finish job
----
    0.000  pods/job phase=Succeeded

rule bad
----
    0.000  devicetaintrules/bad effect=NoExecute condition=- message=-
    0.000  rule-status decides NotStarted for bad
    0.000  devicetaintrules/bad condition=False/NotStarted message=""

show pods/job
----
pods/job phase=Succeeded claims=- nominated=- node=n1 scheduled=True disrupted=- terminating=-
