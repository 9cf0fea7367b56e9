"""Asks an endpoint for numbered texts, in a process of its own that may write files of so many bytes at most.

``python -m tests.llm.client_process URL FOLDER FIRST LAST BYTES``
"""

import resource
import sys
from pathlib import Path

from mesa_pipeline.config import load_settings
from mesa_pipeline.llm.cache import ReplyCache
from mesa_pipeline.llm.endpoint import Endpoint
from mesa_pipeline.llm.ledger import Ledger


def main(base_url: str, folder: str, first: str, last: str, file_bytes: str) -> None:
    resource.setrlimit(resource.RLIMIT_FSIZE, (int(file_bytes), int(file_bytes)))
    settings = load_settings(environment={}).llm.chat.model_copy(update={"base_url": base_url})
    endpoint = Endpoint(settings, ReplyCache(Path(folder, "replies.sqlite")), Ledger(Path(folder, "ledger.sqlite")))
    for number in range(int(first), int(last)):
        endpoint.complete({"model": "m", "messages": [{"role": "user", "content": f"text {number}"}]}, "answer")


if __name__ == "__main__":
    main(*sys.argv[1:])
