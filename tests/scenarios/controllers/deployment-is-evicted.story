# The pod of a Deployment loses its device: its replacement is made as soon as it is terminating, and
# takes the device of the other node; the old pod ends when its kubelet has stopped it.
cluster kubelet=on
----
(nothing)

node n1 devices=1
----
    0.000  node-lifecycle decides Registered for n1
    0.000  says about n1: "Node n1 event: Registered Node n1 in Controller"
    0.000  node-lifecycle decides Untainted for n1

node n2 devices=1
----
    0.000  node-lifecycle decides Registered for n2
    0.000  says about n2: "Node n2 event: Registered Node n2 in Controller"
    0.000  node-lifecycle decides Untainted for n2

class gpu
----
(nothing)

template gpu
----
(nothing)

deployment web template=gpu stop_seconds=5
----
    0.000  deployments/web replicas=1 ready=0 progressing=-
    0.000  replicasets/web-6cc6bc8dfb replicas=1 ready=0
    0.000  says about web: "Scaled up replica set web-6cc6bc8dfb from 0 to 1"
    0.000  deployments/web progressing=True/NewReplicaSetCreated
    0.000  pods/web-6cc6bc8dfb-vhvsr phase=Pending claims=- nominated=- node=- scheduled=- disrupted=- terminating=-
    0.000  says about web-6cc6bc8dfb: "Created pod: web-6cc6bc8dfb-vhvsr"
    0.000  replicasets/web-6cc6bc8dfb (no change to tell)
    0.000  resourceclaims/web-6cc6bc8dfb-vhvsr-gpu-lc9hx finalizers=0 devices=- reserved=- terminating=-
    0.000  pods/web-6cc6bc8dfb-vhvsr claims=web-6cc6bc8dfb-vhvsr-gpu-lc9hx
    0.000  scheduling decides Scheduled for web-6cc6bc8dfb-vhvsr on n1 n1/gpu-0
    0.000  pods/web-6cc6bc8dfb-vhvsr nominated=n1
    0.000  resourceclaims/web-6cc6bc8dfb-vhvsr-gpu-lc9hx finalizers=1
    0.000  resourceclaims/web-6cc6bc8dfb-vhvsr-gpu-lc9hx devices=n1/gpu-0 reserved=web-6cc6bc8dfb-vhvsr
    0.000  pods/web-6cc6bc8dfb-vhvsr nominated=- node=n1 scheduled=True
    0.000  says about web-6cc6bc8dfb-vhvsr: "Successfully assigned default/web-6cc6bc8dfb-vhvsr to n1"
    0.000  deployments/web progressing=True/ReplicaSetUpdated
    0.000  pods/web-6cc6bc8dfb-vhvsr phase=Running
    0.000  replicasets/web-6cc6bc8dfb ready=1
    0.000  deployments/web ready=1 progressing=True/NewReplicaSetAvailable

rule bad pool=n1
----
    0.000  devicetaintrules/bad effect=NoExecute condition=- message=-
    0.000  rule-status decides PodsPendingEviction for bad
    0.000  devicetaintrules/bad condition=True/PodsPendingEviction message="1 pod needs to be evicted in 1 namespace."
    0.000  eviction decides Evicted for web-6cc6bc8dfb-vhvsr
    0.000  says about web-6cc6bc8dfb-vhvsr: "Marking for deletion"
    0.000  pods/web-6cc6bc8dfb-vhvsr disrupted=True/DeletionByDeviceTaintManager
    0.000  pods/web-6cc6bc8dfb-vhvsr terminating=yes
    0.000  pods/web-6cc6bc8dfb-2mmzq phase=Pending claims=- nominated=- node=- scheduled=- disrupted=- terminating=-
    0.000  says about web-6cc6bc8dfb: "Created pod: web-6cc6bc8dfb-2mmzq"
    0.000  replicasets/web-6cc6bc8dfb ready=0
    0.000  resourceclaims/web-6cc6bc8dfb-2mmzq-gpu-9s8jw finalizers=0 devices=- reserved=- terminating=-
    0.000  pods/web-6cc6bc8dfb-2mmzq claims=web-6cc6bc8dfb-2mmzq-gpu-9s8jw
    0.000  scheduling decides Scheduled for web-6cc6bc8dfb-2mmzq on n2 n2/gpu-0
    0.000  pods/web-6cc6bc8dfb-2mmzq nominated=n2
    0.000  resourceclaims/web-6cc6bc8dfb-2mmzq-gpu-9s8jw finalizers=1
    0.000  resourceclaims/web-6cc6bc8dfb-2mmzq-gpu-9s8jw devices=n2/gpu-0 reserved=web-6cc6bc8dfb-2mmzq
    0.000  pods/web-6cc6bc8dfb-2mmzq nominated=- node=n2 scheduled=True
    0.000  says about web-6cc6bc8dfb-2mmzq: "Successfully assigned default/web-6cc6bc8dfb-2mmzq to n2"
    0.000  deployments/web ready=0
    0.000  pods/web-6cc6bc8dfb-2mmzq phase=Running
    0.000  replicasets/web-6cc6bc8dfb ready=1
    0.000  deployments/web ready=1

wait 6
----
    5.000  pods/web-6cc6bc8dfb-vhvsr phase=Failed
    5.000  pods/web-6cc6bc8dfb-vhvsr (no change to tell)
    5.000  pods/web-6cc6bc8dfb-vhvsr is gone
    5.000  claims decides Deallocated for web-6cc6bc8dfb-vhvsr-gpu-lc9hx web-6cc6bc8dfb-vhvsr: pod is gone
    5.000  resourceclaims/web-6cc6bc8dfb-vhvsr-gpu-lc9hx devices=- reserved=-
    5.000  resourceclaims/web-6cc6bc8dfb-vhvsr-gpu-lc9hx finalizers=0
    5.000  resourceclaims/web-6cc6bc8dfb-vhvsr-gpu-lc9hx is gone
    5.000  replicasets/web-6cc6bc8dfb (no change to tell)
    5.000  deployments/web (no change to tell)

scale web 0
----
    6.000  deployments/web replicas=0
    6.000  replicasets/web-6cc6bc8dfb replicas=0
    6.000  says about web: "Scaled down replica set web-6cc6bc8dfb from 1 to 0"
    6.000  deployments/web (no change to tell)
    6.000  pods/web-6cc6bc8dfb-2mmzq terminating=yes
    6.000  says about web-6cc6bc8dfb: "Deleted pod: web-6cc6bc8dfb-2mmzq"
    6.000  replicasets/web-6cc6bc8dfb ready=0
    6.000  deployments/web ready=0

wait 6
----
   10.000  rule-status decides Completed for bad
   10.000  devicetaintrules/bad condition=False/Completed message="1 pod evicted since starting the controller."
   11.000  pods/web-6cc6bc8dfb-2mmzq phase=Failed
   11.000  pods/web-6cc6bc8dfb-2mmzq (no change to tell)
   11.000  pods/web-6cc6bc8dfb-2mmzq is gone
   11.000  claims decides Deallocated for web-6cc6bc8dfb-2mmzq-gpu-9s8jw web-6cc6bc8dfb-2mmzq: pod is gone
   11.000  resourceclaims/web-6cc6bc8dfb-2mmzq-gpu-9s8jw devices=- reserved=-
   11.000  resourceclaims/web-6cc6bc8dfb-2mmzq-gpu-9s8jw finalizers=0
   11.000  resourceclaims/web-6cc6bc8dfb-2mmzq-gpu-9s8jw is gone
   11.000  replicasets/web-6cc6bc8dfb (no change to tell)
   11.000  deployments/web (no change to tell)
