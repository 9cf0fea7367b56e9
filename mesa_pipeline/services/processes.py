"""Ending child processes."""

import signal
import subprocess
from contextlib import suppress


def end(process: "subprocess.Popen[bytes]", gently: float, firmly: float) -> None:
    """End a process and wait until it is gone, with ``SIGINT``, then ``SIGQUIT``, then ``SIGKILL``.

    Args:
        process: May have ended.
        gently: Seconds given to the first signal.
        firmly: Seconds given to the second.
    """
    for number, seconds in ((signal.SIGINT, gently), (signal.SIGQUIT, firmly), (signal.SIGKILL, None)):
        if process.poll() is not None:
            return
        process.send_signal(number)
        with suppress(subprocess.TimeoutExpired):
            process.wait(seconds)
