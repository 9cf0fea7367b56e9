"""A program that serves one language model with llama.cpp until its standard input ends, as it does with whoever started it.

Its argument is JSON: what to serve. It replies with a line of JSON, ``{"address": ...}`` or ``{"error": ...}``, and imports
nothing of this project.
"""

import json
import os
import sys
from collections.abc import Mapping
from typing import Any


def main(served: str) -> None:
    """Serve, and end at once: llama.cpp by itself would first finish the batch in hand and wait for whoever is connected."""
    replies = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)  # for what llama.cpp has to say
    try:
        server = opened(json.loads(served))
        reply = {"address": server.listening_address}
    except Exception as error:  # whatever the binding raises for a file that it cannot load
        reply = {"error": f"{type(error).__name__}: {error}"}
    replies.write(json.dumps(reply) + "\n")
    replies.flush()
    sys.stdin.read()
    os._exit(0)


def opened(served: Mapping[str, Any]) -> Any:
    """A running server, at a port that the system picks.

    Args:
        served: ``weights``, the path of a GGUF file; ``name`` of the model; ``slots``, requests at a time, and the
            ``context_tokens`` of each; whether it ``embeds``, and whether the vectors are the mean of the tokens' (``pools``);
            ``threads``; ``prompt_cache_mb`` for prompts that had to leave their slot.
    """
    from xllamacpp import CommonParams, Server, llama_pooling_type

    params = CommonParams()
    params.model.path = served["weights"]
    params.model_alias = {served["name"]}
    params.hostnames = ["127.0.0.1"]
    params.port = 0
    params.offline = True
    params.n_ctx = served["context_tokens"] * served["slots"]
    params.n_parallel = served["slots"]
    params.cache_prompt = True
    params.cache_ram_mib = served["prompt_cache_mb"]
    params.fit_params = False
    params.warmup = False
    params.verbosity = 0
    params.ui = params.endpoint_slots = False  # the slots would show prompts to whoever asks
    for threads in (params.cpuparams, params.cpuparams_batch):
        threads.n_threads = served["threads"]
        threads.poll = 0  # polling threads starve one another where others work, too
    if served["embeds"]:
        params.embedding = True
        params.n_batch = params.n_ubatch = served["context_tokens"]
    if served["pools"]:
        params.pooling_type = llama_pooling_type.LLAMA_POOLING_TYPE_MEAN
    return Server(params)


if __name__ == "__main__":
    main(sys.argv[1])
