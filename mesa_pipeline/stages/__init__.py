"""The pipeline's stages: plain functions from artifacts to artifacts, called alike by the shell, Dagster and DVC.

In order: ``ingest``, ``build`` and ``retrieve`` (one structure a call), ``split`` (one seed), ``sweep``, ``optimize`` and
``test`` (one seed), ``report``. Each leaves alone what is current and continues what was begun: to resume is to run the same
command again.
"""
