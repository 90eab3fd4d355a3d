# C19: a driver that writes its slice without `timeAdded` starts the toleration anew each time.
world tolerate=NoExecute:60
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

publish n1 taint=example.com/hot
----
timeAdded=2026-01-02T03:00:00Z

wait 50
----
(nothing)

publish n1 taint=example.com/hot
----
timeAdded=2026-01-02T03:00:50Z

wait 50
----
(nothing)

show pods/web
----
pods/web phase=Pending claims=web-gpu-wcplz nominated=- node=n1 scheduled=True disrupted=- terminating=-

wait 10
----
  110.000  eviction decides Evicted for web
  110.000  says about web: "Marking for deletion"
  110.000  pods/web disrupted=True/DeletionByDeviceTaintManager
  110.000  pods/web terminating=yes

show pods/web
----
pods/web phase=Pending claims=web-gpu-wcplz nominated=- node=n1 scheduled=True disrupted=True/DeletionByDeviceTaintManager terminating=yes
