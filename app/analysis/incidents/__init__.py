"""Known defects and pitfalls of Dynamic Resource Allocation as data: steps, facts, repair.

`incident` reads one; `facts` checks whether its facts hold. The code that plays the steps is in
`app.service.replays.incidents`. Does not belong here: searching for them in other histories
(`scan`).
"""
