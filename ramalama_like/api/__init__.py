"""The Python API: ``Model`` and ``AsyncModel``, over the same plan as the command line. Guide: docs/python.md."""

from __future__ import annotations

from ramalama_like.api.async_model import AsyncModel, AsyncStream
from ramalama_like.api.model import Model
from ramalama_like.api.stream import Stream
from ramalama_like.api.values import Answer, Ranked, Usage
from ramalama_like.chat.answers import Piece, ToolCall

__all__ = ["Answer", "AsyncModel", "AsyncStream", "Model", "Piece", "Ranked", "Stream", "ToolCall", "Usage"]
