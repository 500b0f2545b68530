"""What the embedded server understands of llama-server's command line: data, so that a plan can refuse early.

``ramalama_like.embedded`` parses its arguments with ``read``, and the planner asks ``find_unsupported`` before it
starts anything. Both use the one table ``SUPPORTED``, so they cannot disagree. Nothing here touches the machine.
"""

from __future__ import annotations

from ramalama_like.value import value

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from typing import Final

# Exit codes of the embedded server: 0 after SIGTERM or SIGINT, otherwise one of these, or 128 + signal for a crash.
EXIT_FAILED: Final = 1  # a fault of the program itself
EXIT_USAGE: Final = 2  # an argument that llama-server does not have either, or one without its value
EXIT_OS: Final = 5  # the address cannot be listened on, or the library is missing
EXIT_VALUE: Final = 22  # an option that cannot be honoured, a bad value, a model that cannot be loaded

# The name of an option (llama-server's longest spelling) and the other spellings of it.
_WITH_VALUE: Final = """
alias -a
api-key
api-key-file
api-prefix
batch-size -b
cache-ram -cram
cache-reuse
cache-type-k -ctk
cache-type-v -ctv
chat-template
chat-template-file
chat-template-kwargs
ctx-size -c
fit -fit
flash-attn -fa
frequency-penalty
gpu-layers -ngl --n-gpu-layers
gpu-layers-draft -ngld --n-gpu-layers-draft --spec-draft-ngl
host
keep
load-mode -lm
log-file
lora
lora-scaled
main-gpu -mg
min-p
mmproj -mm
model -m
model-draft -md --spec-draft-model
n-cpu-moe -ncmoe
parallel -np
pooling
port
predict -n --n-predict
presence-penalty
reasoning -rea
reasoning-budget
reasoning-format
repeat-penalty
seed -s
slot-save-path
spec-draft-n-max
spec-draft-n-min
spec-draft-p-min --draft-p-min
spec-type
split-mode -sm
temp --temperature
threads -t
threads-batch -tb
threads-http
timeout -to
top-k
top-p
ubatch-size -ub
verbosity -lv --log-verbosity
"""

_SWITCHES: Final = """
cache-prompt
check-tensors
cont-batching -cb
context-shift
cpu-moe -cmoe
embedding --embeddings
jinja
kv-unified -kvu
metrics
mmproj-offload
no-cache-prompt
no-cont-batching -nocb
no-context-shift
no-jinja
no-kv-unified -no-kvu
no-mmproj --no-mmproj-auto
no-mmproj-offload
no-slots
no-ui --no-webui
no-warmup
offline
props
rerank --reranking
slots
swa-full
ui --webui
verbose -v --log-verbose
warmup
"""

# What llama-server has, or had until lately, beyond that: to tell "not in this server" from "not an option at all".
_OTHERS: Final = """
--adaptive-decay --adaptive-target --agent --attention --backend-sampling --cache-idle-slots --cache-list
--cache-type-k-draft --cache-type-v-draft --checkpoint-min-step --chunks --completion-bash --control-vector
--control-vector-layer-range --control-vector-scaled --cors-credentials --cors-headers --cors-methods --cors-origins
--cpu-mask --cpu-mask-batch --cpu-mask-batch-draft --cpu-mask-draft --cpu-moe-draft --cpu-range --cpu-range-batch
--cpu-range-batch-draft --cpu-range-draft --cpu-strict --cpu-strict-batch --cpu-strict-batch-draft --cpu-strict-draft
--ctx-checkpoints --defrag-thold --device --device-draft --dflash --direct-io --docker-repo --draft --draft-max
--draft-min --draft-n --draft-n-min --draft-p-split --dry-allowed-length --dry-base --dry-multiplier
--dry-penalty-last-n --dry-sequence-breaker --dynatemp-exp --dynatemp-range --eagle3 --embd-gemma-default
--embd-normalize --escape --fim-qwen-1.5b-default --fim-qwen-14b-spec --fim-qwen-30b-default --fim-qwen-3b-default
--fim-qwen-7b-default --fim-qwen-7b-spec --fit-ctx --fit-target --gpt-oss-120b-default --gpt-oss-20b-default --grammar
--grammar-file --help --hf-file --hf-repo --hf-repo-draft --hf-token --ignore-eos --image-max-tokens
--image-min-tokens --json-schema --json-schema-file --kv-offload --kv-unified-per-slot --lazy-mode --list-devices
--log-colors --log-disable --log-jsonl --log-prefix --log-prompts-dir --log-timestamps --logit-bias
--lookup-cache-dynamic --lookup-cache-static --lora-init-without-apply --mcp-servers-config --mcp-servers-json
--media-path --mirostat --mirostat-ent --mirostat-lr --mlock --mmap --mmproj-auto --mmproj-device --mmproj-url
--model-url --models-autoload --models-dir --models-max --models-preset --moe-cache-mib --mtmd-batch-max-tokens --mtp
--n-cpu-ffn --n-cpu-moe-draft --no-agent --no-cache-idle-slots --no-cors-credentials --no-direct-io --no-escape
--no-host --no-kv-offload --no-log-jsonl --no-log-prefix --no-log-timestamps --no-mmap --no-models-autoload
--no-op-offload --no-perf --no-prefill-assistant --no-reasoning-preserve --no-repack --no-skip-chat-parsing
--no-spec-draft-backend-sampling --no-ui-mcp-proxy --no-webui-mcp-proxy --numa --op-offload --override-kv
--override-tensor --override-tensor-draft --path --perf --poll --poll-batch --poll-batch-draft --poll-draft
--prefill-assistant --prio --prio-batch --prio-batch-draft --prio-draft --reasoning-budget-message --reasoning-effort
--reasoning-preserve --repack --repeat-last-n --reuse-port --reverse-prompt --rope-freq-base --rope-freq-scale
--rope-scale --rope-scaling --rpc --sampler-seq --samplers --sampling-seq --server-base --skip-chat-parsing
--sleep-idle-seconds --slot-prompt-similarity --spec-default --spec-draft-backend-sampling --spec-draft-cpu-mask
--spec-draft-cpu-mask-batch --spec-draft-cpu-moe --spec-draft-cpu-range --spec-draft-cpu-range-batch
--spec-draft-cpu-strict --spec-draft-cpu-strict-batch --spec-draft-device --spec-draft-hf --spec-draft-n-cpu-moe
--spec-draft-ncmoe --spec-draft-override-tensor --spec-draft-p-split --spec-draft-poll --spec-draft-poll-batch
--spec-draft-prio --spec-draft-prio-batch --spec-draft-sampling --spec-draft-threads --spec-draft-threads-batch
--spec-draft-type-k --spec-draft-type-v --spec-ngram-map-k-min-hits --spec-ngram-map-k-size-m
--spec-ngram-map-k-size-n --spec-ngram-map-k4v-min-hits --spec-ngram-map-k4v-size-m --spec-ngram-map-k4v-size-n
--spec-ngram-min-hits --spec-ngram-mod-n-match --spec-ngram-mod-n-max --spec-ngram-mod-n-min
--spec-ngram-simple-min-hits --spec-ngram-simple-size-m --spec-ngram-simple-size-n --spec-ngram-size-m
--spec-ngram-size-n --spec-synth-len --spec-synth-rates --special --spm-infill --sse-ping-interval --ssl-cert-file
--ssl-key-file --swa-checkpoints --tags --tensor-split --threads-batch-draft --threads-draft --tools --tools-runtime
--top-n-sigma --top-nsigma --typical --typical-p --ui-config --ui-config-file --ui-mcp-proxy --usage --version
--video-ffmpeg-dir --video-fps --video-timestamp-interval --vision-gemma-12b-default --vision-gemma-4b-default
--webui-config --webui-config-file --webui-mcp-proxy --xtc-probability --xtc-threshold --yarn-attn-factor
--yarn-beta-fast --yarn-beta-slow --yarn-ext-factor --yarn-orig-ctx -C -Cb -Cbd -Cd -Cr -Crb -Crd -ag -bs -cl
-cmoed -cms -ctkd -ctvd -ctxcp -dev -devd -dio -dr -dt -e -fitc -fitt -h -hf -hfd -hff -hfr -hfrd -hft -j -jf -kvo -l
-lcd -lcs -lzm -mmdev -mmu -mu -ncffn -ncmoed -ndio -nkvo -nr -ot -otd -r -sp -sps -tbd -td -ts
"""


@value
class OptionSpec:
    """An option that the embedded server honours: its name without dashes, and whether a value follows it."""

    name: str
    takes_value: bool


@value
class Item:
    """One option of a command line, as ``read`` understood it.

    ``problem`` is empty, or says why the option cannot be used: ``unsupported`` (llama-server has it, the embedded
    server does not), ``unknown`` (neither has it, or it is a stray word), ``value-missing`` or ``value-unwanted``.
    """

    spelling: str
    name: str = ""
    value: str = ""
    problem: str = ""


def _table() -> dict[str, OptionSpec]:
    table: dict[str, OptionSpec] = {}
    for text, takes_value in ((_WITH_VALUE, True), (_SWITCHES, False)):
        for line in text.split("\n"):
            name, *others = line.split() or ("",)
            if name:
                spec = OptionSpec(name, takes_value)
                for spelling in (f"--{name}", *others):
                    table[spelling] = spec
    return table


SUPPORTED: Final[Mapping[str, OptionSpec]] = _table()
KNOWN: Final = frozenset(_OTHERS.split())


def read(argv: Sequence[str]) -> tuple[Item, ...]:
    """Split llama-server arguments into options, in order. Total: every fault is an ``Item`` with a ``problem``.

    A value follows its option as the next word, whatever that looks like, as with llama-server; ``--option=value``
    is understood too. As there, underscores in a long option stand for dashes.
    """
    items: list[Item] = []
    position = 0
    while position < len(argv):
        word = argv[position]
        position += 1
        spelling, equals, joined = word.partition("=")
        if spelling.startswith("--"):
            spelling = spelling.replace("_", "-")
        spec = SUPPORTED.get(spelling)
        if spec is None:
            items.append(Item(spelling, problem="unsupported" if spelling in KNOWN else "unknown"))
            # Its values are not faults of their own.
            while spelling.startswith("-") and position < len(argv) and not _is_option(argv[position]):
                position += 1
        elif not spec.takes_value:
            items.append(Item(spelling, spec.name, joined, "value-unwanted" if equals else ""))
        elif equals:
            items.append(Item(spelling, spec.name, joined))
        elif position < len(argv):
            items.append(Item(spelling, spec.name, argv[position]))
            position += 1
        else:
            items.append(Item(spelling, spec.name, problem="value-missing"))
    return tuple(items)


def find_unsupported(argv: Sequence[str]) -> tuple[str, ...]:
    """The options in ``argv`` that the embedded server cannot honour, each once, in order; empty when all is well.

    Total: any list of strings is accepted. A stray word counts as an option of that name.
    """
    found = (item.spelling for item in read(argv) if item.problem in {"unsupported", "unknown"})
    return tuple(dict.fromkeys(found))


def _is_option(word: str) -> bool:
    return word.startswith("-") and not word[1:2].isdigit()
