# C18: two entries that name one claim.
node n1 devices=2
----
    0.000  node-lifecycle decides Registered for n1
    0.000  says about n1: "Node n1 event: Registered Node n1 in Controller"
    0.000  node-lifecycle decides Untainted for n1

class gpu
----
(nothing)

claim mine
----
    0.000  resourceclaims/mine finalizers=0 devices=- reserved=- terminating=-

pod web both=mine,mine
----
    0.000  pods/web phase=Pending claims=- nominated=- node=- scheduled=- disrupted=- terminating=-
    0.000  scheduling decides Error for web
    0.000  says about web: "running PreBind plugin "DynamicResources": claim default/mine got allocated elsewhere in the meantime"
    0.000  pods/web scheduled=False/SchedulerError

why web
----
running PreBind plugin "DynamicResources": claim default/mine got allocated elsewhere in the meantime
