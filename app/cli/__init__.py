"""The command line: commands, their help and output.

Belongs here: arguments, texts, tables, exit codes. Does not belong here: logic. Heavy imports are
inside the commands, so that `redra --help` is fast. No other package imports this one.

The meanings of the exit codes are in `exit_codes.py`.
"""

import os
import signal
import sys


def kubectl_plugin() -> None:
    """The console script `kubectl-redra`: `kubectl redra why pod/x` for the cluster of kubectl.

    The data folder is the one whose kubeconfig kubectl uses, unless REDRA_DATA names another.
    """
    _end_silently_on_interrupts()
    from app import settings

    settings.follow_kubeconfig()
    main()


def main() -> None:
    """The console script `redra`."""
    _end_silently_on_interrupts()
    _open_closed_streams()
    from app.cli import console

    console.begin_loading()
    from app.cli.application import application
    from app.cli.exit_codes import ExitCode

    console.prepare()
    if signal.getsignal(signal.SIGINT) is signal.SIG_DFL:
        signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        code = application(sys.argv[1:])
    except KeyboardInterrupt:
        code = ExitCode.INTERRUPTED
    except Exception:
        # Python itself would exit with 1, which means that the answer is no.
        sys.excepthook(*sys.exc_info())
        code = ExitCode.DEFECT
    _end_silently_on_interrupts()
    sys.exit(code)


def _open_closed_streams() -> None:
    """Open the null device for each standard stream that the caller has closed.

    A file or socket that is opened later would get its number, which libraries do not expect.
    """
    for number, name in enumerate(("stdin", "stdout", "stderr")):
        try:
            os.fstat(number)
        except OSError:
            # The lowest free number is given, which is this one.
            opened = os.open(os.devnull, os.O_RDWR)
            os.set_inheritable(opened, True)
            stream = os.fdopen(opened, "w" if number else "r", encoding="utf-8", closefd=False)
            setattr(sys, name, stream)


def _end_silently_on_interrupts() -> None:
    """Let Ctrl-C end the process immediately and silently, while it loads and when it ends."""
    if signal.getsignal(signal.SIGINT) is signal.default_int_handler:
        signal.signal(signal.SIGINT, signal.SIG_DFL)


__all__ = ["kubectl_plugin", "main"]
