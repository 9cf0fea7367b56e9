"""What ``mesa doctor`` finds out about the endpoints that the settings use."""

from collections.abc import Callable
from functools import partial

from mesa_pipeline.config import ENDPOINT, LOCAL, ChatSettings, EndpointSettings, Settings, secret
from mesa_pipeline.errors import MissingDependency
from mesa_pipeline.llm.llama_server import url_of
from mesa_pipeline.llm.probe import EndpointProbe
from mesa_pipeline.stages.models import judge_endpoint, roles_played

UNUSED = "not used by this profile"


def endpoint_checks(settings: Settings) -> dict[str, Callable[[], str]]:
    """What to try, by name: each says what it found in a line, or raises what is wrong."""
    judges = {f"judge {judge.name}": judge_endpoint(settings, judge) for judge in settings.evaluation.judges}
    return {
        "profile": lambda: settings.profile_label,
        "chat endpoint": partial(_own_chat, settings),
        **{name: partial(_chat, settings, chat) for name, chat in judges.items()},
        "embeddings endpoint": partial(_embeddings, settings),
    }


def _own_chat(settings: Settings) -> str:
    roles = roles_played(settings)
    return f"{_chat(settings, settings.llm.chat)}; asked to {', '.join(roles)}" if roles else UNUSED


def _chat(settings: Settings, chat: ChatSettings) -> str:
    probe = _probe(settings, chat)
    served = _served(probe, chat)
    reuse = probe.prefix_reuse(chat)
    cached = f"prefix caching answers ({reuse.cached_tokens:,} of {reuse.prompt_tokens:,} tokens the second time)"
    return f"{served}; {cached if reuse.cached_tokens else 'no prefix caching seen'}"


def _embeddings(settings: Settings) -> str:
    embeddings = settings.llm.embeddings
    if settings.llm.embedder != ENDPOINT:
        return UNUSED
    probe = _probe(settings, embeddings)
    return f"{_served(probe, embeddings)}; {probe.dimensions():,} dimensions"


def _probe(settings: Settings, endpoint: EndpointSettings) -> EndpointProbe:
    return EndpointProbe(endpoint, url_of(endpoint, settings.llm.local), secret(endpoint.key_variable))


def _served(probe: EndpointProbe, endpoint: EndpointSettings) -> str:
    """Model, context and key, which is never shown.

    Raises:
        MissingDependency: Another model is served, or one with less context than the settings count on.
    """
    found = probe.describe()
    if endpoint.model not in found.models:
        raise MissingDependency(f"{endpoint.base_url} serves {', '.join(found.models) or 'no model'}, not {endpoint.model!r}")
    if found.context_tokens is not None and found.context_tokens < endpoint.context_tokens:
        raise MissingDependency(
            f"{endpoint.model} at {endpoint.base_url} has {found.context_tokens:,} tokens of context, "
            f"and the settings count on {endpoint.context_tokens:,}; lower context_tokens"
        )
    where = "beside this process" if endpoint.base_url == LOCAL else f"at {endpoint.base_url}"
    context = "a context it does not tell" if found.context_tokens is None else f"{found.context_tokens:,} tokens of context"
    key = "a key" if secret(endpoint.key_variable) else "no key"
    return f"{endpoint.model} {where}, {context}; {key} in {endpoint.key_variable}"
