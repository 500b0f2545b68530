"""A llama-server made of a Python wheel: ``python -m ramalama_like.embedded [llama-server arguments]``.

It takes llama-server's own arguments and answers the same HTTP endpoints at the same address, a Unix socket too, so
that the rest of the program need not know which of the two it started. An option that it cannot honour is refused by
name, before anything is loaded; ``runtimes.embedded`` holds the table of those it can.

Exit codes: 0 after SIGTERM or SIGINT, at any time; 2 for a command line that cannot be understood; 5 for an address
that cannot be listened on or a missing library; 22 for an option or value that cannot be honoured and for a model
that cannot be loaded; 128 and the number of the signal when the library crashes. The reason is the last line on
stderr, where llama.cpp's log goes too.
"""

from __future__ import annotations

import contextlib
import ctypes
import errno
import json
import os
import signal
import socket
import stat
import sys
from typing import TYPE_CHECKING, Any, Final, NoReturn

from ramalama_like.runtimes.embedded import EXIT_FAILED, EXIT_OS, EXIT_USAGE, EXIT_VALUE, Item, read

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    Setter = Callable[[Any, str], None]

_STOPPING: Final = frozenset({signal.SIGTERM, signal.SIGINT})
_WATCHED: Final = _STOPPING | {signal.SIGCHLD}
_PR_SET_PDEATHSIG: Final = 1  # <linux/prctl.h>
_INT_MAX: Final = 2**31 - 1
_ON: Final = frozenset({"on", "enabled", "true", "1"})
_OFF: Final = frozenset({"off", "disabled", "false", "0"})
_AUTO: Final = frozenset({"auto", "-1"})
# Those that llama-server allows; the library has types that no KV cache can use.
_CACHE_TYPES: Final = frozenset({"f32", "f16", "bf16", "q8_0", "q4_0", "q4_1", "iq4_nl", "q5_0", "q5_1"})
_LOAD_MODES: Final = {
    "auto": "AUTO",
    "none": "NONE",
    "mmap": "MMAP",
    "mlock": "MLOCK",
    "mmap+mlock": "MMAP_MLOCK",
    "dio": "DIRECT_IO",
}
_EXPERTS: Final = r"ffn_(up|down|gate|gate_up)_(ch|)exps=CPU"
_LISTEN_FAULTS: Final = {errno.EADDRINUSE: "the address is already in use", errno.EACCES: "permission denied"}


class Refusal(Exception):
    """The reason why this server does not start: one line for people, and the exit code."""

    def __init__(self, message: str, exit_code: int) -> None:
        super().__init__(message)
        self.exit_code = exit_code


def main(argv: Sequence[str] | None = None) -> int:
    """Serve until SIGTERM or SIGINT. Returns the exit code.

    The library runs in a second process, and this one only waits for a signal or for its end. The library keeps the
    interpreter locked while it loads a model and while it closes down, so that it could neither be stopped then with
    an orderly exit code, nor could it say a word when it crashes.
    """
    items = read(sys.argv[1:] if argv is None else argv)
    try:
        check(items)
    except Refusal as refusal:
        return _explain(refusal)
    sys.stderr.flush()
    # Blocked, so that sigwait sees each of them, however early. The handler is never called; it takes the place of
    # "ignore", which a shell sets for background jobs, and which would throw the signals away.
    for number in _WATCHED:
        signal.signal(number, lambda *_: None)
    signal.pthread_sigmask(signal.SIG_BLOCK, _WATCHED)
    supervisor = os.getpid()
    server = os.fork()
    if server == 0:
        os._exit(_child(items, supervisor))
    stopped = False
    while True:
        stopped = signal.sigwait(_WATCHED) in _STOPPING or stopped
        if stopped:
            # Not asked politely: an orderly end would wait for the longest answer in progress.
            os.kill(server, signal.SIGKILL)
            _, status = os.waitpid(server, 0)
        else:
            ended, status = os.waitpid(server, os.WNOHANG)
            if not ended:
                continue
        break
    _leave_no_socket(items)
    code = os.waitstatus_to_exitcode(status)
    # From a terminal the signal reaches both processes, and the other may be gone first.
    if stopped or -code in _STOPPING:
        return 0
    if code < 0:
        name = signal.Signals(-code).name if -code in set(signal.Signals) else f"signal {-code}"
        return _explain(Refusal(f"the embedded server has crashed ({name})", 128 - code))
    return code


def check(items: Sequence[Item]) -> None:
    """Raise the ``Refusal`` for the first option that cannot be used."""
    for item in items:
        match item.problem:
            case "unsupported":
                raise Refusal(f"the embedded server cannot honour {item.spelling}", EXIT_VALUE)
            case "unknown":
                raise Refusal(f"unknown argument: {item.spelling}", EXIT_USAGE)
            case "value-missing":
                raise Refusal(f"{item.spelling} needs a value", EXIT_USAGE)
            case "value-unwanted":
                raise Refusal(f"{item.spelling} takes no value", EXIT_USAGE)


def fill(params: Any, items: Sequence[Item], log: Callable[[str], None] | None = None) -> None:
    """Put options into the library's ``CommonParams``, which then hold what llama-server's own parser makes of them.

    ``log`` opens a log file; without it ``--log-file`` is refused. Raises ``Refusal`` for a value that cannot be
    used, naming the option.
    """
    # Where llama-server's defaults are not those of the library.
    params.port = 8080
    params.n_parallel = -1
    for item in items:
        try:
            if item.name == "log-file":
                if log is None:
                    raise Refusal(f"the embedded server cannot honour {item.spelling}", EXIT_VALUE)
                log(item.value)
            else:
                SETTERS[item.name](params, item.value)
        except (ValueError, OverflowError, KeyError):
            raise Refusal(f"invalid value for {item.spelling}: {item.value}", EXIT_VALUE) from None
        except OSError as fault:
            raise Refusal(f"{item.spelling}: {item.value}: {fault.strerror or fault}", EXIT_VALUE) from None
    params.default_template_kwargs = {"preserve_reasoning": "true"} | params.default_template_kwargs
    threads, batch = params.cpuparams, params.cpuparams_batch
    if threads.n_threads <= 0:
        threads.n_threads = _default_threads()
    if batch.n_threads <= 0:
        batch.n_threads = threads.n_threads
    params.speculative.draft.cpuparams.n_threads = threads.n_threads
    params.speculative.draft.cpuparams_batch.n_threads = batch.n_threads


def _explain(refusal: Refusal) -> int:
    sys.stderr.write(f"error: {refusal}\n")
    sys.stderr.flush()
    return refusal.exit_code


def _child(items: Sequence[Item], supervisor: int) -> int:
    """The life of the second process. Returns only with a failure, already explained."""
    _die_with(supervisor)
    for number in _WATCHED:
        signal.signal(number, signal.SIG_DFL)
    signal.pthread_sigmask(signal.SIG_UNBLOCK, _WATCHED)
    try:
        _serve(items)
    except Refusal as refusal:
        return _explain(refusal)
    except BaseException as fault:  # noqa: BLE001 - nothing may return into the supervisor's part of main
        return _explain(Refusal(f"the embedded server failed: {type(fault).__name__}: {fault}", EXIT_FAILED))


def _die_with(supervisor: int) -> None:
    """Ask the kernel to end this process when the supervisor is killed. macOS has no such request."""
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)
        if os.getppid() != supervisor:  # it was killed before the request was made
            os._exit(0)


def _serve(items: Sequence[Item]) -> NoReturn:
    try:
        import xllamacpp
    except ImportError as fault:
        raise Refusal(f"the embedded server needs the Python package xllamacpp: {fault}", EXIT_OS) from None
    params = xllamacpp.CommonParams()
    fill(params, items, _log_opener())
    if key := os.environ.get("LLAMA_API_KEY"):
        params.api_keys = [*key.split(","), *params.api_keys]
    for name in sorted(os.environ):
        if name.startswith("LLAMA_ARG_"):
            sys.stderr.write(f"warning: the embedded server does not read {name}\n")
    if any(item.name in {"gpu-layers", "gpu-layers-draft"} and item.value != "0" for item in items):
        _warn_without_gpu()
    _check_files(params)
    _check_addresses(params)
    sys.stderr.flush()
    try:
        server = xllamacpp.Server(params)
    except (RuntimeError, ValueError):
        _check_addresses(params)  # another process may have been faster
        raise Refusal(f"the model cannot be loaded: {params.model.path}", EXIT_VALUE) from None
    while server is not None:  # its threads do the work
        signal.pause()
    raise AssertionError


def _check_files(params: Any) -> None:
    if not params.model.path:
        raise Refusal("--model is needed", EXIT_USAGE)
    draft = params.speculative.draft.mparams
    for path in (params.model.path, params.mmproj.path, draft.path, *(lora.path for lora in params.lora_adapters)):
        if not path:
            continue
        try:
            with open(path, "rb") as file:
                magic = file.read(4)
        except OSError as fault:
            raise Refusal(f"the model cannot be loaded: {path}: {fault.strerror}", EXIT_VALUE) from None
        if magic != b"GGUF":
            raise Refusal(f"the model cannot be loaded: {path}: not a GGUF file", EXIT_VALUE)


def _leave_no_socket(items: Sequence[Item]) -> None:
    for item in items:
        if item.name == "host":
            for host in _list(item.value):
                if host.endswith(".sock"):
                    # Another server may have been there first: only what nobody listens on is removed.
                    with contextlib.suppress(OSError):
                        _free_socket(host)


def _check_addresses(params: Any) -> None:
    """Refuse an address that cannot be listened on; take away a socket that a dead server has left."""
    for host in params.hostnames:
        try:
            if host.endswith(".sock"):
                _free_socket(host)
                continue
            found = socket.getaddrinfo(host, params.port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)
            family, kind, protocol, _, address = found[0]
            with socket.socket(family, kind, protocol) as probe:
                probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
                probe.bind(address)
        except OSError as fault:
            where = host if host.endswith(".sock") else f"{host}:{params.port}"
            reason = _LISTEN_FAULTS.get(fault.errno or 0, fault.strerror or str(fault))
            raise Refusal(f"cannot listen on {where}: {reason}", EXIT_OS) from None


def _free_socket(path: str) -> None:
    try:
        if not stat.S_ISSOCK(os.lstat(path).st_mode):
            raise OSError(errno.EADDRINUSE, os.strerror(errno.EADDRINUSE))
        with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as probe:
            probe.connect(path)
    except FileNotFoundError:
        # The library would only say that it cannot bind.
        if not os.path.isdir(os.path.dirname(path) or "."):
            raise
    except ConnectionRefusedError:
        os.unlink(path)
    else:
        raise OSError(errno.EADDRINUSE, os.strerror(errno.EADDRINUSE))


def _native(name: str) -> Any:
    """A C function of the loaded library that its Python side does not offer; None where there is no such symbol."""
    import xllamacpp

    try:
        return getattr(ctypes.CDLL(xllamacpp.xllamacpp.__file__), name)
    except (AttributeError, OSError):
        return None


def _log_opener() -> Callable[[str], None] | None:
    main_log = _native("_Z15common_log_mainv")
    set_file = _native("_Z19common_log_set_fileP10common_logPKc")
    if main_log is None or set_file is None:
        return None
    main_log.restype = ctypes.c_void_p
    set_file.argtypes = [ctypes.c_void_p, ctypes.c_char_p]
    set_file.restype = None

    def open_log(path: str) -> None:
        with open(path, "ab"):  # the library would go on without a log
            pass
        set_file(main_log(), os.fsencode(path))

    return open_log


def _warn_without_gpu() -> None:
    supports = _native("llama_supports_gpu_offload")
    if supports is not None:
        supports.restype = ctypes.c_bool
        if not supports():
            sys.stderr.write("warning: no usable GPU found, --gpu-layers will be ignored\n")


def _default_threads() -> int:
    """As many as llama-server takes (the cores that compute well), but not more than this process may use."""
    try:
        allowed = len(os.sched_getaffinity(0))
    except AttributeError:  # macOS
        allowed = os.cpu_count() or 1
    cores = _native("_Z23common_cpu_get_num_mathv")
    return max(1, min(allowed, int(cores()))) if cores is not None else allowed


# Values, as llama-server reads them, but whole: "4x" is no number here.


def _integer(text: str, least: int = -_INT_MAX - 1, most: int = _INT_MAX) -> int:
    number = int(text)
    if not least <= number <= most:
        raise ValueError(text)
    return number


def _real(text: str) -> float:
    number = float(text)
    if not abs(number) < 1e38:  # also refuses "nan"
        raise ValueError(text)
    return number


def _tristate(text: str) -> int:
    """1 for on, 0 for off, -1 for auto."""
    if text in _ON:
        return 1
    if text in _OFF:
        return 0
    if text in _AUTO:
        return -1
    raise ValueError(text)


def _layers(text: str) -> int:
    return {"auto": -1, "all": -2}[text] if text.isalpha() else _integer(text)


def _threads(text: str) -> int:
    number = _integer(text)
    return number if number > 0 else os.cpu_count() or 1


def _list(text: str) -> list[str]:
    return [part for part in text.split(",") if part]


def _text_of(path: str) -> str:
    with open(path, encoding="utf-8") as file:
        return file.read()


def _enum(kind: str, prefix: str, name: str) -> Any:
    import xllamacpp

    return getattr(xllamacpp, kind)[f"{prefix}_{name}"]


def _cache_type(text: str) -> Any:
    if text not in _CACHE_TYPES:
        raise ValueError(text)
    return _enum("ggml_type", "GGML_TYPE", text.upper())


# One function for each option. ``_put`` covers those that only convert a value and store it.


def _put(path: str, convert: Callable[[str], Any]) -> Setter:
    *parents, field = path.split(".")

    def setter(params: Any, text: str) -> None:
        target = params
        for parent in parents:
            target = getattr(target, parent)
        setattr(target, field, convert(text))

    return setter


def _switch(path: str, state: Any) -> Setter:
    return _put(path, lambda _: state)


def _sampling(field: str, bit: str, convert: Callable[[str], Any]) -> Setter:
    """A sampling value that also counts as chosen by the user, so that the model's own recommendation yields."""

    def setter(params: Any, text: str) -> None:
        setattr(params.sampling, field, convert(text))
        chosen = _enum("common_params_sampling_config", "COMMON_PARAMS_SAMPLING_CONFIG", bit)
        params.sampling.user_sampling_config |= int(chosen)

    return setter


def _alias(params: Any, text: str) -> None:
    names = {name.strip() for name in _list(text)} - {""}
    if not names:
        raise ValueError(text)
    params.model_alias = params.model_alias | names


def _api_keys(params: Any, text: str) -> None:
    keys = _list(text)
    if not keys:
        raise ValueError(text)  # an empty key would leave the server open
    params.api_keys = [*params.api_keys, *keys]


def _api_key_file(params: Any, path: str) -> None:
    keys = [line for line in _text_of(path).split("\n") if line and not line.startswith("#")]
    if not keys:
        raise OSError(errno.EINVAL, "no key in this file")
    params.api_keys = [*params.api_keys, *keys]


def _template_arguments(params: Any, text: str) -> None:
    given = json.loads(text)
    if not isinstance(given, dict):
        raise ValueError(text)
    params.default_template_kwargs = params.default_template_kwargs | {k: json.dumps(v) for k, v in given.items()}


def _context(params: Any, text: str) -> None:
    params.n_ctx = _integer(text, least=0)
    if params.n_ctx == 0:
        params.fit_params_min_ctx = -1  # "as the model says" must not be shrunk to fit


def _hosts(params: Any, text: str) -> None:
    params.hostnames = [host.strip() for host in _list(text)]
    if not params.hostnames:
        raise ValueError(text)


def _experts_on_cpu(params: Any, text: str) -> None:
    _override(params, [rf"blk\.{layer}\.{_EXPERTS}" for layer in range(_integer(text, 0, 9999))])


def _all_experts_on_cpu(params: Any, _: str) -> None:
    _override(params, [rf"\.{_EXPERTS}"])


def _override(params: Any, patterns: list[str]) -> None:
    params.tensor_buft_overrides = ",".join([*filter(None, [params.tensor_buft_overrides]), *patterns])


def _adapters(params: Any, text: str) -> None:
    _add_adapters(params, [(path, 1.0) for path in _list(text)])


def _scaled_adapters(params: Any, text: str) -> None:
    pairs = [part.rpartition(":") for part in _list(text)]
    _add_adapters(params, [(path, _real(scale)) for path, _, scale in pairs])


def _add_adapters(params: Any, adapters: list[tuple[str, float]]) -> None:
    import xllamacpp

    if not adapters or not all(path for path, _ in adapters):
        raise ValueError("no adapter")
    added = [xllamacpp.CommonAdapterLoraInfo(path, scale) for path, scale in adapters]
    params.lora_adapters = [*params.lora_adapters, *added]


def _no_projector_offload(params: Any, _: str) -> None:
    params.mmproj_use_gpu = False
    params.mmproj_device = "none"


def _parallel(params: Any, text: str) -> None:
    params.n_parallel = _integer(text, least=-1)
    if params.n_parallel == 0:
        raise ValueError(text)


def _reasoning(params: Any, text: str) -> None:
    params.enable_reasoning = _tristate(text)
    if params.enable_reasoning >= 0:
        # Templates know the switch by this name.
        chosen = {"enable_thinking": "true" if params.enable_reasoning else "false"}
        params.default_template_kwargs = params.default_template_kwargs | chosen


def _rerank(params: Any, _: str) -> None:
    params.embedding = True
    params.pooling_type = _enum("llama_pooling_type", "LLAMA_POOLING_TYPE", "RANK")


def _slot_folder(params: Any, path: str) -> None:
    if not os.path.isdir(path):
        raise NotADirectoryError(errno.ENOTDIR, os.strerror(errno.ENOTDIR))
    params.slot_save_path = os.path.join(path, "")


def _speculation(params: Any, text: str) -> None:
    names = [name.upper().replace("-", "_") for name in _list(text)]
    if not names or "COUNT" in names:
        raise ValueError(text)
    kinds = [_enum("common_speculative_type", "COMMON_SPECULATIVE_TYPE", name) for name in ("NONE", *names)]
    params.speculative.types = kinds


def _timeout(params: Any, text: str) -> None:
    params.timeout_read = params.timeout_write = _integer(text, least=1)


def _lower_enum(kind: str, prefix: str, names: str) -> Callable[[str], Any]:
    """Convert one of ``names`` (divided by blanks) to the member of the library's enumeration."""
    allowed = frozenset(names.split())

    def convert(text: str) -> Any:
        if text not in allowed:
            raise ValueError(text)
        return _enum(kind, prefix, text.upper().replace("-", "_"))

    return convert


def _fit(text: str) -> bool:
    state = _tristate(text)
    if state < 0:
        raise ValueError(text)
    return bool(state)


def _flash_attention(text: str) -> Any:
    state = {1: "ENABLED", 0: "DISABLED", -1: "AUTO"}[_tristate(text)]
    return _enum("llama_flash_attn_type", "LLAMA_FLASH_ATTN_TYPE", state)


def _load_mode(text: str) -> Any:
    return _enum("llama_load_mode", "LLAMA_LOAD_MODE", _LOAD_MODES[text])


def _whole(least: int) -> Callable[[str], int]:
    return lambda text: _integer(text, least)


SETTERS: Final[dict[str, Setter]] = {
    "alias": _alias,
    "api-key": _api_keys,
    "api-key-file": _api_key_file,
    "api-prefix": _put("api_prefix", str),
    "batch-size": _put("n_batch", _whole(1)),
    "cache-prompt": _switch("cache_prompt", True),
    "cache-ram": _put("cache_ram_mib", _whole(-1)),
    "cache-reuse": _put("n_cache_reuse", _whole(0)),
    "cache-type-k": _put("cache_type_k", _cache_type),
    "cache-type-v": _put("cache_type_v", _cache_type),
    "chat-template": _put("chat_template", str),
    "chat-template-file": _put("chat_template", _text_of),
    "chat-template-kwargs": _template_arguments,
    "check-tensors": _switch("check_tensors", True),
    "cont-batching": _switch("cont_batching", True),
    "context-shift": _switch("ctx_shift", True),
    "cpu-moe": _all_experts_on_cpu,
    "ctx-size": _context,
    "embedding": _switch("embedding", True),
    "fit": _put("fit_params", _fit),
    "flash-attn": _put("flash_attn_type", _flash_attention),
    "frequency-penalty": _put("sampling.penalty_freq", _real),
    "gpu-layers": _put("n_gpu_layers", _layers),
    "gpu-layers-draft": _put("speculative.draft.n_gpu_layers", _layers),
    "host": _hosts,
    "jinja": _switch("use_jinja", True),
    "keep": _put("n_keep", _whole(-1)),
    "kv-unified": _switch("kv_unified", True),
    "load-mode": _put("load_mode", _load_mode),
    "lora": _adapters,
    "lora-scaled": _scaled_adapters,
    "main-gpu": _put("main_gpu", _whole(0)),
    "metrics": _switch("endpoint_metrics", True),
    "min-p": _sampling("min_p", "MIN_P", _real),
    "mmproj": _put("mmproj.path", str),
    "mmproj-offload": _switch("mmproj_use_gpu", True),
    "model": _put("model.path", str),
    "model-draft": _put("speculative.draft.mparams.path", str),
    "n-cpu-moe": _experts_on_cpu,
    "no-cache-prompt": _switch("cache_prompt", False),
    "no-cont-batching": _switch("cont_batching", False),
    "no-context-shift": _switch("ctx_shift", False),
    "no-jinja": _switch("use_jinja", False),
    "no-kv-unified": _switch("kv_unified", False),
    "no-mmproj": _switch("no_mmproj", True),
    "no-mmproj-offload": _no_projector_offload,
    "no-slots": _switch("endpoint_slots", False),
    "no-ui": _switch("ui", False),
    "no-warmup": _switch("warmup", False),
    "offline": _switch("offline", True),
    "parallel": _parallel,
    "pooling": _put("pooling_type", _lower_enum("llama_pooling_type", "LLAMA_POOLING_TYPE", "none mean cls last rank")),
    "port": _put("port", lambda text: _integer(text, 0, 65535)),
    "predict": _put("n_predict", _whole(-2)),
    "presence-penalty": _put("sampling.penalty_present", _real),
    "props": _switch("endpoint_props", True),
    "reasoning": _reasoning,
    "reasoning-budget": _put("sampling.reasoning_budget_tokens", _whole(-1)),
    "reasoning-format": _put(
        "reasoning_format",
        _lower_enum("common_reasoning_format", "COMMON_REASONING_FORMAT", "none auto deepseek deepseek-legacy"),
    ),
    "repeat-penalty": _sampling("penalty_repeat", "PENALTY_REPEAT", _real),
    "rerank": _rerank,
    "seed": _put("sampling.seed", lambda text: _integer(text, -1, 2**32 - 1) % 2**32),
    "slot-save-path": _slot_folder,
    "slots": _switch("endpoint_slots", True),
    "spec-draft-n-max": _put("speculative.draft.n_max", _whole(0)),
    "spec-draft-n-min": _put("speculative.draft.n_min", _whole(0)),
    "spec-draft-p-min": _put("speculative.draft.p_min", _real),
    "spec-type": _speculation,
    "split-mode": _put("split_mode", _lower_enum("llama_split_mode", "LLAMA_SPLIT_MODE", "none layer row tensor")),
    "swa-full": _switch("swa_full", True),
    "temp": _sampling("temp", "TEMP", lambda text: max(0.0, _real(text))),
    "threads": _put("cpuparams.n_threads", _threads),
    "threads-batch": _put("cpuparams_batch.n_threads", _threads),
    "threads-http": _put("n_threads_http", _whole(-1)),
    "timeout": _timeout,
    "top-k": _sampling("top_k", "TOP_K", _integer),
    "top-p": _sampling("top_p", "TOP_P", _real),
    "ubatch-size": _put("n_ubatch", _whole(1)),
    "ui": _switch("ui", True),
    "verbose": _switch("verbosity", _INT_MAX),
    "verbosity": _put("verbosity", _integer),
    "warmup": _switch("warmup", True),
}


if __name__ == "__main__":
    sys.exit(main())
