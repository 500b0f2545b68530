"""The Python API against the embedded server with the demo model: everything that it wraps, and how it ends."""

from __future__ import annotations

import asyncio
import logging
import os
import signal
import socket
import subprocess
import sys
import threading
import time
from base64 import b64encode
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import openai
import pytest
from api_checks import (
    GRAMMAR,
    PROMPT,
    SCHEMA,
    check_asked_in_many_ways,
    check_many_streams,
    fits_grammar,
    fits_schema,
    write_adapter,
)
from demo_model.corpus import FIXED_ANSWER, FIXED_PROMPT
from harness import ROOT, run_cli
from test_conversation import PNG, Server, said

import ramalama_like
from ramalama_like import AsyncModel, Model, ToolCall, pipeline
from ramalama_like.api.bodies import chat_body
from ramalama_like.api.start_options import StartOptions, start_options
from ramalama_like.chat.client import ServerGone, ServerSaid
from ramalama_like.errors import AppError, ChildFailed, UsageError, ValueProblem


@pytest.fixture(scope="module")
def states(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("states")


@pytest.fixture(scope="module")
def adapter(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("adapter") / "lora.gguf"
    write_adapter(path)
    return path


@pytest.fixture(scope="module")
def model(states: Path, adapter: Path) -> Iterator[Model]:
    """One server for all tests that only ask."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("RAMALAMA_CONFIG", os.devnull)
        with Model("demo", engine="none", timeout=120, threads=1, slot_save_path=states, lora=f"{adapter}:0",
                   runtime_args=["--parallel", "2"]) as started:  # fmt: skip
            yield started


# What can be asked


def test_a_chat_as_a_whole_and_in_pieces(model: Model) -> None:
    answer = model.chat(FIXED_PROMPT, temperature=0)
    assert (answer.text, str(answer), answer.reason, answer.model) == (FIXED_ANSWER, FIXED_ANSWER, "stop", "demo")
    assert answer.usage.total_tokens == (answer.usage.prompt_tokens or 0) + (answer.usage.completion_tokens or 0) > 20
    assert answer.timings["predicted_n"] == answer.usage.completion_tokens
    pieces = list(model.chat(FIXED_PROMPT, temperature=0, stream=True))
    assert "".join(piece.text for piece in pieces) == FIXED_ANSWER and len(pieces) > 10
    assert [piece.ending is not None for piece in pieces] == [False] * (len(pieces) - 1) + [True]


def test_everything_that_is_wrapped(model: Model, states: Path) -> None:
    found = check_asked_in_many_ways(model, states)
    assert found["answer"] == FIXED_ANSWER


def test_a_conversation_goes_on(model: Model) -> None:
    first = model.chat(FIXED_PROMPT, temperature=0, max_tokens=4)
    talk = [{"role": "user", "content": FIXED_PROMPT}, first.message, {"role": "user", "content": "And then?"}]
    second = model.chat(talk, temperature=0, max_tokens=4)
    assert (second.usage.prompt_tokens or 0) > (first.usage.prompt_tokens or 0)


@pytest.mark.parametrize("kind", ["schema", "grammar"])
def test_a_hundred_constrained_answers_all_fit(model: Model, kind: str) -> None:
    wrong = []
    for seed in range(100):
        if kind == "schema":
            answer = model.chat(PROMPT, json_schema=SCHEMA, seed=seed, temperature=1.5)
            good = fits_schema(answer.json())
        else:
            answer = model.chat(PROMPT, grammar=GRAMMAR, seed=seed, temperature=1.5)
            good = fits_grammar(answer.text)
        if not good:
            wrong.append(answer.text)
    assert wrong == []


def test_64_streams_at_once_lose_nothing(model: Model) -> None:
    assert check_many_streams(model, 64) == []


def test_a_closed_stream_stops_the_server(model: Model) -> None:
    stream = model.complete("a", stream=True, max_tokens=100000, extra={"ignore_eos": True})
    first = next(stream)
    stream.close()
    assert next(stream, None) is None
    assert stream.answer.text == first.text
    deadline = time.monotonic() + 30
    while any(slot["is_processing"] for slot in model._native("GET", "/slots")):
        assert time.monotonic() < deadline
        time.sleep(0.01)


def test_the_client_of_openai_works_unchanged(model: Model) -> None:
    with openai.OpenAI(base_url=model.base_url, api_key="none") as client:
        messages: Any = [{"role": "user", "content": FIXED_PROMPT}]
        whole = client.chat.completions.create(model="demo", messages=messages, temperature=0)
        assert whole.choices[0].message.content == FIXED_ANSWER
        pieces = client.chat.completions.create(model="demo", messages=messages, temperature=0, stream=True)
        assert "".join(piece.choices[0].delta.content or "" for piece in pieces if piece.choices) == FIXED_ANSWER
        done = client.completions.create(model="demo", prompt=PROMPT, temperature=0, max_tokens=8)
        assert done.choices[0].text == model.complete(PROMPT, temperature=0, max_tokens=8).text
        assert [each.id for each in client.models.list()] == ["demo"]


def test_tools_are_offered_and_their_calls_read() -> None:
    server = Server()
    call = {"index": 0, "id": "c1", "function": {"name": "weather", "arguments": '{"town": '}}
    rest = {"index": 0, "function": {"arguments": '"Rome"}'}}
    ending = {"choices": [{"delta": {}, "finish_reason": "tool_calls"}]}
    server.answer = lambda _: [*({"choices": [{"delta": {"tool_calls": [each]}}]} for each in (call, rest)), ending]
    tool = {"type": "function", "function": {"name": "weather", "parameters": {"type": "object"}}}
    answer = Model.attach(server.url, model="one").chat("Weather?", tools=[tool], tool_choice="auto")
    server.answer = lambda body: said(body["messages"][-1]["content"])
    done = {"role": "tool", "tool_call_id": "c1", "content": "sunny"}
    last = Model.attach(server.url).chat([{"role": "user", "content": "Weather?"}, answer.message, done])
    server.http.shutdown()
    server.http.server_close()
    assert (answer.text, answer.reason, answer.calls) == (
        "", "tool_calls", (ToolCall("c1", "weather", '{"town": "Rome"}'),)
    )  # fmt: skip
    assert (server.bodies[0]["tools"], server.bodies[0]["tool_choice"], server.bodies[0]["model"]) == (
        [tool], "auto", "one"
    )  # fmt: skip
    assert server.bodies[1]["messages"][1] == {
        "role": "assistant", "content": "", "tool_calls": [
            {"id": "c1", "type": "function", "function": {"name": "weather", "arguments": '{"town": "Rome"}'}}]
    }  # fmt: skip
    assert (last.text, last.usage.total_tokens) == ("sunny", 12)


@pytest.mark.parametrize("image", ["bytes", "path", "address"])
def test_images_go_with_the_last_message(image: str, tmp_path: Path) -> None:
    (tmp_path / "p.png").write_bytes(PNG)
    given: Any = {"bytes": PNG, "path": tmp_path / "p.png", "address": "https://example.org/p.png"}[image]
    url = "https://example.org/p.png" if image == "address" else f"data:image/png;base64,{b64encode(PNG).decode()}"
    parts = [{"type": "image_url", "image_url": {"url": url}}, {"type": "text", "text": "What?"}]
    assert chat_body("What?", "", [given], None, None, None, {}) == {"messages": [{"role": "user", "content": parts}]}
    with pytest.raises(ValueProblem, match="is no image of a kind that is known"):
        chat_body("What?", "", [b"text"], None, None, None, {})


@pytest.mark.parametrize("wrong", [{"grammar": "x", "json_schema": {}}, {"temprature": 1}])
def test_wrong_parameters_are_refused_before_anything_is_sent(wrong: Any) -> None:
    with pytest.raises(ValueProblem):
        chat_body("hi", "", (), None, None, None, wrong)
    with pytest.raises(ValueProblem, match="messages must be"):
        chat_body([], "", (), None, None, None, {})


def test_the_same_names_for_asyncio(model: Model) -> None:
    async def work() -> None:
        twin = AsyncModel.attach(model.base_url)
        stream = await twin.chat(FIXED_PROMPT, temperature=0, stream=True)
        assert "".join([piece.text async for piece in stream]) == FIXED_ANSWER
        answers = await asyncio.gather(*(twin.chat(FIXED_PROMPT, temperature=0) for _ in range(8)))
        assert {answer.text for answer in answers} == {FIXED_ANSWER}
        assert await twin.tokenize(PROMPT) == model.tokenize(PROMPT)
        with pytest.raises(ServerSaid):
            await twin.chat("hi", grammar="no grammar")
        endless = twin.complete("a", max_tokens=100000, extra={"ignore_eos": True})
        task = asyncio.ensure_future(endless)
        await asyncio.sleep(0)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task

    asyncio.run(work())
    both = {name for name in vars(Model) if not name.startswith("_")}
    assert {name for name in vars(AsyncModel) if not name.startswith("_")} == both


def test_an_async_model_has_its_own_server() -> None:
    async def work() -> str:
        async with AsyncModel("demo", engine="none", timeout=120, threads=1, port=0) as own:
            return (await own.chat(FIXED_PROMPT, temperature=0)).text

    assert asyncio.run(work()) == FIXED_ANSWER


# Embeddings, rankings, templates: servers of other kinds


def test_vectors_and_a_template_of_ones_own(tmp_path: Path) -> None:
    with Model(
        "demo", engine="none", timeout=120, threads=1, embedding=True, runtime_args="--pooling mean"
    ) as embedder:
        one, several = embedder.embed("a text"), embedder.embed(["a text", "another"])
        raw = embedder.embed("a text", normalize=False)
    assert [round(sum(x * x for x in vector), 4) for vector in several] == [1.0, 1.0]
    assert max(abs(a - b) for a, b in zip(one, several[0], strict=True)) < 1e-3
    assert round(sum(x * x for x in raw), 4) != 1.0
    template = tmp_path / "template.jinja"
    template.write_text("{% for m in messages %}<<{{ m.content }}>>{% endfor %}")
    with Model("demo", engine="none", timeout=120, threads=1, chat_template=template) as other:
        assert other.apply_template("hello") == "<<hello>>"


def test_documents_are_ranked() -> None:
    documents = ["make demo", "podman runs containers", "a cat"]
    with Model("demo", engine="none", timeout=120, threads=1, rerank=True, runtime_args="--parallel 1") as ranker:
        ranked = ranker.rerank("containers", documents)
        best = ranker.rerank("containers", documents, top_n=1)
    assert sorted(each.index for each in ranked) == [0, 1, 2]
    assert [each.score for each in ranked] == sorted((each.score for each in ranked), reverse=True)
    assert [each.text for each in ranked] == [documents[each.index] for each in ranked]
    assert best[0].index == ranked[0].index


# Its life


def test_making_one_starts_nothing(fake_engine: Any, capfd: pytest.CaptureFixture[str]) -> None:
    recorder = fake_engine("podman-4.9")
    made = Model("demo", port=0, ctx_size=512)
    dry = run_cli("--dryrun", "run", "demo", "--host", "127.0.0.1", "--ctx-size", "512")
    assert [list(words) for words in made.commands] == [dry.out.splitlines()[0].replace("''", "").split()]
    assert recorder.take_runs() == []
    assert made.explain().startswith("engine: podman") and "step 2" not in made.explain()
    with pytest.raises(ValueProblem, match="the model is not running"):
        made.chat("hi")
    made.close()
    assert capfd.readouterr() == ("", "")


def test_without_a_port_there_is_no_address(fake_engine: Any) -> None:
    fake_engine("podman-4.9")
    made = Model("demo")
    assert made.plan.endpoint is not None and made.plan.endpoint.socket
    attached = Model.attach(made.plan.endpoint.url)
    with pytest.raises(ValueProblem, match="Unix socket") as caught:
        attached.base_url  # noqa: B018
    assert "port=0" in caught.value.hint


def test_a_dry_run_by_variable_starts_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("RAMALAMA_DRYRUN", "yes")
    with pytest.raises(ValueProblem, match=r"\$RAMALAMA_DRYRUN asks for a dry run"):
        Model("demo", engine="none").start()


def test_options_are_those_of_the_command_line() -> None:
    assert set(StartOptions.__annotations__) == set(start_options())
    with pytest.raises(UsageError, match="there is no option ctx_sise") as caught:
        Model("demo", ctx_sise=5)  # type: ignore[call-arg]
    assert caught.value.hint == "did you mean ctx_size?"
    with pytest.raises(UsageError, match="prefix is no option of Model"):
        Model("demo", prefix="> ")  # type: ignore[call-arg]
    with pytest.raises(ValueProblem, match="port: 70000 is not between 1 and 65535"):
        Model("demo", engine="none", port=70000)
    exact = Model("demo", engine="none", runtime_args=["--alias", "two words"], gpu=[], seed=7)
    assert exact.commands[0][-2:] == ("--alias", "two words")
    assert exact.commands[0][exact.commands[0].index("--seed") + 1] == "7"


def test_nothing_is_printed_and_signals_are_left_alone(
    capfd: pytest.CaptureFixture[str], caplog: pytest.LogCaptureFixture
) -> None:
    handlers = [signal.getsignal(number) for number in (signal.SIGTERM, signal.SIGHUP, signal.SIGINT)]
    with (
        caplog.at_level(logging.DEBUG, "ramalama_like"),
        Model("demo", engine="none", timeout=120, threads=1) as started,
    ):
        assert [signal.getsignal(number) for number in (signal.SIGTERM, signal.SIGHUP, signal.SIGINT)] == handlers
        assert started.models() == ["demo"]
    assert capfd.readouterr() == ("", "")
    told = [record.message for record in caplog.records if record.name == "ramalama_like"]
    assert told[0] == "Running without a container: no engine was asked for"
    assert any(record.name == "ramalama_like.server" for record in caplog.records)


def test_a_model_outlives_the_thread_that_started_it() -> None:
    made = Model("demo", engine="none", timeout=120, threads=1)
    starter = threading.Thread(target=made.start)
    starter.start()
    starter.join()
    with made:
        assert made.chat(FIXED_PROMPT, temperature=0).text == FIXED_ANSWER


def test_several_models_at_once_get_ports_of_their_own() -> None:
    made = [Model("demo", engine="none", timeout=120, threads=1) for _ in range(3)]
    starters = [threading.Thread(target=each.start) for each in made]
    for each in starters:
        each.start()
    for each in starters:
        each.join()
    try:
        assert len({each.base_url for each in made}) == 3
        assert {each.chat(FIXED_PROMPT, temperature=0).text for each in made} == {FIXED_ANSWER}
    finally:
        for one in made:
            one.close()


def test_a_port_that_is_taken_meanwhile_is_passed_over(monkeypatch: pytest.MonkeyPatch) -> None:
    free = pipeline.find_free_port
    with socket.socket() as busy:
        busy.bind(("127.0.0.1", 0))
        busy.listen()
        taken = busy.getsockname()[1]

        def blind(first: int, last: int, host: str, passed_over: tuple[int, ...] = ()) -> int | None:
            return free(first, last, host, passed_over) if taken in passed_over else taken

        monkeypatch.setattr(pipeline, "find_free_port", blind)
        with Model("demo", engine="none", timeout=120, threads=1) as made:
            assert made.base_url != f"http://127.0.0.1:{taken}/v1"
            assert made.chat(FIXED_PROMPT, temperature=0).text == FIXED_ANSWER


def server_of(model: Model) -> int:
    keeper = model._keeper
    assert keeper and keeper._server and keeper._server.child
    return keeper._server.child.pid


def is_there(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return True


def test_a_server_that_dies_during_an_answer_is_the_reason() -> None:
    made = Model("demo", engine="none", timeout=120, threads=1)
    with made:
        stream = made.complete("a", stream=True, max_tokens=100000, extra={"ignore_eos": True})
        next(stream)
        os.kill(server_of(made), signal.SIGKILL)
        with pytest.raises(ChildFailed, match="the server was killed"):
            for _ in stream:
                pass
    with pytest.raises(ValueProblem, match="the model is not running"):
        made.chat("hi")


def test_a_failed_start_leaves_nothing(tmp_path: Path) -> None:
    with pytest.raises(AppError) as caught:
        Model("demo", engine="none", timeout=120, threads=1, runtime_args=["--ctx-size", "bad"]).start()
    assert "invalid value" in caught.value.message
    made = Model("demo", engine="none", timeout=120, threads=1)
    made.start()
    pid = server_of(made)
    made.close()
    made.close()
    assert not is_there(pid)


@pytest.mark.parametrize("end", ["return", "kill", "raise"])
def test_no_server_outlives_the_program(end: str) -> None:
    code = (
        "import os, signal, sys\nfrom ramalama_like import Model\n"
        "model = Model('demo', engine='none', timeout=120, threads=1).start()\n"
        "print(model._keeper._server.child.pid, flush=True)\n"
    ) + {"return": "", "kill": "os.kill(os.getpid(), signal.SIGKILL)\n", "raise": "raise SystemExit(3)\n"}[end]
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=False,
                          env={**os.environ, "RAMALAMA_CONFIG": os.devnull}, timeout=120)  # fmt: skip
    assert (done.returncode, done.stderr) == ({"return": 0, "kill": -9, "raise": 3}[end], "")
    deadline = time.monotonic() + 30
    while is_there(int(done.stdout)):
        assert time.monotonic() < deadline
        time.sleep(0.01)


def test_an_attached_server_is_not_ours(model: Model) -> None:
    attached = Model.attach(model.base_url, wait_s=10)
    assert attached.chat(FIXED_PROMPT, temperature=0).text == FIXED_ANSWER
    attached.close()
    assert attached.models() == ["demo"]
    with pytest.raises(ValueProblem, match="not started here"):
        attached.plan  # noqa: B018
    with pytest.raises(ServerGone):
        Model.attach("unix:///nowhere/s.sock").chat("hi")


def test_the_command_line_does_not_load_it() -> None:
    code = (
        "import sys; from ramalama_like.main import run_argv; run_argv(['version']);"
        "print('ramalama_like.api' in sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=True)
    assert done.stdout.splitlines()[-1] == "False"
    with pytest.raises(AttributeError):
        ramalama_like.nothing  # type: ignore[attr-defined]  # noqa: B018
