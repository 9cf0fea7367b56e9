"""Changes to settings that are still plain values: ``section.key=value``."""

from collections.abc import Mapping, Sequence
from functools import reduce
from typing import Any

import yaml

from mesa_pipeline.errors import ConfigError


def apply_override(values: dict[str, Any], override: str, origin: str) -> None:
    """Make one change, in place.

    Raises:
        ConfigError: It is not of that form, or there is no such setting; names the origin and what there is.
    """
    keys, value = parsed(override, origin)
    if keys == ["profile"]:
        raise ConfigError(f"{origin} {override}: a profile is more than its name; choose one with --profile")
    assign(values, keys, value, f"{origin} {override}")


def parsed(override: str, origin: str) -> tuple[list[str], Any]:
    """Keys and value of ``section.key=value``."""
    key, separator, value = override.partition("=")
    if not separator:
        raise ConfigError(f"{origin} {override!r}: write it as section.key=value")
    return key.strip().split("."), parse_value(value, override)


def value_at(values: Mapping[str, Any], keys: Sequence[str]) -> Any:
    """The value under some keys, one section after the other."""
    return reduce(lambda section, key: section[key], keys, values)


def parse_value(text: str, origin: str) -> Any:
    """The YAML value that a text is.

    Raises:
        ConfigError: It is none.
    """
    try:
        return yaml.safe_load(text)
    except yaml.YAMLError as error:
        raise ConfigError(f"{origin}: {text!r} is not a YAML value") from error


def assign(values: dict[str, Any], keys: Sequence[str], value: Any, origin: str) -> None:
    """Set what stands under some keys, in place.

    Raises:
        ConfigError: There is no such setting; names the origin and those there are.
    """
    section = values
    for position, key in enumerate(keys):
        if key not in section:
            known = ", ".join(sorted(map(str, section)))
            raise ConfigError(f"{origin}: unknown setting {'.'.join(keys[: position + 1])!r}; known here: {known}")
        if position == len(keys) - 1:
            section[key] = value
        elif isinstance(section[key], dict):
            section = section[key]
        else:
            raise ConfigError(f"{origin}: {'.'.join(keys[: position + 1])!r} is a value, not a section")
