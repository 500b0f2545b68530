"""The command lines of llama.cpp's own programs: llama-server, llama-bench, llama-perplexity.

Pure: settings and paths in, argument lists out. Flag spellings are those of llama.cpp build 11434 (and of Debian's
build 11669), see docs/facts in the llama.cpp repository's tools/server/README.md.
"""

from __future__ import annotations

from ramalama_like.options import Setting

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    from ramalama_like.options import Settings

# llama-server tells at this level, but not at its own (3), which devices, buffers and layers it uses. Prompts and
# answers are not part of it (build 11669).
REPORT = ("-lv", "4")
# With one of these the user chooses what is logged.
OWN_LEVELS = ("-v", "--verbose", "--log-verbose", "-lv", "--verbosity", "--log-verbosity", "--log-disable",
              "--log-jsonl")  # fmt: skip

# How options begin that name a draft model.
DRAFTS = ("--model-draft", "-md", "--spec-draft-model", "--spec-draft-hf", "-hfd", "-hfrd", "--hf-repo-draft")

# Options that a program has no use for; said on stderr when they were given all the same.
MEANINGLESS = {
    "bench": ("ctx_size", "temp", "seed", "port", "host"),
    "perplexity": ("port", "host"),
}


def make_server_command(
    settings: Settings,
    *,
    alias: str,
    model: str,
    mmproj: str,
    draft: str,
    listen: Sequence[str],
    threads: int,
    log_file: str,
    template: str = "",
    states: str = "",
    adapters: Sequence[tuple[str, float]] = (),
) -> tuple[str, ...]:
    """The command line of llama-server. Paths are those that the server sees; ``listen`` is its address."""
    command = ["llama-server", *listen]
    if log_file:
        command += ["--log-file", log_file]
    command += ["--model", model]
    if mmproj:
        command += ["--mmproj", mmproj]
    # Warming up would double the time to the first answer on a cold disk and changes nothing after it.
    command += ["--no-warmup"]
    command += _reasoning(settings)
    command += ["--alias", alias]
    if settings.ctx_size.value:
        command += ["--ctx-size", str(settings.ctx_size.value)]
    command += ["--chat-template-file", template] if template else []
    command += _adapters(adapters)
    command += ["--slot-save-path", states] if states else []
    command += ["--embedding"] if settings.embedding.value else []
    command += ["--rerank"] if settings.rerank.value else []
    command += ["--temp", _number(settings.temp.value)]
    command += _given("--cache-reuse", settings.cache_reuse)
    if settings.debug.value:
        command += ["-v"]
    elif asks_report(settings):
        command += REPORT
    if not settings.webui.value:
        command += ["--no-webui"]
    command += _offload(settings)
    command += _speculation(settings, draft)
    command += ["--threads", str(threads)]
    if settings.seed.value:
        command += ["--seed", settings.seed.value]
    if settings.max_tokens.value:
        command += ["-n", str(settings.max_tokens.value)]
    return (*command, *settings.runtime_args.value)


def loads_draft(command: Sequence[str]) -> bool:
    """Whether a command line of llama-server has it load a second model, which guesses for the first."""
    return any(argument.startswith(DRAFTS) for argument in command)


def _reasoning(settings: Settings) -> tuple[str, ...]:
    thinking = settings.thinking.value
    return () if thinking is None else ("--reasoning", "on" if thinking else "off")


def asks_report(settings: Settings) -> bool:
    """Whether the server is asked for more than it logs by itself, without the user's wish to see that."""
    return not settings.debug.value and not set(OWN_LEVELS) & set(settings.runtime_args.value)


def make_bench_command(settings: Settings, *, model: str, threads: int) -> tuple[str, ...]:
    """The command line of llama-bench, which prints JSON."""
    command = ["llama-bench", "--model", model, *_offload(settings), "--threads", str(threads), "-o", "json"]
    return (*command, *settings.runtime_args.value)


def make_perplexity_command(settings: Settings, *, model: str, threads: int, text: str) -> tuple[str, ...]:
    """The command line of llama-perplexity for the text file ``text``."""
    command = ["llama-perplexity", "--model", model, *_offload(settings), "--threads", str(threads)]
    if settings.ctx_size.value:
        command += ["--ctx-size", str(settings.ctx_size.value)]
    command += ["--temp", _number(settings.temp.value)]
    if settings.seed.value:
        command += ["--seed", settings.seed.value]
    if settings.max_tokens.value:
        command += ["-n", str(settings.max_tokens.value)]
    return (*command, "-f", text, *settings.runtime_args.value)


def _speculation(settings: Settings, draft: str) -> list[str]:
    command = []
    if draft:
        command += ["--model-draft", draft]
        if settings.ngl.value:
            command += ["-ngld", settings.ngl.value]
    if settings.spec_type.value:
        command += ["--spec-type", settings.spec_type.value]
    command += _given("--spec-draft-n-max", settings.spec_draft_n_max)
    command += _given("--spec-draft-n-min", settings.spec_draft_n_min)
    command += _given("--spec-draft-p-min", settings.spec_draft_p_min)
    return command


def _adapters(adapters: Sequence[tuple[str, float]]) -> list[str]:
    command = []
    for path, scale in adapters:
        command += ["--lora", path] if scale == 1 else ["--lora-scaled", f"{path}:{_number(scale)}"]
    return command


def _offload(settings: Settings) -> list[str]:
    command = []
    if settings.ngl.value:
        command += ["-ngl", settings.ngl.value]
    return command + _given("-ncmoe", settings.ncmoe)


def _given(flag: str, setting: Setting[int | None] | Setting[float | None]) -> list[str]:
    return [] if setting.value is None else [flag, _number(setting.value)]


def _number(number: float) -> str:
    return repr(number)
