"""The demo model: its text, its training script and the answer the tests rely on."""
