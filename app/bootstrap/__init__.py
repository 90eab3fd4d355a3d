"""The one place where ports meet adapters: the parts of each process are put together here.

Belongs here: the settings of a process (`process_settings`), opening stores (`stores`) and
histories (`histories`), import and export of recordings (`recordings`), the long-running processes
(`serving`). Does not belong here: decisions. Only the command line and tests import it, module by
module, so that a short command does not load a web server.
"""
