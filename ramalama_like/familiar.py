"""Options that people know from other programs, and what does the same here: hints for command lines that are wrong.

Sources: podman-run(1), podman-ps(1), docker's reference of ``run`` and ``ps``, ``ollama run --help``,
``llama-server --help`` (build 11669).
"""

from __future__ import annotations

# By command (* for those that start a server or a tool), then by flag.
_SERVER = "the server's own options go through: --runtime-args '{flag} …'"
_ENGINE = "the engine's own options go through: --engine-args '{flag} …'"
HINTS: dict[str, dict[str, str]] = {
    "ps": {
        **dict.fromkeys(("-a", "--all"), "ps always lists all of this program's containers, those that ended too"),
        **dict.fromkeys(("-f", "--filter", "-l", "--latest", "-s", "--size", "--sort", "--last"),
                        "pipe what --json prints to jq, or ask the engine itself"),
        **dict.fromkeys(("--noheadings", "--no-heading"), "did you mean --noheading?"),
    },
    "stop": {
        **dict.fromkeys(("-t", "--time", "--timeout"), "containers have a few seconds to end, and no choice"),
        **dict.fromkeys(("-f", "--force", "-i"), "did you mean --ignore?"),
    },
    "logs": {
        **dict.fromkeys(("-n", "-t", "--lines"), "did you mean --tail?"),
        **dict.fromkeys(("--since", "--until", "--timestamps"), "did you mean --tail?"),
    },
    "info": {**dict.fromkeys(("--json", "--format", "-f"), "info always prints JSON")},
    "*": {
        **dict.fromkeys(("-v", "--volume", "--mount", "--cap-add", "--cap-drop", "--security-opt", "--user", "-u",
                         "--workdir", "-w", "--entrypoint", "--restart", "--shm-size", "--annotation", "--label",
                         "--ulimit", "--tmpfs", "--hostname", "--add-host", "--dns", "--platform", "--ipc", "--pid",
                         "--group-add", "--userns", "--pids-limit", "--memory-swap", "--cpuset-cpus"), _ENGINE),
        **dict.fromkeys(("--top-k", "--top-p", "--min-p", "--repeat-penalty", "--flash-attn", "--parallel",
                         "--batch-size", "--ubatch-size", "--cache-type-k", "--cache-type-v", "--mlock", "--no-mmap",
                         "--jinja", "--no-jinja", "--chat-template", "--embedding", "--embeddings", "--reranking",
                         "--rope-scaling", "--rope-freq-base", "--rope-freq-scale", "--split-mode", "--tensor-split",
                         "--main-gpu", "--numa", "--lora", "--grammar", "--reasoning-format", "--swa-full"), _SERVER),
        "-e": "did you mean --env?",
        "--rm": "containers are removed by themselves, except those of serve --detach",
        **dict.fromkeys(("--gpus", "--main-gpu"), "cards are used by themselves; --gpu SEL chooses among them"),
        **dict.fromkeys(("--publish", "--expose"), "did you mean --port?"),
        **dict.fromkeys(("--context", "--context-size", "--context-length", "--num-ctx", "--num_ctx", "--n-ctx",
                         "--n_ctx", "--max-model-len"), "did you mean --ctx-size?"),
        **dict.fromkeys(("--n-gpu-layers", "--gpu-layers", "--num-gpu", "--num_gpu"), "did you mean --ngl?"),
        **dict.fromkeys(("--predict", "--n-predict", "--num-predict", "--num_predict"), "did you mean --max-tokens?"),
        **dict.fromkeys(("--n-cpu-moe", "--cpu-moe"), "did you mean --ncmoe?"),
        **dict.fromkeys(("--temperature",), "did you mean --temp?"),
        **dict.fromkeys(("--num-thread", "--num-threads", "--n-threads"), "did you mean --threads?"),
        **dict.fromkeys(("--keep-alive",), "did you mean --keepalive?"),
        **dict.fromkeys(("--no-container",), "did you mean --nocontainer?"),
        **dict.fromkeys(("--mmproj",), "a projector beside the model's file is found by itself"),
        **dict.fromkeys(("--hf", "--hf-repo"), "name the model like hf://OWNER/MODEL"),
        **dict.fromkeys(("--model", "-m"), "the model's name stands alone, behind the command"),
        **dict.fromkeys(("--json", "--format"), "--dryrun=json prints the whole plan"),
        **dict.fromkeys(("--think",), "did you mean --thinking?"),
        **dict.fromkeys(("--system",), "a system prompt cannot be given yet"),
    },
    "": {
        **dict.fromkeys(("-V", "-version"), "did you mean --version?"),
        **dict.fromkeys(("--verbose", "-D"), "did you mean --debug?"),
        "--no-container": "did you mean --nocontainer?",
    },
}  # fmt: skip


def familiar_hint(command: str, flag: str, *, starts: bool) -> str:
    """The hint for a flag that another program has; empty where none is known."""
    for name in (command, *(("*",) if starts else ()), ""):
        if flag in HINTS.get(name, {}):
            return HINTS[name][flag].replace("{flag}", flag)
    return ""
