"""The embedded server: its table of options, and the real thing with a model of a few kilobytes."""

from __future__ import annotations

import http.client
import json
import os
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import gguf
import numpy as np
import pytest
import xllamacpp
from hypothesis import given, settings
from hypothesis import strategies as st

from ramalama_like import embedded
from ramalama_like.runtimes.embedded import KNOWN, SUPPORTED, Item, find_unsupported, read

ROOT = Path(embedded.__file__).parents[1]
VALUE_SPELLINGS = sorted(spelling for spelling, spec in SUPPORTED.items() if spec.takes_value)
SWITCH_SPELLINGS = sorted(spelling for spelling, spec in SUPPORTED.items() if not spec.takes_value)

# Everything that a plan may contain.
PLANNED = """
--model -m --mmproj --chat-template-file --alias -a --host --port --ctx-size -c --temp --seed --threads -t
--threads-batch -ngl --n-gpu-layers -ncmoe --n-cpu-moe --cache-reuse --no-warmup --reasoning --no-webui --no-ui -n
--predict --model-draft -ngld --spec-type --spec-draft-n-max --spec-draft-n-min --spec-draft-p-min --log-file -v
--api-key-file --metrics --embedding --pooling --rerank --slots --no-slots --slot-save-path --parallel -np
--batch-size -b --ubatch-size -ub --flash-attn -fa --cache-type-k --cache-type-v --jinja --lora
--lora-scaled
"""


# --- the table ---


def test_every_option_that_a_plan_may_contain_is_in_the_table() -> None:
    assert [spelling for spelling in PLANNED.split() if spelling not in SUPPORTED] == []


def test_the_table_and_the_server_agree_on_what_can_be_done() -> None:
    assert {spec.name for spec in SUPPORTED.values()} == {*embedded.SETTERS, "log-file"}
    assert not KNOWN & SUPPORTED.keys()


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("", ()),
        ("-m a.gguf", (Item("-m", "model", "a.gguf"),)),
        ("--model=a=b.gguf", (Item("--model", "model", "a=b.gguf"),)),
        ("-n -1 --ctx_size 5", (Item("-n", "predict", "-1"), Item("--ctx-size", "ctx-size", "5"))),
        ("-m --port", (Item("-m", "model", "--port"),)),
        ("--no-webui -v", (Item("--no-webui", "no-ui"), Item("-v", "verbose"))),
        ("--metrics=1", (Item("--metrics", "metrics", "1", "value-unwanted"),)),
        ("--port", (Item("--port", "port", problem="value-missing"),)),
        (
            "--rpc host:1 -1 --port 3",
            (Item("--rpc", problem="unsupported"), Item("--port", "port", "3")),
        ),
        ("--foo=1 word", (Item("--foo", problem="unknown"),)),
        ("word -t 1", (Item("word", problem="unknown"), Item("-t", "threads", "1"))),
    ],
)
def test_reading(line: str, expected: tuple[Item, ...]) -> None:
    assert read(line.split()) == expected


def test_unsupported_options_are_named_once_and_in_order() -> None:
    line = "--device x -m a.gguf --rpc h:1 --foo --rpc h:2 -t 2 --tensor-split=1,2"
    assert find_unsupported(line.split()) == ("--device", "--rpc", "--foo", "--tensor-split")


@settings(deadline=None)
@given(st.lists(st.one_of(st.text(), st.sampled_from([*SUPPORTED, *KNOWN, "--", "-", "=", "--=", "-1"]))))
def test_any_words_can_be_read(words: list[str]) -> None:
    named = find_unsupported(words)
    assert len(set(named)) == len(named)
    assert bool(named) == any(item.problem in {"unsupported", "unknown"} for item in read(words))


@settings(deadline=None)
@given(st.lists(st.tuples(st.sampled_from(VALUE_SPELLINGS), st.text(), st.booleans())))
def test_options_with_a_value_take_any_value_in_both_forms(options: list[tuple[str, str, bool]]) -> None:
    words = [word for name, text, joined in options for word in ([f"{name}={text}"] if joined else [name, text])]
    assert read(words) == tuple(Item(name, SUPPORTED[name].name, text) for name, text, _ in options)
    assert find_unsupported(words) == ()


@settings(deadline=None)
@given(st.lists(st.sampled_from(SWITCH_SPELLINGS)))
def test_switches_stand_alone(words: list[str]) -> None:
    assert read(words) == tuple(Item(word, SUPPORTED[word].name) for word in words)
    assert find_unsupported(words) == ()


def test_the_table_loads_nothing_heavy() -> None:
    code = (
        "import sys; before = set(sys.modules)\n"
        "import ramalama_like.runtimes.embedded\n"
        "print(*sorted(set(sys.modules) - before))"
    )
    loaded = subprocess.run(
        [sys.executable, "-S", "-c", code], cwd=ROOT, capture_output=True, text=True, check=True
    ).stdout.split()
    own = {"ramalama_like", "ramalama_like.runtimes", "ramalama_like.runtimes.embedded", "ramalama_like.value"}
    assert set(loaded) - own == {"__future__"}


# --- what the options become ---


def filled(line: str) -> Any:
    params = xllamacpp.CommonParams()
    items = read(line.split())
    embedded.check(items)
    embedded.fill(params, items)
    return params


def test_values_reach_the_library() -> None:
    params = filled(
        "-m m.gguf --mmproj p.gguf -a one,two --host 127.0.0.1,::1 --port 81 -c 4096 --temp -1 --seed 5 -t 3 -tb 2"
        " -ngl 7 -ncmoe 2 --cache-reuse 256 --no-warmup --reasoning off --no-webui -n 9 --model-draft d.gguf"
        " -ngld all --spec-type draft-simple --spec-draft-n-max 4 --spec-draft-n-min 1 --spec-draft-p-min 0.5 -v"
        " --metrics --rerank --no-slots -np 3 -b 256 -ub 128 -fa on -ctk q8_0 -ctv bf16 --lora a.gguf,b.gguf"
    )
    draft = params.speculative.draft
    experts = r"ffn_(up|down|gate|gate_up)_(ch|)exps=CPU"
    assert (params.model.path, params.mmproj.path, params.model_alias) == ("m.gguf", "p.gguf", {"one", "two"})
    assert (params.hostnames, params.port, params.n_ctx, params.n_predict) == (["127.0.0.1", "::1"], 81, 4096, 9)
    assert (params.sampling.temp, params.sampling.seed, params.sampling.user_sampling_config) == (0, 5, 64)
    assert (params.cpuparams.n_threads, params.cpuparams_batch.n_threads) == (3, 2)
    assert (draft.cpuparams.n_threads, draft.cpuparams_batch.n_threads) == (3, 2)
    assert (params.n_gpu_layers, draft.n_gpu_layers, draft.mparams.path) == (7, -2, "d.gguf")
    assert params.tensor_buft_overrides == rf"blk\.0\.{experts},blk\.1\.{experts}"
    assert (params.n_cache_reuse, params.warmup, params.ui, params.verbosity) == (256, False, False, 2**31 - 1)
    assert (params.enable_reasoning, params.default_template_kwargs) == (
        0,
        {"enable_thinking": "false", "preserve_reasoning": "true"},
    )
    assert [kind.name.removeprefix("COMMON_SPECULATIVE_TYPE_") for kind in params.speculative.types] == [
        "NONE",
        "DRAFT_SIMPLE",
    ]
    assert (draft.n_max, draft.n_min, draft.p_min) == (4, 1, 0.5)
    assert (params.endpoint_metrics, params.embedding, params.endpoint_slots) == (True, True, False)
    assert params.pooling_type == xllamacpp.llama_pooling_type.LLAMA_POOLING_TYPE_RANK
    assert (params.n_parallel, params.n_batch, params.n_ubatch) == (3, 256, 128)
    assert params.flash_attn_type == xllamacpp.llama_flash_attn_type.LLAMA_FLASH_ATTN_TYPE_ENABLED
    assert params.cache_type_k == xllamacpp.ggml_type.GGML_TYPE_Q8_0
    assert params.cache_type_v == xllamacpp.ggml_type.GGML_TYPE_BF16
    assert [(adapter.path, adapter.scale) for adapter in params.lora_adapters] == [("a.gguf", 1), ("b.gguf", 1)]


def test_defaults_are_those_of_llama_server() -> None:
    params = filled("-m m.gguf")
    assert (params.port, params.n_parallel, params.hostnames) == (8080, -1, ["127.0.0.1"])
    assert 1 <= params.cpuparams.n_threads == params.cpuparams_batch.n_threads <= (os.cpu_count() or 1)


def test_files_of_templates_and_keys(tmp_path: Path) -> None:
    (tmp_path / "keys").write_text("# mine\none\n\ntwo\n")
    (tmp_path / "chat").write_text("{{ messages }}\n")
    params = filled(f"--api-key-file {tmp_path}/keys --chat-template-file {tmp_path}/chat --slot-save-path {tmp_path}")
    assert params.api_keys == ["one", "two"]
    assert params.chat_template == "{{ messages }}\n"
    assert params.slot_save_path == f"{tmp_path}/"


@pytest.mark.parametrize(
    ("line", "message", "code"),
    [
        ("--rpc host:1", "the embedded server cannot honour --rpc", 22),
        ("--foo", "unknown argument: --foo", 2),
        ("-c", "-c needs a value", 2),
        ("--metrics=1", "--metrics takes no value", 2),
        ("-c 4x", "invalid value for -c: 4x", 22),
        ("--port 70000", "invalid value for --port: 70000", 22),
        ("--temp nan", "invalid value for --temp: nan", 22),
        ("-ngl some", "invalid value for -ngl: some", 22),
        ("-np 0", "invalid value for -np: 0", 22),
        ("--spec-type bogus", "invalid value for --spec-type: bogus", 22),
        ("--pooling bogus", "invalid value for --pooling: bogus", 22),
        ("-ctk i8", "invalid value for -ctk: i8", 22),
        ("--log-file x", "the embedded server cannot honour --log-file", 22),
        ("--api-key-file /dev/null", "--api-key-file: /dev/null: no key in this file", 22),
        ("--chat-template-file /none", "--chat-template-file: /none: No such file or directory", 22),
        ("--slot-save-path /none", "--slot-save-path: /none: Not a directory", 22),
    ],
)
def test_what_cannot_be_honoured_is_refused_by_name(line: str, message: str, code: int) -> None:
    with pytest.raises(embedded.Refusal) as caught:
        filled(line)
    assert (str(caught.value), caught.value.exit_code) == (message, code)


@settings(deadline=None)
@given(st.sampled_from(VALUE_SPELLINGS), st.text(max_size=8).filter(lambda text: not set(text) & set("/.\0")))
def test_no_value_ends_in_anything_but_a_refusal(spelling: str, text: str) -> None:
    params = xllamacpp.CommonParams()
    try:
        embedded.fill(params, read([spelling, text]))
    except embedded.Refusal as refusal:
        assert spelling in str(refusal)


# --- the server itself ---


def write_model(path: Path) -> None:
    """A llama of two layers with random weights, whose tokens are all printable."""
    width, layers = 64, 2
    tokens = ["<s>", "</s>", *map(chr, range(33, 127)), "Ġ", "Ċ", "th"]
    control, normal = gguf.TokenType.CONTROL, gguf.TokenType.NORMAL
    writer = gguf.GGUFWriter(path, "llama")
    writer.add_context_length(4096)
    writer.add_embedding_length(width)
    writer.add_block_count(layers)
    writer.add_feed_forward_length(width)
    writer.add_head_count(4)
    writer.add_head_count_kv(4)
    writer.add_layer_norm_rms_eps(1e-5)
    writer.add_vocab_size(len(tokens))
    writer.add_rope_dimension_count(width // 4)
    writer.add_tokenizer_model("gpt2")
    writer.add_tokenizer_pre("gpt-2")
    writer.add_token_list(tokens)
    writer.add_token_types([control, control] + [normal] * (len(tokens) - 2))
    writer.add_token_merges(["t h"])
    writer.add_bos_token_id(0)
    writer.add_eos_token_id(1)
    writer.add_chat_template("{% for m in messages %}{{ m.role }}: {{ m.content }}\n{% endfor %}assistant:")
    random = np.random.default_rng(1)
    shapes = {"token_embd": (len(tokens), width), "output": (len(tokens), width), "output_norm": (width,)}
    for layer in range(layers):
        square = ("attn_q", "attn_k", "attn_v", "attn_output", "ffn_gate", "ffn_up", "ffn_down")
        shapes |= {f"blk.{layer}.{name}": (width, width) for name in square}
        shapes |= {f"blk.{layer}.{name}": (width,) for name in ("attn_norm", "ffn_norm")}
    for name, shape in shapes.items():
        weights = random.standard_normal(shape) * 0.1 if len(shape) > 1 else np.ones(shape)
        writer.add_tensor(f"{name}.weight", weights.astype(np.float32))
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("model") / "tiny.gguf"
    write_model(path)
    return path


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


class UnixConnection(http.client.HTTPConnection):
    def connect(self) -> None:
        self.sock = socket.socket(socket.AF_UNIX)
        self.sock.connect(self.host)


class Running:
    """A started server; its stderr goes to a file."""

    def __init__(self, log: Path, *arguments: str, environment: dict[str, str] | None = None) -> None:
        self.log = log
        command = [sys.executable, "-m", "ramalama_like.embedded", *arguments]
        with log.open("wb") as stderr:
            self.process = subprocess.Popen(
                command, cwd=ROOT, stderr=stderr, stdin=subprocess.DEVNULL, env=os.environ | (environment or {})
            )
        self.address = arguments[arguments.index("--host") + 1] if "--host" in arguments else "127.0.0.1"
        self.port = int(arguments[arguments.index("--port") + 1]) if "--port" in arguments else 8080

    def ask(self, path: str, body: object = None, key: str = "") -> tuple[int, Any]:
        connect = UnixConnection if self.address.endswith(".sock") else http.client.HTTPConnection
        connection = connect(self.address, self.port, timeout=60)
        headers = {"Content-Type": "application/json"} | ({"Authorization": f"Bearer {key}"} if key else {})
        try:
            connection.request("GET" if body is None else "POST", path, json.dumps(body) if body else None, headers)
            answer = connection.getresponse()
            text = answer.read()
            return answer.status, json.loads(text) if text.startswith((b"{", b"[")) else text.decode()
        finally:
            connection.close()

    def health(self) -> int:
        try:
            return self.ask("/health")[0]
        except OSError:
            return 0

    def wait_until_healthy(self) -> None:
        def healthy() -> bool:
            assert self.process.poll() is None, self.log.read_text()
            return self.health() == 200

        eventually(healthy)

    def stop(self, number: int = signal.SIGTERM) -> float:
        """Send a signal, and return the seconds until the process has ended."""
        started = time.monotonic()
        self.process.send_signal(number)
        self.process.wait(timeout=60)
        return time.monotonic() - started

    def children(self) -> list[int]:
        listed = Path(f"/proc/{self.process.pid}/task/{self.process.pid}/children").read_text()
        return [int(pid) for pid in listed.split()]


def eventually(condition: Callable[[], bool], seconds: float = 60) -> None:
    pause, deadline = 0.01, time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(pause)
        pause = min(pause * 1.5, 0.2)


@pytest.fixture
def start(tmp_path: Path, model: Path) -> Iterator[Callable[..., Running]]:
    started: list[Running] = []

    def begin(*arguments: str, **options: Any) -> Running:
        log = tmp_path / f"stderr-{len(started)}"
        started.append(Running(log, "--model", str(model), "--threads", "2", *arguments, **options))
        return started[-1]

    yield begin
    for running in started:
        running.process.kill()
        running.process.wait()


def test_it_answers_like_llama_server(start: Callable[..., Running], tmp_path: Path) -> None:
    log = tmp_path / "server.log"
    arguments = ("--port", str(free_port()), "--alias", "tiny", "-c", "512", "-lv", "4", "--log-file", str(log))
    server = start(*arguments, "--metrics", "--temp", "0")
    server.wait_until_healthy()
    assert server.ask("/v1/models")[1]["data"][0]["id"] == "tiny"
    status, props = server.ask("/props")
    assert (status, props["default_generation_settings"]["n_ctx"]) == (200, 512)
    assert props["default_generation_settings"]["params"]["temperature"] == 0
    status, answer = server.ask(
        "/v1/chat/completions", {"messages": [{"role": "user", "content": "Hello"}], "max_tokens": 8}
    )
    assert (status, answer["usage"]["completion_tokens"]) == (200, 8)
    assert "llamacpp:tokens_predicted_total 8" in server.ask("/metrics")[1]
    assert "CPU KV buffer size" in server.log.read_text()
    eventually(lambda: "CPU KV buffer size" in log.read_text())
    assert server.stop() < 1
    assert server.process.returncode == 0


def test_it_listens_on_a_socket_and_takes_it_away(start: Callable[..., Running], tmp_path: Path) -> None:
    path = tmp_path / "s.sock"
    with socket.socket(socket.AF_UNIX) as dead:
        dead.bind(str(path))  # as a killed server leaves it
    server = start("--host", str(path))
    server.wait_until_healthy()
    assert server.ask("/v1/models")[0] == 200

    second = start("--host", str(path))
    assert second.process.wait(timeout=60) == 5
    assert last_line(second) == f"error: cannot listen on {path}: the address is already in use"
    assert server.health() == 200

    server.stop()
    assert (server.process.returncode, path.exists()) == (0, False)


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_ends_it_during_an_answer(start: Callable[..., Running], number: int) -> None:
    server = start("--port", str(free_port()))
    server.wait_until_healthy()
    answers: list[object] = []

    def ask() -> None:
        try:
            answers.append(server.ask("/completion", {"prompt": "Hello", "n_predict": 4000, "ignore_eos": True}))
        except (OSError, http.client.HTTPException) as fault:
            answers.append(fault)

    asking = threading.Thread(target=ask)
    asking.start()
    eventually(lambda: any(slot["is_processing"] for slot in server.ask("/slots")[1]))
    assert server.stop(number) < 1
    assert server.process.returncode == 0
    asking.join(timeout=60)
    assert isinstance(answers[0], Exception)


def test_a_signal_ends_it_at_any_time(start: Callable[..., Running]) -> None:
    server = start("--port", str(free_port()))
    eventually(lambda: server.health() in {200, 503})
    assert server.stop() < 1
    assert server.process.returncode == 0


@pytest.mark.skipif(sys.platform != "linux", reason="needs /proc")
def test_it_leaves_nothing_behind_when_killed(start: Callable[..., Running]) -> None:
    server = start("--port", str(free_port()))
    server.wait_until_healthy()
    assert len(server.children()) == 1
    server.stop(signal.SIGKILL)
    eventually(lambda: server.health() == 0)


@pytest.mark.skipif(sys.platform != "linux", reason="needs /proc")
def test_a_crash_is_told(start: Callable[..., Running]) -> None:
    server = start("--port", str(free_port()))
    server.wait_until_healthy()
    os.kill(server.children()[0], signal.SIGSEGV)
    assert server.process.wait(timeout=60) == 128 + signal.SIGSEGV
    assert last_line(server) == "error: the embedded server has crashed (SIGSEGV)"


def last_line(server: Running) -> str:
    return server.log.read_text().splitlines()[-1]


def test_a_taken_port_is_an_error(start: Callable[..., Running]) -> None:
    with socket.socket() as other:
        other.bind(("127.0.0.1", 0))
        other.listen()
        port = other.getsockname()[1]
        server = start("--port", str(port))
        assert server.process.wait(timeout=60) == 5
    assert server.log.read_text() == f"error: cannot listen on 127.0.0.1:{port}: the address is already in use\n"


def test_a_model_that_cannot_be_loaded_is_an_error(start: Callable[..., Running], model: Path, tmp_path: Path) -> None:
    absent, other, short = tmp_path / "absent.gguf", tmp_path / "other.gguf", tmp_path / "short.gguf"
    other.write_text("not a model")
    short.write_bytes(model.read_bytes()[:-50_000])
    expected = {absent: ": No such file or directory", other: ": not a GGUF file", short: ""}
    for path, reason in expected.items():
        server = start("--port", str(free_port()), "--model", str(path))
        assert server.process.wait(timeout=60) == 22
        assert last_line(server) == f"error: the model cannot be loaded: {path}{reason}"


def test_keys_are_asked_for(start: Callable[..., Running], tmp_path: Path) -> None:
    (tmp_path / "keys").write_text("secret\n")
    server = start(
        *("--port", str(free_port()), "--api-key-file", str(tmp_path / "keys")),
        environment={"LLAMA_API_KEY": "other", "LLAMA_ARG_CTX_SIZE": "1"},
    )
    server.wait_until_healthy()
    assert [server.ask("/props", key=key)[0] for key in ("", "wrong", "secret", "other")] == [401, 401, 200, 200]
    assert "warning: the embedded server does not read LLAMA_ARG_CTX_SIZE\n" in server.log.read_text()
    assert "secret" not in server.log.read_text()
