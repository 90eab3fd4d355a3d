# Events end an hour after their last change, with their minute; one that is repeated stays.
cluster ttl=3600
----
(nothing)

node n1 devices=1
----
    0.000  node-lifecycle decides Registered for n1
    0.000  says about n1: "Node n1 event: Registered Node n1 in Controller"
    0.000  node-lifecycle decides Untainted for n1

class gpu
----
(nothing)

pod web template=late
----
    0.000  pods/web phase=Pending claims=- nominated=- node=- scheduled=- disrupted=- terminating=-
    0.000  says about web: "PodResourceClaim gpu: resource claim template "late": resourceclaimtemplate.resource.k8s.io "late" not found"

wait 60
----
    0.005  repeats (2) about web
    0.015  repeats (3) about web
    0.035  repeats (4) about web
    0.075  repeats (5) about web
    0.155  repeats (6) about web
    0.315  repeats (7) about web
    0.635  repeats (8) about web
    1.275  repeats (9) about web
    2.555  repeats (10) about web
    5.115  repeats (11) about web
   10.235  repeats (12) about web
   20.475  repeats (13) about web
   40.955  repeats (14) about web

wait 3600
----
   81.915  repeats (15) about web
  163.835  repeats (16) about web
  327.675  repeats (17) about web
  655.355  repeats (18) about web
 1310.715  repeats (19) about web
 2310.715  repeats (20) about web
 3310.715  repeats (21) about web
 3600.000  is forgotten about n1: "Node n1 event: Registered Node n1 in Controller"
