"""The one place where ports meet adapters: what each process is made of.

Belongs here: the settings of a process (`process_settings`), opening stores (`stores`) and
histories (`histories`), recordings in and out (`recordings`), the processes that stay (`serving`).
Does not belong here: decisions. Only the command line and tests import it, module by module, so
that a short command does not load a web server.
"""
