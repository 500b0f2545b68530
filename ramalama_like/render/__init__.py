"""Renderings of a plan: one sibling for each form, all pure. They read no file, variable, clock or platform."""
