"""Known defects and traps of Dynamic Resource Allocation as data: steps, facts, repair.

`incident` reads one, `facts` says whether what it claims came about. What plays the steps is in
`app.service.replays.incidents`. Does not belong here: looking for them in other histories (`scan`).
"""
