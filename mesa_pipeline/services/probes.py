"""Whether a service does what it is there for, asked of itself.

A probe is given when the service's process began, in seconds since 1970.
"""

import json
import socket
import urllib.error
import urllib.request
from collections.abc import Callable
from functools import partial

Probe = Callable[[float], bool]
HOST = "127.0.0.1"
SECONDS = 5.0
HEARTBEATS = "{instance{daemonHealth{allDaemonStatuses{required healthy lastHeartbeatTime}}}}"


def answers(url: str) -> Probe:
    """An address that answers requests."""
    return partial(_answers, url)


def accepts(port: int) -> Probe:
    """A port that takes connections."""
    return partial(_accepts, port)


def beats(webserver: str) -> Probe:
    """Dagster's daemon: each of its loops has been round since it began, as the web server knows from the database."""
    return partial(_beats, webserver)


def free_port(wanted: int = 0) -> int:
    """The port itself where it is free on the loopback interface, else any other that is."""
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((HOST, wanted))
        except OSError:
            probe.bind((HOST, 0))
        return int(probe.getsockname()[1])


def _answers(url: str, began: float) -> bool:
    try:
        with _opener().open(url, timeout=SECONDS) as response:
            return bool(response.status == 200)
    except (urllib.error.URLError, OSError):
        return False


def _accepts(port: int, began: float) -> bool:
    try:
        socket.create_connection((HOST, port), timeout=SECONDS).close()
    except OSError:
        return False
    return True


def _beats(webserver: str, began: float) -> bool:
    headers = {"Content-Type": "application/json"}
    request = urllib.request.Request(f"{webserver}/graphql", json.dumps({"query": HEARTBEATS}).encode(), headers)
    try:
        with _opener().open(request, timeout=SECONDS) as response:
            loops = json.load(response)["data"]["instance"]["daemonHealth"]["allDaemonStatuses"]
    except (urllib.error.URLError, OSError, ValueError, KeyError, TypeError):
        return False
    required = [loop for loop in loops if loop["required"]]
    return bool(required) and all(loop["healthy"] and (loop["lastHeartbeatTime"] or 0) >= began for loop in required)


def _opener() -> urllib.request.OpenerDirector:
    """One that goes to this machine itself, whatever proxy the environment names."""
    return urllib.request.build_opener(urllib.request.ProxyHandler({}))
