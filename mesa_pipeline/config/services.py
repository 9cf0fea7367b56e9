"""Settings of the servers that `mesa up` starts."""

from typing import Annotated, Literal

from pydantic import Field

from mesa_pipeline.config.section import PositiveFloat, Section

Port = Annotated[int, Field(ge=1, le=65535)]
DatabaseName = Annotated[str, Field(pattern=r"^[a-z_][a-z0-9_]{0,62}$")]


class RestartSettings(Section):
    limit: Annotated[int, Field(ge=0)]
    backoff_seconds: PositiveFloat
    max_backoff_seconds: PositiveFloat
    settled_seconds: PositiveFloat


class ServicesSettings(Section):
    postgres: Literal["embedded", "url", "none"]
    url_variable: str
    dagster_database: DatabaseName
    mlflow_database: DatabaseName
    port: Port
    mlflow_port: Port
    ready_seconds: PositiveFloat
    stop_seconds: PositiveFloat
    restarts: RestartSettings
