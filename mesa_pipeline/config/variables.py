"""Environment variables by which processes that this system starts are told where things are."""

WORKSPACE_VARIABLE = "MESA_WORKSPACE"
PARAMS_VARIABLE = "MESA_PARAMS"


def data_variable(dataset: str) -> str:
    """The environment variable with a dataset's file or folder."""
    return f"MESA_DATA_{dataset.replace('.', '_').upper()}"
