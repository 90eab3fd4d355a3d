"""Jobs of a server: the process of a job as its server sees it (`running`), and inside it.

`process` is the program of that process, `works` the work of each kind. They leave an `answer`.
"""
