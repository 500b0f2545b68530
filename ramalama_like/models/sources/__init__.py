"""Where models come from: one sibling for each kind of place, all with ``resolve(reference) -> Model``."""
