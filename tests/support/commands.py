"""Starting the command line as a person at a terminal does."""

import signal


def hears_interrupts() -> None:
    """For a child before it runs: what is started in the background inherits a deaf ear for Ctrl-C."""
    signal.signal(signal.SIGINT, signal.SIG_DFL)
