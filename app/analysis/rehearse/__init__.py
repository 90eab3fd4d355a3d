"""An upgrade rehearsed: what another release makes of the inputs of a history.

Two runs of the same recorded inputs are compared, one as the cluster was and one as it would be;
`admission` says what the other API makes of a write, `versions` which API versions are used,
`contents` what is written otherwise, `defects` which known ones come and go. What is not the
release's doing has no place here.
"""
