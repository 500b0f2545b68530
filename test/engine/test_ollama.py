"""A model of Ollama's registry in a real llama-server: the converted template says what it should."""

from __future__ import annotations

import json
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hubs.ollama import OllamaRegistry
from test_go_template import LOOP, TALK, TURN, USER, render

from engine.conftest import Engine
from engine.test_commands import WITHIN_S, User

DEMO = Path(__file__).parents[2] / "ramalama_like" / "data" / "demo" / "demo.gguf"
TOOL = {"type": "function", "function": {"name": "f", "description": "d", "parameters": {
    "type": "object", "properties": {"a": {"type": "string", "enum": ["x"]}}}}}  # fmt: skip
PARTS = """{{ range .Tools }}{{ .Function.Name }}(
{{- range $n, $p := .Function.Parameters.Properties }}{{ $n }}: {{ $p.Type }}
{{- if $p.Enum }} {{ json $p.Enum }}{{ end }}
{{- end }}) {{ .Function.Description }} {{ . }}{{ end }}{{ $x := "1" }}
{{- range $i, $m := .Messages }}
{{- if eq $i 2 }}{{ break }}{{ end }}{{ $x = .Role }}{{ printf "%d: %s" $i $x }} {{ len .Content }};{{ end -}}
{{ with .System }}[{{ . }}]{{ else }}none{{ end }}"""


@pytest.fixture
def registry() -> Iterator[OllamaRegistry]:
    with OllamaRegistry() as running:
        yield running


@pytest.mark.parametrize("template", [TURN, LOOP, PARTS], ids=["turn", "loop", "parts"])
def test_llama_server_makes_of_a_template_what_jinja_makes_of_it(
    registry: OllamaRegistry, engine: Engine, world: Path, template: str
) -> None:
    user = User(engine, world / "user")
    user.environment["RAMALAMA_OLLAMA_REGISTRY"] = registry.hub.url
    user.environment["RAMALAMA_STORE"] = str(world / "store")
    # The demo model without a template of its own.
    weights = DEMO.read_bytes().replace(b"tokenizer.chat_template", b"tokenizer.chat_nonsense")
    registry.add_model("library/demo", "latest", model=weights, template=template.encode())
    pulled = user.types("pull", "ollama://demo")
    assert pulled.returncode == 0, pulled.stderr
    served = user.types("serve", "-d", "ollama://demo")
    assert served.returncode == 0, served.stderr
    (mine,) = json.loads(user.types("ps", "--json").stdout)
    try:
        for messages, tools in ((TALK, []), ([USER], []), (TALK, [TOOL])):
            assert apply(mine["labels"]["ai.ramalama.port"], messages, tools) == render(
                template, messages=messages, tools=tools
            )
    finally:
        assert user.types("stop", mine["name"]).returncode == 0


def apply(port: str, messages: list[dict[str, str]], tools: list[dict[str, Any]]) -> str:
    """The prompt that the server makes of a conversation."""
    body = {"messages": messages, **({"tools": tools} if tools else {})}
    request = urllib.request.Request(f"http://127.0.0.1:{port}/apply-template", json.dumps(body).encode(),
                                     {"Content-Type": "application/json"})  # fmt: skip
    with urllib.request.urlopen(request, timeout=WITHIN_S) as response:
        prompt = json.load(response)["prompt"]
    assert isinstance(prompt, str)
    return prompt
