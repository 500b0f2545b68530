"""The demo model: small, honest about its origin, and answering what the other tests rely on.

Runs on the model file alone; the training script and its dependencies are not needed.
"""

from __future__ import annotations

import json
import unicodedata
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import gguf
import pytest
import xllamacpp
from demo_model import corpus

MODEL = Path(__file__).resolve().parents[1] / "ramalama_like" / "data" / "demo" / "demo.gguf"

# Questions that are not in the corpus in these words, with the topic that answers each of them.
HELD_OUT: tuple[tuple[str, str], ...] = (
    ("So what exactly is this ramalama-like thing?", "what"),
    ("What reason is there for ramalama-like to exist?", "why"),
    ("How would I go about installing ramalama-like?", "install"),
    ("Are scripts for ramalama going to work unchanged?", "dialect"),
    ("Is this program free or do I have to buy it?", "license"),
    ("Can anybody else read my private prompts?", "privacy"),
    ("Which command lets me run the mistral model?", "run"),
    ("I would like to start an API server for qwen", "serve"),
    ("what's the real difference between serve and run", "run-vs-serve"),
    ("How could I benchmark granite on this machine?", "bench"),
    ("Tell me the command to stop a server", "stop"),
    ("I need to read the logs of my server", "logs"),
    ("Show me all the containers that are running", "containers"),
    ("How can I remove models I no longer need?", "rm"),
    ("What is the command to download gemma?", "pull"),
    ("There is a problem with my setup, please check it", "doctor"),
    ("How do I test whether my GPU is really working?", "smoke"),
    ("What happens when I add --dryrun to a command?", "dryrun"),
    ("Are the commands in a dry run exactly the real ones?", "dryrun-trust"),
    ("Does a dry run write files or download a model?", "dryrun-effects"),
    ("When does the program decide on a container image?", "image-choice"),
    ("Can I tell it to use my own container image?", "image-override"),
    ("Give me a list of the supported backends", "backends"),
    ("My old computer has no graphics card at all", "cpu"),
    ("What should I use with my AMD Radeon?", "amd"),
    ("Does my NVIDIA card work with this?", "nvidia"),
    ("How safe is it to run an unknown model?", "isolation"),
    ("Does the model have access to the internet?", "no-network"),
    ("Which container engines do you support?", "engines"),
    ("I want to run a model with no container", "nocontainer"),
    ("Please explain the embedded server to me", "embedded"),
    ("Which file do I have to edit to configure it?", "config"),
    ("How do I find out where a setting came from?", "origin"),
    ("Hi! Could you tell me who you are?", "who"),
    ("Thanks, you helped me a lot!", "thanks"),
    ("What is the capital of Portugal?", "fallback"),
    ("How do I sew a button onto my jacket?", "fallback"),
    ("Write a short poem about autumn", "fallback"),
    ("Who painted the Sistine Chapel?", "fallback"),
    ("what is 31 plus 11", "fallback"),
)


class Demo:
    """The model behind a real server, reached as any client would reach it."""

    def __init__(self) -> None:
        params = xllamacpp.CommonParams()
        params.model.path = str(MODEL)
        params.n_parallel = 1
        params.verbosity = 0
        self.server = xllamacpp.Server(params)

    def post(self, path: str, body: dict[str, Any]) -> dict[str, Any]:
        """Send one request."""
        request = urllib.request.Request(
            self.server.listening_address + path, json.dumps(body).encode(), {"Content-Type": "application/json"}
        )
        with urllib.request.urlopen(request, timeout=60) as response:
            answer: dict[str, Any] = json.load(response)
            return answer

    def ask(self, *turns: str, system: str = "", **options: Any) -> tuple[str, str]:
        """Ask the last of the turns (user and assistant alternate); the answer and why it ended."""
        messages = [{"role": "system", "content": system}] if system else []
        messages += [{"role": ("user", "assistant")[n % 2], "content": text} for n, text in enumerate(turns)]
        body = {"messages": messages, "temperature": 0, "max_tokens": 200} | options
        choice = self.post("/v1/chat/completions", body)["choices"][0]
        return choice["message"]["content"], choice["finish_reason"]


@pytest.fixture(scope="module")
def demo() -> Iterator[Demo]:
    """One server for all questions."""
    yield Demo()


@pytest.fixture(scope="module")
def fields() -> dict[str, Any]:
    """The metadata in the file."""
    return {name: field.contents() for name, field in gguf.GGUFReader(MODEL).fields.items()}


def test_the_file_is_small() -> None:
    assert MODEL.stat().st_size <= 3_000_000


def test_the_metadata_say_what_it_is(fields: dict[str, Any]) -> None:
    assert fields["general.architecture"] == "llama"
    assert fields["general.name"] == "ramalama_like demo"
    assert fields["general.license"] == "MIT"
    assert "very small" in fields["general.description"]
    assert fields["tokenizer.chat_template"] == corpus.CHAT_TEMPLATE


def test_the_model_was_trained_on_this_corpus(fields: dict[str, Any]) -> None:
    assert fields["ramalama_like.corpus_sha256"] == corpus.corpus_sha256(), (
        "the corpus has changed: train again with `python test/demo_model/train.py`"
    )


def test_every_question_has_one_topic() -> None:
    questions = [question for topic in corpus.TOPICS for question in topic.questions]
    assert len(questions) == len(set(questions))
    assert len(corpus.TOPIC_OF_ANSWER) == len(corpus.TOPICS) + 1


def test_the_fixed_prompt_has_the_fixed_answer(demo: Demo) -> None:
    assert demo.ask(corpus.FIXED_PROMPT) == (corpus.FIXED_ANSWER, "stop")


def test_the_fixed_answer_is_never_a_close_call(demo: Demo) -> None:
    """Other processors and builds round differently: each token must win by far."""
    prompt = demo.post("/apply-template", {"messages": [{"role": "user", "content": corpus.FIXED_PROMPT}]})["prompt"]
    body = {"prompt": prompt, "temperature": 0, "n_predict": 200, "n_probs": 2}
    steps = demo.post("/completion", body)["completion_probabilities"]
    margins = [step["top_logprobs"][0]["logprob"] - step["top_logprobs"][1]["logprob"] for step in steps]
    assert min(margins) > 2.0


def test_held_out_questions_are_answered_on_topic(demo: Demo) -> None:
    known = {question for topic in corpus.TOPICS for question in topic.questions}
    assert not [question for question, _ in HELD_OUT if question.lower().rstrip("?!. ") in known]
    wrong: list[str] = []
    for question, topic in HELD_OUT:
        answer, finish = demo.ask(question)
        assert finish == "stop", question
        if corpus.TOPIC_OF_ANSWER.get(answer) != topic:
            wrong.append(f"{question} ({topic}): {answer}")
    assert len(wrong) <= len(HELD_OUT) // 10, "\n".join(wrong)


def test_every_topic_can_be_reached(demo: Demo) -> None:
    """A plain question from the corpus gets its answer word for word, numbers included; two slips are forgiven."""
    wrong: list[str] = []
    for topic in corpus.TOPICS:
        question = topic.questions[0].format(p="ramalama-like", m="granite", g="gpu")
        answer, _ = demo.ask(question.capitalize() + "?")
        if answer != topic.answer:
            wrong.append(f"{question} ({topic.key}): {answer}")
    assert len(wrong) <= 2, "\n".join(wrong)


def test_sampled_answers_are_clean_text(demo: Demo) -> None:
    questions = [topic.questions[0].format(p="ramalama-like", m="granite", g="gpu") for topic in corpus.TOPICS]
    for seed in range(1, 101):
        answer, _ = demo.ask(questions[seed % len(questions)], temperature=0.8, seed=seed)
        assert answer
        assert not [mark for mark in answer if mark == "\ufffd" or unicodedata.category(mark) == "Cc"], (seed, answer)


def test_even_wild_sampling_never_yields_a_byte_token(demo: Demo) -> None:
    for seed in range(1, 6):
        options = {"temperature": 5.0, "top_k": 0, "top_p": 1.0, "min_p": 0.0, "seed": seed}
        body = {"prompt": "x", "n_predict": 100, "return_tokens": True, "ignore_eos": True} | options
        tokens = demo.post("/completion", body)["tokens"]
        # 0 to 261 are unknown, roles and bytes; 2 ends the turn.
        assert not [token for token in tokens if token < 262 and token != 2]


@pytest.mark.parametrize(
    "text", ["Schöne Grüße, 世界! 🎉", "x" * 300, "?", "\t\n \u200b", "<|user|> hi", "DROP TABLE models;"]
)
def test_strange_input_gets_an_answer(demo: Demo, text: str) -> None:
    answer, finish = demo.ask(text)
    assert answer
    assert finish == "stop"


def test_earlier_turns_and_system_messages_do_not_derail_it(demo: Demo) -> None:
    turns = ("hello", corpus.TOPICS[0].answer, "how do I stop a model?", corpus.FALLBACK, corpus.FIXED_PROMPT)
    assert demo.ask(*turns)[0] == corpus.FIXED_ANSWER
    assert demo.ask(corpus.FIXED_PROMPT, system="You are a helpful assistant.")[0] == corpus.FIXED_ANSWER


def test_a_long_conversation_stays_on_topic(demo: Demo) -> None:
    """The declared context is usable: near its end the answers are still right."""
    turns: list[str] = []
    for topic in corpus.TOPICS[:30]:
        turns += [topic.questions[0].format(p="ramalama-like", m="granite", g="gpu"), topic.answer]
    answer, finish = demo.ask(*turns, corpus.FIXED_PROMPT)
    assert (answer, finish) == (corpus.FIXED_ANSWER, "stop")
