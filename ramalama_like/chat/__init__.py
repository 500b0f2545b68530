"""Talking to a server that speaks OpenAI's chat protocol."""
