"""What a browser asks Dagster's web server, without the browser."""

import json
import time
import urllib.request
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

LAUNCH = """mutation($p: ExecutionParams!) { launchRun(executionParams: $p) {
  __typename ... on LaunchRunSuccess { run { runId } } ... on PythonError { message }
  ... on InvalidSubsetError { message } } }"""
EVENTS = """query($id: ID!) { logsForRun(runId: $id) { ... on EventConnection {
  events { __typename ... on MessageEvent { timestamp message } } } } }"""
RUN = "query($id: ID!) { runOrError(runId: $id) { ... on Run { status tags { key value } } } }"
CONFIGURATION = "{ instance { info } }"
UNFINISHED = """{ runsOrError(filter: {statuses: [QUEUED, STARTING, STARTED, CANCELING]}) {
  ... on Runs { results { id } } } }"""
FINISHED = ("SUCCESS", "FAILURE", "CANCELED")
DIMENSIONS = ("dataset", "seed")
"""Of a partition such as ``synthetic|0``."""


def until(happened: Callable[[], Any], seconds: float = 240.0) -> Any:
    """Wait for something, and return what it is."""
    deadline = time.monotonic() + seconds
    while not (found := happened()):
        assert time.monotonic() < deadline, f"not within {seconds:.0f} s: {happened}"
        time.sleep(0.2)
    return found


@dataclass(frozen=True)
class DagsterClient:
    """A web server at a URL."""

    url: str

    def ask(self, query: str, **variables: Any) -> Any:
        body = json.dumps({"query": query, "variables": variables}).encode()
        request = urllib.request.Request(f"{self.url}/graphql", body, {"Content-Type": "application/json"})
        with urllib.request.urlopen(request, timeout=60) as response:
            return json.load(response)["data"]

    def configuration(self) -> str:
        """What Deployment > Configuration shows."""
        return str(self.ask(CONFIGURATION)["instance"]["info"])

    def materialize(self, asset: str, partition: str, *further: str) -> str:
        """Click on it, with further assets selected that have the same partitions; the id of the run."""
        selector = {
            "repositoryName": "__repository__",
            "repositoryLocationName": "mesa_pipeline.definitions",
            "jobName": "__ASSET_JOB",
            "assetSelection": [{"path": [name]} for name in (asset, *further)],
            "assetCheckSelection": [],
        }
        tags = [{"key": "dagster/partition", "value": partition}]
        if len(keys := partition.split("|")) > 1:
            tags += [{"key": f"dagster/partition/{name}", "value": key} for name, key in zip(DIMENSIONS, keys, strict=True)]
        parameters = {"selector": selector, "executionMetadata": {"tags": tags}, "runConfigData": {}, "mode": "default"}
        launched = self.ask(LAUNCH, p=parameters)["launchRun"]
        assert launched["__typename"] == "LaunchRunSuccess", launched
        return str(launched["run"]["runId"])

    def status(self, run: str) -> str:
        return str(self.ask(RUN, id=run)["runOrError"]["status"])

    def tags(self, run: str) -> Mapping[str, str]:
        return {tag["key"]: tag["value"] for tag in self.ask(RUN, id=run)["runOrError"]["tags"]}

    def is_idle(self) -> bool:
        """Whether no run waits or works, nor one that continues another by itself."""
        return not self.ask(UNFINISHED)["runsOrError"]["results"]

    def finished(self, run: str, seconds: float = 240.0) -> str:
        """Wait for a run's end, and return how it ended."""
        return str(until(lambda: status if (status := self.status(run)) in FINISHED else None, seconds))

    def events(self, run: str) -> list[tuple[str, float]]:
        """Kinds of a run's events, each with when it was, in seconds since 1970."""
        events = self.ask(EVENTS, id=run)["logsForRun"]["events"]
        return [(event["__typename"], int(event["timestamp"]) / 1000) for event in events if "timestamp" in event]
