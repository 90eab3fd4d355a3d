"""The command line: commands, their help and output.

Belongs here: arguments, texts, tables, exit codes. Does not belong here: logic. Heavy imports
happen inside the commands, so that `redra --help` is quick. Nobody imports this package.

Exit codes: 0 done and as expected; 1 done, and the answer is no (a difference, a violation, a
refusal by the server), or the work failed; 2 the input cannot be used.
"""

import sys

from app.cli import console
from app.cli.application import application


def kubectl_plugin() -> None:
    """The console script `kubectl-redra`: `kubectl redra why pod/x` for the cluster of kubectl.

    The data folder is the one whose kubeconfig kubectl uses, unless REDRA_DATA names another.
    """
    from app import settings

    settings.follow_kubeconfig()
    main()


def main() -> None:
    """The console script `redra`."""
    console.prepare()
    sys.exit(application(sys.argv[1:]))


__all__ = ["kubectl_plugin", "main"]
