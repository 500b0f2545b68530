"""Ollama's chat templates as Jinja: rendered by a real Jinja, they say what Go's would."""

from __future__ import annotations

import json
from typing import Any

import jinja2
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ramalama_like.models.go_template import Unsupported, convert_template

USER = {"role": "user", "content": "One?"}
TALK = [
    {"role": "system", "content": "Be kind."},
    USER,
    {"role": "assistant", "content": "Yes."},
    {"role": "user", "content": "Two?"},
]
TURN = (
    "{{ if .System }}<sys>{{ .System }}</sys>\n{{ end }}"
    "{{ if .Prompt }}<u>{{ .Prompt }}</u>\n{{ end }}<a>{{ .Response }}</a>\n"
)
LOOP = """{{- if or .System .Tools }}<sys>
{{- .System }}
{{- range .Tools }}
 {{ .Function }}
{{- end }}</sys>
{{ end }}
{{- range $i, $_ := .Messages }}
{{- $last := eq (len (slice $.Messages $i)) 1 -}}
{{- if eq .Role "user" "tool" }}<u>{{ .Content }}</u>
{{ else if eq .Role "assistant" }}<a>{{ .Content }}
{{- range .ToolCalls }}[{{ .Function.Name }} {{ .Function.Arguments }}]{{ end }}{{ if not $last }}</a>
{{ end }}
{{- end }}
{{- if and $last (ne .Role "assistant") }}<a>{{ end }}
{{- end }}"""


def render(template: str, **given: Any) -> str:
    """What a template gives in Jinja, which must not depend on how blocks are trimmed; llama.cpp trims them."""
    found = set()
    for trim in (False, True):
        environment = jinja2.Environment(
            trim_blocks=trim, lstrip_blocks=trim, keep_trailing_newline=True, extensions=["jinja2.ext.loopcontrols"]
        )
        environment.filters["tojson"] = json.dumps
        environment.globals["strftime_now"] = lambda form: f"now {form}"
        found.add(environment.from_string(convert_template(template)).render(**given))
    (text,) = found
    return text


def test_a_template_of_one_turn_becomes_one_of_a_conversation_that_goes_on_after_the_last_question() -> None:
    assert render(TURN, messages=TALK) == "<sys>Be kind.</sys>\n<u>One?</u>\n<a>Yes.</a>\n<u>Two?</u>\n<a>"
    assert render(TURN, messages=[USER]) == "<u>One?</u>\n<a>"
    assert render(TURN, messages=TALK[:3]) == "<sys>Be kind.</sys>\n<u>One?</u>\n<a>Yes.</a>\n"
    again = [USER, {"role": "user", "content": "Well?"}]
    assert render(TURN, messages=again) == "<u>One?\n\nWell?</u>\n<a>"
    late = [*TALK, {"role": "assistant", "content": "No."}, {"role": "system", "content": "Be brief."}, USER]
    assert render(TURN, messages=late).endswith("<u>Two?</u>\n<a>No.</a>\n<sys>Be brief.</sys>\n<u>One?</u>\n<a>")


def test_a_template_without_a_response_gets_one_at_its_end() -> None:
    assert render("<u>{{ .Prompt }}</u><a>", messages=TALK[1:]) == "<u>One?</u><a>Yes.<u>Two?</u><a>"


def test_a_template_that_goes_over_the_messages_itself() -> None:
    assert render(LOOP, messages=TALK) == "<sys>Be kind.</sys>\n<u>One?</u>\n<a>Yes.</a>\n<u>Two?</u>\n<a>"
    call = {"role": "assistant", "content": None,
            "tool_calls": [{"function": {"name": "f", "arguments": {"x": "å"}}}]}  # fmt: skip
    tool = {"type": "function", "function": {"name": "f"}}
    assert render(LOOP, messages=[USER, call], tools=[tool]) == (
        '<sys>\n {"name": "f"}</sys>\n<u>One?</u>\n<a>[f {"x": "\\u00e5"}]'
    )
    assert render(LOOP, messages=[USER], tools=None) == "<u>One?</u>\n<a>"


MESSAGES = "{{ range .Messages }}{{ end }}"
WORKS = [
    ("a {{- /* hidden }} too */ -}} b", "ab"),
    ('{{ if false }}x{{ else if eq "a" "b" "a" }}y{{ else }}z{{ end }}', "y"),
    ('{{ with .System }}<{{ . }}>{{ else }}none{{ end }}', "<Be kind.>"),
    ('{{ $x := "1" }}{{ range .Messages }}{{ $x = .Role }}{{ end }}{{ $x }}', "user"),
    ('{{ $x := "1" }}{{ if true }}{{ $x := "2" }}{{ $x }}{{ end }}{{ $x }}', "21"),
    ("{{ range $i, $m := .Messages }}{{ if eq $i 2 }}{{ break }}{{ end }}{{ $i }}{{ $m.Role }} {{ end }}",
     "0system 1user "),
    ('{{ range .Messages }}{{ if eq .Role "system" }}{{ continue }}{{ end }}{{ .Content }}{{ end }}', "One?Yes.Two?"),
    ("{{ (index .Messages 1).Content }}", "One?"),
    ("{{ len .Messages }}", "4"),
    ("{{ len .Messages | printf `%d%%` }}", "4%"),
    ('{{ printf "%s: %v" "a\\n\\u00e9\\x41" true }}', "a\né" + "A: true"),
    ("{{ .Think }} {{ and .System 1 }} {{ not .Tools }}".replace("{{ and .System 1 }}", "{{ or .System `x` }}"),
     "true Be kind. true"),
    ("{{ json (index .Messages 1).Content }}{{ currentDate }}", '"One?"now %Y-%m-%d'),
    ("{% raw %} {{ `{{` }} {# ' \\ #}\r\n\t\u2028", "{% raw %} {{ {# ' \\ #}\r\n\t\u2028"),
    ("{{ range .Tools }}{{ else }}no tools{{ end }}", "no tools"),
    ("{{ 3 }}{{ lt 1 2 }}{{ ge 1.5 2.5 }}", "3truefalse"),
]  # fmt: skip


@pytest.mark.parametrize(("template", "text"), WORKS, ids=[template for template, _ in WORKS])
def test_each_construct(template: str, text: str) -> None:
    assert render(template + MESSAGES, messages=TALK) == text


def test_the_parts_of_tools() -> None:
    template = """{{ range .Tools }}{{ .Type }} {{ .Function.Name }}(
{{- range $n, $p := .Function.Parameters.Properties -}}
{{ $n }}: {{ $p.Type }}{{ if $p.Enum }} of {{ json $p.Enum }}{{ end }};{{ end }}) {{ .Function.Description }}|{{ . }}
{{- end }}{{ range .Messages }}{{ end }}"""
    properties = {"a": {"type": "string", "enum": ["x"]}, "b": {"type": "int"}}
    tool = {"type": "function", "function": {"name": "f", "parameters": {"properties": properties}}}
    assert render(template, messages=TALK, tools=[tool]) == (
        f'function f(a: string of ["x"];b: int;) |{json.dumps(tool)}'
    )


UNKNOWN = {
    "{{ template `x` . }}": "template",
    "{{ define `x` }}{{ end }}": "define",
    "{{ toTypeScriptType . }}": "toTypeScriptType of everything",
    "{{ toTypeScriptType .System }}": "the function toTypeScriptType",
    "{{ .Messages }}": "the printing of a list message",
    "{{ .Nothing }}": ".Nothing",
    "{{ range .Messages }}{{ .Images }}{{ end }}": ".Images of a message",
    "{{ range .System }}{{ end }}": "a loop over something else than messages, tools and their parts",
    "{{ $x }}": "$x, which nothing sets",
    "{{ break }}": "break outside of a loop",
    "{{ if .System }}": "a block without an end",
    "{{ end }}": "end without a beginning",
    "{{ .System": "an action without an end",
    "{{ `x": "a string without an end",
    "{{ /* x }}": "a comment without an end",
    '{{ "\\q" }}': "an unknown escape in a string",
    '{{ "\\xff" }}': "a byte that is no character in a string",
    "{{ .System .Tools }}": "arguments for something that is no function",
    "{{ }}": "an empty action",
    "{{ ) }}": "an empty action",
    "{{ (.System }}": "an open parenthesis",
    "{{ 'c' }}": "\"'c'\"",
    "{{ if $x := .System }}{{ end }}": "a variable in a condition",
    '{{ printf "%q" .System }}': "the format %q",
    '{{ $x := 1 }}{{ $x = "a" }}': "$x, which changes its kind",
    "{{ " + "(" * 99 + ".System" + ")" * 99 + " }}": "parentheses are nested too deeply",
    "{{ if true }}" * 99 + "{{ end }}" * 99: "blocks are nested too deeply",
    "{{ if true }}" + "{{ else if true }}" * 99 + "{{ end }}": "blocks are nested too deeply",
    "a" * (1 << 20): "its length",
}


@pytest.mark.parametrize(("template", "reason"), UNKNOWN.items(), ids=[text[:40] for text in UNKNOWN])
def test_what_is_not_understood_is_named(template: str, reason: str) -> None:
    with pytest.raises(Unsupported) as caught:
        convert_template(MESSAGES + template)
    assert str(caught.value) == reason


def test_a_text_that_is_no_chat_template_is_refused() -> None:
    for text in ("", "hello", "{{ .System }}"):
        with pytest.raises(Unsupported, match=r"^neither messages nor a prompt in it$"):
            convert_template(text)


@given(st.text())
def test_any_text_around_actions_comes_out_as_it_was(text: str) -> None:
    if "{{" not in text and not text.endswith("{"):
        assert render("{{ .Prompt }}" + text + "{{ .Response }}", messages=[USER]) == "One?" + text


RUBBLE = ("{{", "}}", "-", " ", "if", "else", "end", "range", ".Messages", "$x", ":=", "(", ")", "|", '"a"', "`", '"',
          ".Role", "eq", "1", ",", "/*", "*/", "\n")  # fmt: skip


@given(st.lists(st.sampled_from(RUBBLE), max_size=30))
def test_any_rubble_is_converted_or_refused(pieces: list[str]) -> None:
    try:
        text = convert_template("".join(pieces) + "{{ .Prompt }}")
    except Unsupported:
        return
    jinja2.Environment(extensions=["jinja2.ext.loopcontrols"]).parse(text)
