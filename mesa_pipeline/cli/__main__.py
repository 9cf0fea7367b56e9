"""``python -m mesa_pipeline.cli``, for where the ``mesa`` script is not on the path."""

from mesa_pipeline.cli import main

if __name__ == "__main__":
    main()
