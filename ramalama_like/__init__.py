"""Run language models in containers: one plan, shown exactly as it will run."""

__version__ = "0.1.0"
