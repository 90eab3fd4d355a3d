# The node of a pod is shut down for good: its terminating pod is ended by PodGC, which frees its device.
world nodes=1 devices=1
----
1 node(s) with 1 device(s) each

pod web template=gpu
----
    0.000  pods/web phase=Pending claims=- nominated=- node=- scheduled=- disrupted=- terminating=-
    0.000  resourceclaims/web-gpu-wcplz finalizers=0 devices=- reserved=- terminating=-
    0.000  pods/web claims=web-gpu-wcplz
    0.000  scheduling decides Scheduled for web on n1 n1/gpu-0
    0.000  pods/web nominated=n1
    0.000  resourceclaims/web-gpu-wcplz finalizers=1
    0.000  resourceclaims/web-gpu-wcplz devices=n1/gpu-0 reserved=web
    0.000  pods/web nominated=- node=n1 scheduled=True
    0.000  says about web: "Successfully assigned default/web to n1"

wait 3
----
(nothing)

delete pods/web
----
    3.000  pods/web terminating=yes

lose n1
----
    3.000  node-lifecycle decides Tainted for n1

wait 20
----
   20.000  pod-gc decides Removed for web on n1
   20.000  pods/web phase=Failed
   20.000  pods/web (no change to tell)
   20.000  pods/web is gone
   20.000  claims decides Deallocated for web-gpu-wcplz web: pod is gone
   20.000  resourceclaims/web-gpu-wcplz devices=- reserved=-
   20.000  resourceclaims/web-gpu-wcplz finalizers=0
   20.000  resourceclaims/web-gpu-wcplz is gone
