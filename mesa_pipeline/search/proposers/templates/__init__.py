"""Policies without a language model: templates with a few genes, written as sources that anyone can read."""

from mesa_pipeline.search.proposers.templates.breeding import cross, mutate, random_genome, repair
from mesa_pipeline.search.proposers.templates.catalogue import TEMPLATES, Template, templates_of
from mesa_pipeline.search.proposers.templates.genome import Crossing, Genome, genome_of
from mesa_pipeline.search.proposers.templates.rendering import render

__all__ = [
    "TEMPLATES",
    "Crossing",
    "Genome",
    "Template",
    "cross",
    "genome_of",
    "mutate",
    "random_genome",
    "render",
    "repair",
    "templates_of",
]
