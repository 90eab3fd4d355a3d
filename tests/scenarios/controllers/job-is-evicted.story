# Two Jobs that allow no failure lose their devices. The one whose policy ignores disruptions gets
# another pod, the other one has failed.
cluster kubelet=on
----
(nothing)

world nodes=2 devices=1
----
2 node(s) with 1 device(s) each

job careful template=gpu ignore=DisruptionTarget
----
    0.000  jobs/careful active=0 failed=0 complete=- gave-up=-
    0.000  pods/careful-frnfl phase=Pending claims=- nominated=- node=- scheduled=- disrupted=- terminating=-
    0.000  says about careful: "Created pod: careful-frnfl"
    0.000  jobs/careful active=1
    0.000  resourceclaims/careful-frnfl-gpu-fc5xq finalizers=0 devices=- reserved=- terminating=-
    0.000  pods/careful-frnfl claims=careful-frnfl-gpu-fc5xq
    0.000  scheduling decides Scheduled for careful-frnfl on n1 n1/gpu-0
    0.000  pods/careful-frnfl nominated=n1
    0.000  resourceclaims/careful-frnfl-gpu-fc5xq finalizers=1
    0.000  resourceclaims/careful-frnfl-gpu-fc5xq devices=n1/gpu-0 reserved=careful-frnfl
    0.000  pods/careful-frnfl nominated=- node=n1 scheduled=True
    0.000  says about careful-frnfl: "Successfully assigned default/careful-frnfl to n1"
    0.000  pods/careful-frnfl phase=Running
    0.000  jobs/careful (no change to tell)

job careless template=gpu
----
    0.000  jobs/careless active=0 failed=0 complete=- gave-up=-
    0.000  pods/careless-mmrxh phase=Pending claims=- nominated=- node=- scheduled=- disrupted=- terminating=-
    0.000  says about careless: "Created pod: careless-mmrxh"
    0.000  jobs/careless active=1
    0.000  resourceclaims/careless-mmrxh-gpu-twpgn finalizers=0 devices=- reserved=- terminating=-
    0.000  pods/careless-mmrxh claims=careless-mmrxh-gpu-twpgn
    0.000  scheduling decides Scheduled for careless-mmrxh on n2 n2/gpu-0
    0.000  pods/careless-mmrxh nominated=n2
    0.000  resourceclaims/careless-mmrxh-gpu-twpgn finalizers=1
    0.000  resourceclaims/careless-mmrxh-gpu-twpgn devices=n2/gpu-0 reserved=careless-mmrxh
    0.000  pods/careless-mmrxh nominated=- node=n2 scheduled=True
    0.000  says about careless-mmrxh: "Successfully assigned default/careless-mmrxh to n2"
    0.000  pods/careless-mmrxh phase=Running
    0.000  jobs/careless (no change to tell)

rule worse pool=n1
----
    0.000  devicetaintrules/worse effect=NoExecute condition=- message=-
    0.000  rule-status decides PodsPendingEviction for worse
    0.000  devicetaintrules/worse condition=True/PodsPendingEviction message="1 pod needs to be evicted in 1 namespace."
    0.000  eviction decides Evicted for careful-frnfl
    0.000  says about careful-frnfl: "Marking for deletion"
    0.000  pods/careful-frnfl disrupted=True/DeletionByDeviceTaintManager
    0.000  pods/careful-frnfl terminating=yes
    0.000  jobs/careful active=0
    0.000  pods/careful-frnfl phase=Failed
    0.000  pods/careful-frnfl (no change to tell)
    0.000  claims decides Deleted for careful-frnfl-gpu-fc5xq careful-frnfl: pod is Failed
    0.000  resourceclaims/careful-frnfl-gpu-fc5xq devices=- reserved=-
    0.000  resourceclaims/careful-frnfl-gpu-fc5xq finalizers=0
    0.000  resourceclaims/careful-frnfl-gpu-fc5xq is gone
    0.000  jobs/careful (no change to tell)
    0.000  pods/careful-frnfl is gone
    0.000  pods/careful-gxz6p phase=Pending claims=- nominated=- node=- scheduled=- disrupted=- terminating=-
    0.000  says about careful: "Created pod: careful-gxz6p"
    0.000  jobs/careful active=1
    0.000  resourceclaims/careful-gxz6p-gpu-66z7z finalizers=0 devices=- reserved=- terminating=-
    0.000  pods/careful-gxz6p claims=careful-gxz6p-gpu-66z7z
    0.000  scheduling decides Unschedulable for careful-gxz6p
    0.000  says about careful-gxz6p: "0/2 nodes are available: 2 cannot allocate all claims. preemption: 0/2 nodes are available: 2 Preemption is not helpful for scheduling."
    0.000  pods/careful-gxz6p scheduled=False/Unschedulable

rule worst pool=n2
----
    0.000  devicetaintrules/worst effect=NoExecute condition=- message=-
    0.000  rule-status decides PodsPendingEviction for worst
    0.000  devicetaintrules/worst condition=True/PodsPendingEviction message="1 pod needs to be evicted in 1 namespace."
    0.000  eviction decides Evicted for careless-mmrxh
    0.000  says about careless-mmrxh: "Marking for deletion"
    0.000  pods/careless-mmrxh disrupted=True/DeletionByDeviceTaintManager
    0.000  pods/careless-mmrxh terminating=yes
    0.000  scheduling decides Unschedulable for careful-gxz6p
    0.000  says about careful-gxz6p: "0/2 nodes are available: 2 cannot allocate all claims. preemption: 0/2 nodes are available: 2 Preemption is not helpful for scheduling."
    0.000  jobs/careless active=0 failed=1
    0.000  pods/careless-mmrxh (no change to tell)
    0.000  jobs/careless (no change to tell)
    0.000  pods/careless-mmrxh phase=Failed
    0.000  pods/careless-mmrxh (no change to tell)
    0.000  pods/careless-mmrxh is gone
    0.000  claims decides Deallocated for careless-mmrxh-gpu-twpgn careless-mmrxh: pod is gone
    0.000  resourceclaims/careless-mmrxh-gpu-twpgn devices=- reserved=-
    0.000  resourceclaims/careless-mmrxh-gpu-twpgn finalizers=0
    0.000  resourceclaims/careless-mmrxh-gpu-twpgn is gone
    0.000  scheduling decides Unschedulable for careful-gxz6p
    0.000  repeats (2) about careful-gxz6p
    0.000  jobs/careless gave-up=True/BackoffLimitExceeded
    0.000  says about careless: "Job has reached the specified backoff limit"

wait 15
----
   10.000  rule-status decides Completed for worse
   10.000  devicetaintrules/worse condition=False/Completed message="1 pod evicted since starting the controller."
   10.000  rule-status decides Completed for worst
   10.000  devicetaintrules/worst condition=False/Completed message="1 pod evicted since starting the controller."
