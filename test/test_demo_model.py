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

# Questions that are not in the corpus in these words, with the topic that answers each of them. The first forty were
# written after the corpus was finished and never looked at while it was; for the others the corpus has near relatives.
HELD_OUT: tuple[tuple[str, str], ...] = (
    ("Please give me a quick description of ramalama-like", "what"),
    ("What's the big idea behind ramalama-like?", "why"),
    ("How does one install this program with pip?", "install"),
    ("Will the commands I know from ramalama keep working?", "dialect"),
    ("Is there any charge for using the software?", "license"),
    ("Are my chats uploaded somewhere?", "privacy"),
    ("Which Linux systems are supported?", "platforms"),
    ("How can I start gemma and talk to it?", "run"),
    ("I want an OpenAI server for phi, what is the command?", "serve"),
    ("In what way do serve and run differ?", "run-vs-serve"),
    ("How can I see how fast qwen is on my machine?", "bench"),
    ("what is the command for stopping a server", "stop"),
    ("Can you show me where the server logs are?", "logs"),
    ("How do I see which servers are running?", "containers"),
    ("How can I list the models on my disk?", "list"),
    ("I'd like to delete mistral", "rm"),
    ("I only want to download a model, not run it", "pull"),
    ("It fails. How can I check my system?", "doctor"),
    ("How do I make sure that my GPU is used?", "smoke"),
    ("What does a dry run do?", "dryrun"),
    ("Is a dry run really the same as the real run?", "dryrun-trust"),
    ("Will a dry run create any containers or files?", "dryrun-effects"),
    ("How does ramalama-like pick the image?", "image-choice"),
    ("How do I make it run a custom container image?", "image-override"),
    ("Tell me which backends I can choose", "backends"),
    ("Can it run with just a CPU and no GPU?", "cpu"),
    ("I have an AMD graphics card, what now?", "amd"),
    ("Can I use my GeForce RTX?", "nvidia"),
    ("Is it safe to run models I don't trust?", "isolation"),
    ("Can the server in the container go online?", "no-network"),
    ("Should I install podman or docker as the engine?", "engines"),
    ("Is it possible to go without containers?", "nocontainer"),
    ("Can I use ramalama-like if I am not root?", "rootless"),
    ("Where do I write down my default settings?", "config"),
    ("And who are you, little model?", "who"),
    ("Who discovered penicillin?", "fallback"),
    ("How do I get red wine out of a carpet?", "fallback"),
    ("Tell me the plot of Romeo and Juliet", "fallback"),
    ("Which bus goes to the airport?", "fallback"),
    ("What is 18 times 6?", "fallback"),
    ("Can you summarise what ramalama-like does?", "what"),
    ("What was the reason to build ramalama-like?", "why"),
    ("Is there an easy way to install ramalama-like?", "install"),
    ("Do ramalama commands work here as well?", "dialect"),
    ("Is this open source software?", "license"),
    ("Does my data stay on this machine?", "privacy"),
    ("Do you support Debian and Fedora?", "platforms"),
    ("I'd like to run tinyllama, how?", "run"),
    ("How can other applications use my model over an API?", "serve"),
    ("Is it better to use run or serve?", "run-vs-serve"),
    ("Give me the speed of my model in tokens per second", "bench"),
    ("How do I shut the server down again?", "stop"),
    ("Where can I see the log output?", "logs"),
    ("List the containers that are running now", "containers"),
    ("Which models have I already downloaded?", "list"),
    ("How can I delete a model from my disk?", "rm"),
    ("How can I download a model in advance?", "pull"),
    ("ramalama-like doesn't work on my machine", "doctor"),
    ("Is my GPU actually being used?", "smoke"),
    ("What's a dry run?", "dryrun"),
    ("Can a dry run lie to me?", "dryrun-trust"),
    ("Is anything changed by a dry run?", "dryrun-effects"),
    ("How is the right container image chosen?", "image-choice"),
    ("Which image is used if I do not set one?", "image-default"),
    ("which gpu backends are there?", "backends"),
    ("Will it run on a computer without a GPU?", "cpu"),
    ("which backend for my amd graphics card?", "amd"),
    ("What security does the container give me?", "isolation"),
    ("Is the container allowed to use the network?", "no-network"),
    ("Does it need Docker, or is Podman fine?", "engines"),
    ("Do I have to be root to use it?", "rootless"),
    ("How do I put settings into a file?", "config"),
    ("Which environment variables can I set?", "variables"),
    ("Hello demo model, what are you?", "who"),
    ("Many thanks for your answer!", "thanks"),
    ("What is the tallest mountain in Peru?", "fallback"),
    ("How do I knit a scarf?", "fallback"),
    ("Who directed the movie Titanic?", "fallback"),
    ("Recommend a good restaurant in Vienna", "fallback"),
    ("What is 45 divided by 9?", "fallback"),
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
        params.cpuparams.n_threads = 1  # so small a model only waits for more of them
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
