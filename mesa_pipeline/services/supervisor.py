"""Starts services in the order they need one another, watches them, and starts again what ended by itself, for a while."""

import logging
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace

from mesa_pipeline.config import ServicesSettings
from mesa_pipeline.errors import MesaError
from mesa_pipeline.services.record import ServiceStatus, State
from mesa_pipeline.services.service import Service, tail

LOGGER = logging.getLogger(__name__)
Clock = Callable[[], float]


@dataclass
class _Watched:
    """A service and where it stands. ``until`` is when it must be ready, or is started again."""

    service: Service
    status: ServiceStatus
    until: float = 0.0


class Supervisor:
    """Turns services on and keeps them on. Not for use by several threads; the one that uses it owns the processes.

    Args:
        services: In the order they are shown; none is needed by an earlier one.
        settings: How patient to be.
        say: Told where all stand whenever that changes.
        clock: Seconds since 1970.
    """

    def __init__(
        self,
        services: Sequence[Service],
        settings: ServicesSettings,
        say: Callable[[tuple[ServiceStatus, ...]], None],
        clock: Clock = time.time,
    ) -> None:
        self._settings = settings
        self._say = say
        self._clock = clock
        self._watched = {
            service.name: _Watched(
                service, ServiceStatus(service.name, State.WAITING, clock(), url=service.url, log=str(service.log))
            )
            for service in services
        }

    @property
    def statuses(self) -> tuple[ServiceStatus, ...]:
        """Where each stands."""
        return tuple(watched.status for watched in self._watched.values())

    def step(self) -> None:
        """Look at each service once and do what is due."""
        before = self.statuses
        for watched in self._watched.values():
            self._look(watched)
        if self.statuses != before:
            self._say(self.statuses)

    def stop(self) -> None:
        """Stop all, those that others need last."""
        left = [watched for watched in self._watched.values() if watched.status.process]
        while left:
            needed = {name for watched in left for name in watched.service.after}
            ending = [watched for watched in left if watched.service.name not in needed] or left
            self._stop(ending)
            left = [watched for watched in left if watched not in ending]

    def _stop(self, ending: Sequence[_Watched]) -> None:
        with ThreadPoolExecutor(len(ending)) as threads:  # each is waited for, so all at once
            for done in [threads.submit(watched.service.stop, self._settings.stop_seconds) for watched in ending]:
                done.result()
        for watched in ending:
            self._enter(watched, State.STOPPED, process=None)
        self._say(self.statuses)

    def _look(self, watched: _Watched) -> None:
        state = watched.status.state
        due = {State.WAITING: self._has_what_it_needs, State.RESTARTING: self._has_waited}.get(state)
        if due and due(watched):
            self._begin(watched)
        elif state in (State.STARTING, State.READY):
            self._check(watched)

    def _has_waited(self, watched: _Watched) -> bool:
        return self._clock() >= watched.until and self._has_what_it_needs(watched)

    def _has_what_it_needs(self, watched: _Watched) -> bool:
        states = {name: self._watched[name].status.state for name in watched.service.after}
        broken = [name for name, state in states.items() if state is State.FAILED]
        if broken:
            self._enter(watched, State.FAILED, problem=f"needs {', '.join(broken)}")
        return all(state is State.READY for state in states.values())

    def _begin(self, watched: _Watched) -> None:
        try:
            process = watched.service.start()
        except (MesaError, OSError) as error:
            self._fell(watched, str(error))
            return
        watched.until = self._clock() + self._settings.ready_seconds
        self._enter(watched, State.STARTING, process=process)

    def _check(self, watched: _Watched) -> None:
        status, now = watched.status, self._clock()
        ended = watched.service.ended()
        if ended is not None:
            self._fell(watched, f"ended by itself, {ended}", tail(watched.service.log))
        elif status.state is State.STARTING:
            if watched.service.is_ready():
                self._enter(watched, State.READY)
            elif now > watched.until:
                self._fell(watched, f"did not answer within {self._settings.ready_seconds:.0f} s", tail(watched.service.log))
        elif status.restarts and now - status.since > self._settings.restarts.settled_seconds:
            watched.status = replace(status, restarts=0)

    def _fell(self, watched: _Watched, reason: str, last_words: str = "") -> None:
        watched.service.stop(0.0)
        problem = "\n".join(filter(None, (reason, last_words)))
        limits, restarts = self._settings.restarts, watched.status.restarts
        LOGGER.warning("%s %s", watched.service.name, problem)
        if restarts >= limits.limit:
            self._enter(watched, State.FAILED, process=None, problem=problem)
            return
        watched.until = self._clock() + min(limits.backoff_seconds * 2**restarts, limits.max_backoff_seconds)
        self._enter(watched, State.RESTARTING, process=None, problem=problem, restarts=restarts + 1)

    def _enter(self, watched: _Watched, state: State, **changes: object) -> None:
        LOGGER.info("%s is %s", watched.service.name, state)
        watched.status = replace(watched.status, state=state, since=self._clock(), **changes)  # type: ignore[arg-type]
