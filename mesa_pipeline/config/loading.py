"""Reading the settings from file, environment and command line: the one place that does."""

import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import yaml

from mesa_pipeline.config.overrides import apply_override, assign, parse_value
from mesa_pipeline.config.settings import Settings, validated
from mesa_pipeline.errors import ConfigError

ENV_PREFIX = "MESA_"
PARAMS_FILE = "params.yaml"
RESOLVED = "resolved"
"""Marks settings in a file that are final: profile, environment and overrides are in them."""


def secret(variable: str) -> str | None:
    """The secret in an environment variable, ``None`` where there is none. It goes to whoever sends it, and is kept nowhere."""
    return os.environ.get(variable) or None


def default_params_path() -> Path:
    """``params.yaml`` of the current directory, else the one shipped with the package.

    Raises:
        ConfigError: Neither is there.
    """
    package = Path(__file__).parent.parent
    for candidate in (Path.cwd() / PARAMS_FILE, package.parent / PARAMS_FILE, package / PARAMS_FILE):
        if candidate.is_file():
            return candidate
    raise ConfigError(f"no {PARAMS_FILE} in {Path.cwd()} nor beside the package; name one with --params")


def load_settings(
    path: Path | None = None,
    overrides: Sequence[str] = (),
    environment: Mapping[str, str] | None = None,
    profile: str | None = None,
) -> Settings:
    """Read the settings: the file, changed by a profile, then by the environment, then by overrides.

    Args:
        path: The YAML file; by default ``default_params_path()``.
        overrides: ``section.key=value`` strings, the last word on any key; values are YAML.
        environment: Variables to read ``MESA_SECTION__KEY`` from; the process's own by default. A variable without a double
            underscore is none of ours to read here.
        profile: Name of one of the file's profiles; by default the one that the file names.

    Raises:
        ConfigError: The file cannot be read, or a key is unknown, missing or out of range; names the key and its origin.
    """
    path = path or default_params_path()
    values = _read_yaml(path)
    if values.pop(RESOLVED, False):
        return validated(values, overrides, f"settings ({path})")
    _apply_profile(values, profile, path)
    environment = os.environ if environment is None else environment
    for name in sorted(environment):
        if name.startswith(ENV_PREFIX) and "__" in name:
            keys = name.removeprefix(ENV_PREFIX).lower().split("__")
            assign(values, keys, parse_value(environment[name], name), name)
    return validated(values, overrides, f"settings ({path}, then MESA_* variables, then --set)")


def resolved(settings: Settings) -> dict[str, Any]:
    """Plain values that ``load_settings`` reads from a file as these very settings, whatever the environment then says."""
    return {**settings.model_dump(mode="json", by_alias=True), RESOLVED: True}


def _apply_profile(values: dict[str, Any], wanted: str | None, path: Path) -> None:
    """Make the changes of the profile wanted, or of the one the file names, and note its name."""
    name = wanted if wanted is not None else values.get("profile")
    profiles = {profile.get("name"): profile for profile in values.get("profiles", ()) if isinstance(profile, dict)}
    if name not in profiles:
        raise ConfigError(f"no profile {name!r} in {path}; known are {', '.join(map(str, profiles))}")
    values["profile"] = name
    for override in profiles[name].get("set", ()):
        apply_override(values, str(override), f"profile {name!r}")


def _read_yaml(path: Path) -> dict[str, Any]:
    try:
        values = yaml.safe_load(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise ConfigError(f"cannot read settings {path}: {error.strerror}") from error
    except (yaml.YAMLError, UnicodeDecodeError) as error:
        raise ConfigError(f"{path} is not valid YAML: {error}") from error
    if not isinstance(values, dict):
        raise ConfigError(f"{path} must hold sections of settings, found {type(values).__name__}")
    return values
