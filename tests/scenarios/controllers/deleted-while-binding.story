# A pod is deleted while its binding is under way. Its generated claim goes with it, since nothing
# had been written yet.
cluster bind=100
----
(nothing)

world
----
1 node(s) with 1 device(s) each

pod web template=gpu
----
    0.000  pods/web phase=Pending claims=- nominated=- node=- scheduled=- disrupted=- terminating=-
    0.000  resourceclaims/web-gpu-wcplz finalizers=0 devices=- reserved=- terminating=-
    0.000  pods/web claims=web-gpu-wcplz
    0.000  scheduling decides Assumed for web on n1 n1/gpu-0
    0.000  pods/web nominated=n1

delete pods/web
----
    0.000  pods/web terminating=yes
    0.000  pods/web is gone
    0.000  resourceclaims/web-gpu-wcplz is gone

wait 1
----
    0.050  scheduling decides Skipped for web on n1

# A claim that a user made is written all the same; then the reservation is taken back, and the
# allocation stays (C10).
claim mine
----
    1.000  resourceclaims/mine finalizers=0 devices=- reserved=- terminating=-

pod job claim=mine
----
    1.000  pods/job phase=Pending claims=- nominated=- node=- scheduled=- disrupted=- terminating=-
    1.000  scheduling decides Assumed for job on n1 n1/gpu-0
    1.000  pods/job nominated=n1

delete pods/job
----
    1.000  pods/job terminating=yes
    1.000  pods/job is gone

wait 1
----
    1.050  scheduling decides Skipped for job on n1
    1.050  resourceclaims/mine finalizers=1
    1.050  resourceclaims/mine devices=n1/gpu-0 reserved=job
    1.050  resourceclaims/mine reserved=-

show resourceclaims/mine
----
resourceclaims/mine finalizers=1 devices=n1/gpu-0 reserved=- terminating=-
