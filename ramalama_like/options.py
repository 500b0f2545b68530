"""Every option, declared once: its type, default, flags, configuration key, variables, help and commands.

``Settings`` is both the declaration and the merged result. Help, the fast parser, completion, ``config show`` and the
reference derive from ``OPTIONS``; ``settings.py`` fills a ``Settings`` from flags, variables and files. Nothing here
reads anything, so it may be imported on every path.

Kinds of value: ``str``, ``int``, ``float``, ``bool`` (takes a word such as ``on`` or ``false``), ``flag`` (takes
none), ``size`` (8g, 512m: a number of bytes), ``list`` (repeatable), ``args`` (repeatable, each split as a shell
would), ``table`` (files only), ``names`` (some of the choices, separated by commas), ``path``, ``output`` (a path, or
``-`` for standard output), ``optional`` (one of the choices, or bare, which reads as the empty string).
"""

from __future__ import annotations

from ramalama_like.value import value

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any, Generic, TypeVar

    T_co = TypeVar("T_co", covariant=True)

    @value
    class Setting(Generic[T_co]):
        """A merged value and where it came from: ``default``, ``--flag``, ``$VARIABLE`` or ``file:line``."""

        value: T_co
        origin: str = "default"

        @property
        def is_default(self) -> bool: ...
else:

    @value
    class Setting:
        """A merged value and where it came from: ``default``, ``--flag``, ``$VARIABLE`` or ``file:line``."""

        value: object
        origin: str = "default"

        def __class_getitem__(cls, _item: object) -> type:
            return cls

        @property
        def is_default(self) -> bool:
            return self.origin == "default"


@value
class Option:
    """The declaration of one option."""

    default: Any
    kind: str
    flags: tuple[str, ...]
    help: str
    key: str  # dotted path below [ramalama]; empty where no file or variable may set it
    commands: tuple[str, ...]  # names from COMMANDS; ("*",) means all
    choices: tuple[str, ...] = ()
    minimum: float | None = None
    maximum: float | None = None
    metavar: str = ""
    variables: tuple[str, ...] = ()  # besides RAMALAMA_<KEY>
    off_flags: tuple[str, ...] = ()  # spellings that mean False
    hidden: bool = False
    group: str = "Options"
    not_yet: str = ""  # part of the dialect that is refused by name: the reason
    secret: bool = False  # its value is never shown


BACKENDS = ("auto", "cpu", "vulkan", "rocm", "cuda", "sycl", "intel", "openvino", "cann", "musa", "metal")
PULL_POLICIES = ("always", "missing", "never", "newer")
TRANSPORTS = ("huggingface", "hf", "modelscope", "ms", "ollama", "oci", "docker", "rlcr")
IMAGE_FAMILIES = ("ramalama", "llama.cpp", "local")
TRUE_WORDS = ("on", "true", "1", "yes", "y")
FALSE_WORDS = ("off", "false", "0", "no", "n")

ALL = ("*",)
SERVERS = ("run", "serve")
TOOLS = ("run", "serve", "bench", "perplexity")
CHATS = ("run", "chat")
REGISTRY = ("push", "pull", "convert", "login", "logout")
CONTAINED = (*TOOLS, "convert")  # start containers
QUANTIZATIONS = ("Q2_K", "Q3_K_S", "Q3_K_M", "Q3_K_L", "Q4_0", "Q4_K_S", "Q4_K_M", "Q5_0", "Q5_K_S", "Q5_K_M", "Q6_K",
                 "Q8_0")  # fmt: skip
FITTED = (*TOOLS, "fit")
JSON_TOO = ("fit", "pull", "shortnames", "list", "inspect", "rm", "df", "prune", "fsck", "ps", "version", "config show",
            "benchmarks list", "benchmarks show", "benchmarks compare", "explain", "doctor")  # fmt: skip
PLAN_GROUPS = ("Accelerator and image", "Container")  # what doctor looks at too: it checks the plan that these make


def option(
    default: object,
    *flags: str,
    help: str,
    kind: str = "str",
    key: str = "",
    on: tuple[str, ...] = TOOLS,
    **more: Any,
) -> Any:
    """Declare one option of ``Settings``."""
    if more.get("group") in PLAN_GROUPS:
        on = (*on, "doctor")
    return Option(default, kind, flags, help, key, on, **more)


@value
class Settings:
    """The merged configuration of one command. Every member knows its origin."""

    # What the program itself does.
    dryrun: Setting[str] = option(
        "", "--dryrun", "--dry-run", kind="dryrun", on=ALL, choices=("text", "json"), group="Program",
        variables=("RAMALAMA_DRYRUN",),
        metavar="[=json]",
        help="Print exactly the commands that would be executed, and change nothing (--dryrun=json: the whole plan).",
    )  # fmt: skip
    engine: Setting[str] = option(
        "", "--engine", key="engine", on=ALL, choices=("podman", "docker", "none"), group="Program",
        variables=("RAMALAMA_CONTAINER_ENGINE",),
        help="Container engine; the default is podman, else docker, else none.",
    )  # fmt: skip
    container: Setting[bool] = option(
        True, "--container", kind="flag", key="container", on=ALL, off_flags=("--nocontainer",), group="Program",
        variables=("RAMALAMA_IN_CONTAINER",), help="Run in a container, or (--nocontainer) natively.",
    )  # fmt: skip
    runtime: Setting[str] = option(
        "llama.cpp", "--runtime", key="runtime", on=ALL, choices=("llama.cpp", "vllm", "mlx"), group="Program",
        help="Inference engine.",
    )  # fmt: skip
    store: Setting[str] = option(
        "", "--store", kind="path", key="store", on=ALL, group="Program", metavar="DIR",
        help="Folder that holds pulled models.",
    )  # fmt: skip
    offline: Setting[bool] = option(
        False, "--offline", kind="flag", key="offline", on=ALL, off_flags=("--no-offline",), group="Program",
        variables=("HF_HUB_OFFLINE",),
        help="Ask no hub and no registry: only what is on this machine counts.",
    )  # fmt: skip
    host_facts: Setting[str] = option(
        "", "--host-facts", kind="path", key="host_facts", on=ALL, group="Program", metavar="PATH",
        help="Decide for another machine: a folder that stands for /, or a JSON file of facts.",
    )  # fmt: skip
    transport: Setting[str] = option(
        "", key="transport", on=(), choices=TRANSPORTS, help="Where names without a prefix are to be had."
    )
    ollama_registry: Setting[str] = option(
        "https://registry.ollama.ai", key="ollama_registry", on=(), help="Address of Ollama's registry, or of a mirror."
    )
    modelscope_endpoint: Setting[str] = option(
        "https://modelscope.cn", key="modelscope_endpoint", on=(), help="Address of ModelScope, or of a mirror."
    )
    debug: Setting[bool] = option(
        False, "--debug", kind="flag", on=ALL, group="Program", help="Tell every step, and tracebacks of failures."
    )
    quiet: Setting[bool] = option(
        False, "--quiet", "-q", kind="flag", on=ALL, group="Program", help="Say nothing but results and errors."
    )
    noout: Setting[str] = option(
        "", "--noout", on=ALL, hidden=True, help="Accepted for the dialect; output is never mixed."
    )

    # Which accelerator and image.
    backend: Setting[str] = option(
        "auto", "--backend", kind="names", key="runtimes.llama_cpp.backend", choices=BACKENDS,
        variables=("RAMALAMA_BACKEND",), on=FITTED, group="Accelerator and image",
        help="Accelerator back end; every name is accepted on every host. bench takes several: vulkan,rocm,cpu.",
    )  # fmt: skip
    gpu: Setting[tuple[str, ...]] = option(
        (), "--gpu", kind="list", key="gpu", on=FITTED, group="Accelerator and image", metavar="SEL",
        help="Use only this card: its number, UUID, PCI address or a part of its name; repeatable.",
    )  # fmt: skip
    image: Setting[str] = option(
        "", "--image", key="image", on=CONTAINED, group="Accelerator and image",
        help="Container image; beats every other choice.",
    )  # fmt: skip
    image_family: Setting[str] = option(
        "ramalama", "--image-family", key="image_family", choices=IMAGE_FAMILIES, on=CONTAINED,
        group="Accelerator and image",
        help="Which family of images to choose from.",
    )  # fmt: skip
    images: Setting[Mapping[str, str]] = option(
        {}, kind="table", key="images", on=(), help="Image for each back end, instead of the family's."
    )
    default_image: Setting[str] = option(
        "", key="default_image", on=(), help="Image where no accelerator is used, instead of the family's."
    )
    device: Setting[tuple[str, ...]] = option(
        (), "--device", kind="list", group="Accelerator and image", metavar="DEV",
        help="Pass one more device to the container; 'none' alone passes none at all.",
    )  # fmt: skip
    keep_groups: Setting[bool] = option(
        False, "--keep-groups", kind="flag", key="keep_groups", group="Accelerator and image",
        help="Keep the user's supplementary groups (podman), for device nodes that belong to a group.",
    )  # fmt: skip
    require_gpu: Setting[bool] = option(
        False, "--require-gpu", kind="flag", key="require_gpu", on=("run", "serve", "bench"),
        group="Accelerator and image",
        help="Fail where no GPU is found, or where the server is seen to compute without one.",
    )  # fmt: skip
    pull: Setting[str] = option(
        "missing", "--pull", key="pull", choices=PULL_POLICIES, on=CONTAINED, group="Accelerator and image",
        help="When to ask for a newer image, and for a newer model.",
    )  # fmt: skip
    authfile: Setting[str] = option(
        "", "--authfile", kind="path", on=(*TOOLS, *REGISTRY), group="Accelerator and image", metavar="FILE",
        help="Credentials for registries; the default is the engine's own file.",
    )  # fmt: skip
    tls_verify: Setting[bool] = option(
        True, "--tls-verify", kind="bool", on=(*TOOLS, *REGISTRY), group="Accelerator and image",
        help="Demand https with a trusted certificate of a registry.",
    )  # fmt: skip

    # How the container is run.
    name: Setting[str] = option(
        "", "--name", "-n", group="Container", help="Container name; the default is ramalama-<model>-<port>."
    )
    env: Setting[tuple[str, ...]] = option(
        (), "--env", kind="list", key="env", group="Container", metavar="K=V",
        help="Environment variable in the container.",
    )  # fmt: skip
    network: Setting[str] = option(
        "", "--network", "--net", on=CONTAINED, group="Container",
        help="Network of the container; run and convert use none unless asked.",
    )  # fmt: skip
    privileged: Setting[bool] = option(
        False, "--privileged", kind="flag", group="Container", help="Give the container every right. Unsafe."
    )
    selinux: Setting[bool] = option(
        False, "--selinux", kind="bool", key="selinux", on=CONTAINED, group="Container",
        help="Keep SELinux separation and relabel what is mounted.",
    )  # fmt: skip
    cpus: Setting[float | None] = option(
        None, "--cpus", kind="float", key="cpus", minimum=0.01, maximum=65536, on=CONTAINED, group="Container",
        metavar="N",
        help="Most processors to use, such as 1.5; the server starts no more threads than that.",
    )  # fmt: skip
    memory: Setting[int | None] = option(
        None, "--memory", kind="size", key="memory", minimum=6 << 20, on=(*FITTED, "convert"), group="Container",
        metavar="SIZE",
        help="Most memory that the container may use, such as 8g or 512m; it gets no swap besides.",
    )  # fmt: skip
    oci_runtime: Setting[str] = option(
        "", "--oci-runtime", on=CONTAINED, group="Container", help="OCI runtime for the engine to use."
    )
    engine_args: Setting[tuple[str, ...]] = option(
        (), "--engine-args", kind="args", on=CONTAINED, group="Container", metavar="ARGS",
        help="More arguments for the engine, right before the image.",
    )  # fmt: skip

    # The server.
    host: Setting[str] = option(
        "127.0.0.1", "--host", key="host", on=(*TOOLS, "doctor"), group="Server",
        help="Address on which the API is published.",
    )  # fmt: skip
    port: Setting[int] = option(
        8080, "--port", "-p", kind="int", key="port", minimum=1, maximum=65535, on=(*TOOLS, "doctor"),
        group="Server", help="Port of the API; the default is the first free one from 8080.",
    )  # fmt: skip
    timeout: Setting[float] = option(
        180.0, "--timeout", kind="float", key="timeout", minimum=0.1, maximum=86400, on=(*SERVERS, "fit", "doctor"),
        group="Server", metavar="SECONDS", help="How long the server may stay silent before it is ready.",
    )  # fmt: skip
    detach: Setting[bool] = option(
        False, "--detach", "-d", kind="flag", on=("serve",), group="Server",
        help="Return when the server is ready; print the container's id.",
    )  # fmt: skip
    ctx_size: Setting[int] = option(
        0, "--ctx-size", "-c", kind="int", key="ctx_size", minimum=0, on=FITTED, group="Model and server",
        help="Context size in tokens; 0 means the model's own.",
    )  # fmt: skip
    max_tokens: Setting[int] = option(
        0, "--max-tokens", kind="int", key="max_tokens", minimum=0, on=("run", "serve", "perplexity", "chat"),
        group="Model and server", help="Most tokens of an answer; 0 means no limit.",
    )  # fmt: skip
    temp: Setting[float] = option(
        0.8, "--temp", kind="float", key="runtimes.llama_cpp.temp", minimum=0, on=(*TOOLS, "chat"),
        group="Model and server", help="Temperature of sampling; 0 always takes the likeliest token.",
    )  # fmt: skip
    seed: Setting[str] = option("", "--seed", group="Model and server", help="Seed of sampling.")
    ngl: Setting[str] = option(
        "", "--ngl", key="runtimes.llama_cpp.ngl", kind="layers", on=FITTED, group="Model and server", metavar="N",
        help="Layers to offload: a number, 'all' (or -1), 'auto'; the default leaves it to the server.",
    )  # fmt: skip
    ncmoe: Setting[int | None] = option(
        None, "--ncmoe", kind="int", key="runtimes.llama_cpp.ncmoe", minimum=0, on=FITTED, group="Model and server",
        help="Keep the experts of the first N layers in main memory.",
    )  # fmt: skip
    threads: Setting[int | None] = option(
        None, "--threads", "-t", kind="int", key="runtimes.llama_cpp.threads", minimum=1, group="Model and server",
        help="Threads; the default is the number of physical cores that may be used.",
    )  # fmt: skip
    cache_reuse: Setting[int | None] = option(
        None, "--cache-reuse", kind="int", key="runtimes.llama_cpp.cache_reuse", minimum=0, on=SERVERS,
        group="Model and server", help="Smallest chunk of tokens to reuse from the cache.",
    )  # fmt: skip
    logfile: Setting[str] = option(
        "", "--logfile", kind="path", on=SERVERS, group="Model and server", metavar="FILE",
        help="Write the server's log to this file too.",
    )  # fmt: skip
    thinking: Setting[bool | None] = option(
        None, "--thinking", kind="bool", key="runtimes.llama_cpp.thinking", on=SERVERS, group="Model and server",
        help="Let a reasoning model think, or not.",
    )  # fmt: skip
    model_draft: Setting[str] = option(
        "", "--model-draft", on=SERVERS, group="Model and server", metavar="MODEL",
        help="Draft model for speculative decoding.",
    )  # fmt: skip
    spec_type: Setting[str] = option(
        "", "--spec-type", key="runtimes.llama_cpp.spec_type", on=SERVERS, group="Model and server",
        help="Kind of speculative decoding.",
    )  # fmt: skip
    spec_draft_n_max: Setting[int | None] = option(
        None, "--spec-draft-n-max", kind="int", key="runtimes.llama_cpp.spec_draft_n_max", minimum=0, on=SERVERS,
        group="Model and server", help="Most tokens to draft.",
    )  # fmt: skip
    spec_draft_n_min: Setting[int | None] = option(
        None, "--spec-draft-n-min", kind="int", key="runtimes.llama_cpp.spec_draft_n_min", minimum=0, on=SERVERS,
        group="Model and server", help="Fewest tokens to draft.",
    )  # fmt: skip
    spec_draft_p_min: Setting[float | None] = option(
        None, "--spec-draft-p-min", kind="float", key="runtimes.llama_cpp.spec_draft_p_min", minimum=0, maximum=1,
        on=SERVERS, group="Model and server", help="Least probability of a drafted token.",
    )  # fmt: skip
    webui: Setting[bool] = option(
        True, "--webui", kind="bool", on=("serve",), group="Model and server",
        help="Serve the web page of llama-server.",
    )  # fmt: skip
    chat_template: Setting[str] = option(
        "", "--chat-template", kind="path", on=SERVERS, group="Model and server", metavar="FILE",
        help="Chat template (Jinja) instead of the model's own.",
    )  # fmt: skip
    lora: Setting[tuple[str, ...]] = option(
        (), "--lora", kind="list", on=SERVERS, group="Model and server", metavar="FILE[:SCALE]",
        help="Adapter (LoRA, GGUF) to apply to the model, with its scale; repeatable.",
    )  # fmt: skip
    slot_save_path: Setting[str] = option(
        "", "--slot-save-path", kind="path", on=SERVERS, group="Model and server", metavar="DIR",
        help="Folder for the state of slots, which clients save and restore.",
    )  # fmt: skip
    embedding: Setting[bool] = option(
        False, "--embedding", kind="flag", on=SERVERS, group="Model and server",
        help="Serve vectors of texts instead of answers.",
    )  # fmt: skip
    rerank: Setting[bool] = option(
        False, "--rerank", kind="flag", on=SERVERS, group="Model and server",
        help="Serve the relevance of documents to a query instead of answers.",
    )  # fmt: skip
    runtime_args: Setting[tuple[str, ...]] = option(
        (), "--runtime-args", kind="args", on=FITTED, group="Model and server", metavar="ARGS",
        help="More arguments for the server or tool, at its end.",
    )  # fmt: skip

    force: Setting[bool] = option(
        False, "--force", kind="flag", group="Model and server",
        help="Start a model although it does not fit into memory.",
    )  # fmt: skip

    # Talking to it.
    color: Setting[str] = option(
        "auto", "--color", "--colour", choices=("auto", "always", "never"), on=CHATS, group="Chat",
        help="Colour of answers.",
    )  # fmt: skip
    prefix: Setting[str] = option("", "--prefix", key="prefix", on=CHATS, group="Chat", help="Prompt of the chat.")
    interactive: Setting[bool] = option(
        False, "--interactive", "-i", kind="flag", on=CHATS, group="Chat",
        help="Go on interactively after the first answer.",
    )  # fmt: skip
    keepalive: Setting[str] = option(
        "", "--keepalive", kind="duration", on=("run",), group="Chat", metavar="DURATION",
        help="End the session after this time (30, 90s, 5m, 1h, 2d, 1w).",
    )  # fmt: skip
    summarize_after: Setting[int] = option(
        4, "--summarize-after", kind="int", key="summarize_after", minimum=0, on=CHATS, group="Chat", metavar="N",
        help="Summarize a long history every N messages, so that it fits into the context; 0 never does.",
    )  # fmt: skip
    mcp: Setting[tuple[str, ...]] = option(
        (), "--mcp", kind="list", on=CHATS, group="Chat", metavar="URL",
        help="Tool server (MCP over HTTP) whose tools the model may use; each call is asked for.",
    )  # fmt: skip
    files: Setting[tuple[str, ...]] = option(
        (), "--file", kind="list", on=CHATS, group="Chat", metavar="PATH",
        help="Send a text or an image with the question.",
    )  # fmt: skip
    system: Setting[str] = option("", "--system", on=CHATS, group="Chat", metavar="TEXT", help="System prompt.")
    schema: Setting[str] = option(
        "",
        "--schema",
        kind="path",
        on=CHATS,
        group="Chat",
        metavar="FILE",
        help="JSON schema that answers must follow.",
    )
    grammar: Setting[str] = option(
        "", "--grammar", kind="path", on=CHATS, group="Chat", metavar="FILE",
        help="Grammar (GBNF) that answers must follow; llama.cpp only.",
    )  # fmt: skip
    thoughts: Setting[str] = option(
        "show", "--thoughts", key="thoughts", choices=("show", "fold"), on=CHATS, group="Chat",
        help="Show what a model thinks before it answers, or fold it into one line.",
    )  # fmt: skip
    answer_json: Setting[bool] = option(
        False, "--json", kind="flag", on=CHATS, group="Chat", help="Print the answer as one JSON object."
    )
    url: Setting[str] = option(
        "http://127.0.0.1:8080/v1", "--url", on=("chat",), group="Chat",
        help="Server to talk to: http://HOST:PORT/v1 or unix:///PATH/TO/SOCKET.",
    )  # fmt: skip
    model: Setting[str] = option("", "--model", "-m", on=("chat",), group="Chat", help="Model name to ask for.")
    api_key: Setting[str] = option(
        "", "--api-key", key="api_key", on=("chat",), group="Chat", metavar="KEY", secret=True,
        help="Key of the server; better in RAMALAMA_API_KEY than on a command line, where others can read it.",
    )  # fmt: skip
    list_models: Setting[bool] = option(
        False, "--list", "--ls", kind="flag", on=("chat",), group="Chat", help="List the server's models."
    )
    list_choices: Setting[bool] = option(
        False, "--list", "--ls", kind="flag", on=("pull",), help="Only list what there is to choose from, with sizes."
    )
    verify: Setting[bool] = option(
        True, "--verify", kind="bool", key="verify", on=("pull",),
        help="Check that the model is a GGUF file that this machine can use.",
    )  # fmt: skip
    wait: Setting[float] = option(
        0.0, "--wait", kind="float", minimum=0, maximum=86400, on=("chat",), group="Chat", metavar="SECONDS",
        help="Wait until the server is healthy, at most this long.",
    )  # fmt: skip

    # One command each.
    format: Setting[str] = option(
        "table", "--format", on=("bench", "benchmarks list"), choices=("table", "json"), help="Form of the result."
    )
    plot: Setting[bool | None] = option(
        None, "--plot", kind="flag", on=("bench",), off_flags=("--no-plot",),
        help="Draw bars below the table; the default is to draw them on a terminal.",
    )  # fmt: skip
    save: Setting[bool | None] = option(
        None, "--save", kind="flag", on=("bench",), off_flags=("--no-save",),
        help="Keep the results, for `benchmarks` and for the choice of a back end; the default is to keep them.",
    )  # fmt: skip
    benchmarks_disable: Setting[bool] = option(
        False, kind="bool", key="benchmarks.disable", on=(), help="Neither keep results of bench nor go by them."
    )
    benchmarks_folder: Setting[str] = option(
        "", kind="path", key="benchmarks.storage_folder", on=(), help="Folder for the results of bench."
    )
    only_model: Setting[str] = option(
        "", "--model", "-m", on=("benchmarks list", "benchmarks compare"), help="Only results of this model."
    )
    only_backend: Setting[str] = option(
        "", "--backend", kind="names", on=("benchmarks list", "benchmarks compare"), choices=BACKENDS[1:],
        metavar="NAME", help="Only results of these back ends.",
    )  # fmt: skip
    limit: Setting[int | None] = option(
        None, "--limit", kind="int", minimum=0, on=("benchmarks list",), metavar="N", help="At most N runs."
    )
    offset: Setting[int] = option(
        0, "--offset", kind="int", minimum=0, on=("benchmarks list",), metavar="N", help="Leave the newest N runs out."
    )
    file: Setting[str] = option(
        "", "--file", kind="path", on=("perplexity",), metavar="FILE", help="Text whose perplexity is measured."
    )
    json: Setting[bool] = option(False, "--json", kind="flag", on=JSON_TOO, help="Print JSON.")
    ps_format: Setting[str] = option(
        "", "--format", on=("ps",), metavar="FORMAT", help="json, or a template of the engine's own ps."
    )
    noheading: Setting[bool] = option(
        False, "--noheading", "-n", kind="flag", on=("ps", "list"), help="Leave the heading out."
    )
    all_stores: Setting[bool] = option(
        False, "--all-stores", kind="flag", on=("list",), help="Also what other programs keep on this machine."
    )
    sort: Setting[str] = option(
        "name", "--sort", on=("list",), choices=("name", "size", "modified"), help="What to sort by."
    )
    order: Setting[str] = option("desc", "--order", on=("list",), choices=("desc", "asc"), help="Which way to sort.")
    get: Setting[str] = option(
        "", "--get", on=("inspect",), metavar="KEY", help="One member of the metadata, or all of them (all)."
    )
    everything: Setting[bool] = option(
        False, "--all", kind="flag", on=("inspect",), help="All of the metadata, and every tensor."
    )
    no_trunc: Setting[bool] = option(False, "--no-trunc", kind="flag", on=("ps",), help="Do not shorten columns.")
    all: Setting[bool] = option(
        False,
        "--all",
        "-a",
        kind="flag",
        on=("stop", "rm"),
        help="All of them: this program's containers (stop), the models in the store (rm).",
    )
    ignore: Setting[bool] = option(
        False, "--ignore", kind="flag", on=("stop", "rm"), help="No error for what does not exist."
    )
    older_than: Setting[str] = option(
        "1d", "--older-than", kind="duration", on=("prune",), metavar="DURATION",
        help="Only what was last changed so long ago (30, 90s, 5m, 1h, 2d, 1w); 0 for all of it.",
    )  # fmt: skip
    export_image: Setting[str] = option(
        "", "--image", on=("export",), metavar="IMAGE",
        help="Put this container image into the file too; auto: the one in which the model would be served here.",
    )  # fmt: skip
    repair: Setting[bool] = option(
        False, "--repair", kind="flag", on=("fsck",), help="Remove what is damaged, so that the next pull fetches it."
    )
    quick: Setting[bool] = option(
        False, "--quick", kind="flag", on=("fsck",), help="Compare the sizes of files, but do not read them."
    )
    follow: Setting[bool] = option(
        False, "--follow", "-f", kind="flag", on=("logs",), help="Go on printing what is logged from now."
    )
    tail: Setting[int | None] = option(
        None, "--tail", kind="int", minimum=0, on=("logs",), metavar="N", help="Only the last N lines."
    )
    shortnames: Setting[bool] = option(
        False, "--shortnames", kind="flag", on=("info",), help="List short names of models."
    )
    host_facts_out: Setting[str] = option(
        "", "--host-facts-out", kind="output", on=("info",), metavar="FILE",
        help="Write what is known about this machine, without names, to pass on; '-' prints it.",
    )  # fmt: skip
    smoke: Setting[bool] = option(
        False, "--smoke", kind="flag", on=("doctor",), help="Also run the demo model, and measure its speed."
    )
    origin: Setting[bool] = option(
        False, "--origin", kind="flag", on=("config show",), help="Tell where each value came from."
    )

    gguf: Setting[str | None] = option(
        None, "--gguf", kind="optional", on=("convert",), choices=QUANTIZATIONS, metavar="[QUANT]",
        help=f"Quantize: {', '.join(QUANTIZATIONS)}; alone: the one of runtimes.llama_cpp.gguf_quantization_mode.",
    )  # fmt: skip
    gguf_quantization_mode: Setting[str] = option(
        "Q4_K_M", key="runtimes.llama_cpp.gguf_quantization_mode", on=(), choices=QUANTIZATIONS,
        help="Quantization that convert --gguf alone stands for.",
    )  # fmt: skip
    tools_image: Setting[str] = option(
        "", "--tools-image", key="tools_image", on=("convert",), metavar="IMAGE",
        help="Image with the converter (llama-convert-hf-to-gguf); --image is the one with llama-quantize.",
    )  # fmt: skip
    default_tools_image: Setting[str] = option(
        "", key="default_tools_image", on=(), help="Image with the converter, instead of the family's."
    )
    push_type: Setting[str] = option(
        "raw", "--type", key="convert_type", on=("push", "convert"), choices=("artifact", "car", "raw"),
        help="What to push: an artifact, an image of the files alone (raw), or one with a small system below (car).",
    )  # fmt: skip
    carimage: Setting[str] = option(
        "registry.access.redhat.com/ubi10-micro:latest", "--carimage", key="carimage", on=("push", "convert"),
        metavar="IMAGE", hidden=True, help="Image that lies below those of the type car.",
    )  # fmt: skip
    username: Setting[str] = option(
        "", "--username", "-u", on=("login",), metavar="USER", help="User at the registry; asked for on a terminal."
    )
    password: Setting[str] = option(
        "", "--password", "-p", on=("login",), metavar="PASSWORD", secret=True,
        help="Password; better by --password-stdin, since others can read a command line.",
    )  # fmt: skip
    password_stdin: Setting[bool] = option(
        False,
        "--password-stdin",
        kind="flag",
        on=("login",),
        help="Read the password, or the token, from standard input.",
    )
    token: Setting[str] = option(
        "", "--token", on=("login", "logout"), metavar="TOKEN", secret=True,
        help="Token of Hugging Face; better by --password-stdin.",
    )  # fmt: skip

    # Parts of the dialect that this version refuses by name.
    generate: Setting[str] = option(
        "", "--generate", on=("serve",), metavar="TYPE[:DIR]", not_yet="deployment files are not generated yet",
        help="Write deployment files.",
    )  # fmt: skip
    add_to_unit: Setting[tuple[str, ...]] = option(
        (), "--add-to-unit", kind="list", on=("serve",), metavar="SECTION:KEY:VALUE",
        not_yet="deployment files are not generated yet", help="Add a key to the generated unit.",
    )  # fmt: skip
    models_max: Setting[int] = option(
        4, "--models-max", kind="int", minimum=1, on=("serve",), not_yet="several models are not served yet",
        help="Models loaded at the same time.",
    )  # fmt: skip
    rag: Setting[str] = option("", "--rag", on=SERVERS, not_yet="RAG is not supported yet", help="RAG data.")
    rag_image: Setting[str] = option(
        "", "--rag-image", key="default_rag_image", on=SERVERS, not_yet="RAG is not supported yet", help="RAG image."
    )
    api: Setting[str] = option(
        "none", "--api", key="api", choices=("none", "llama-stack"), on=SERVERS, group="Model and server",
        help="API layer in front of the server.",
    )  # fmt: skip
    stack_image: Setting[str] = option(
        "", "--stack-image", key="stack_image", on=("serve",), not_yet="llama-stack is not supported yet",
        help="Image of llama-stack.",
    )  # fmt: skip
    dri: Setting[str] = option(
        "on", "--dri", choices=("on", "off"), on=("serve",), hidden=True,
        help="Accepted for the dialect; only the accelerator's own devices are ever passed.",
    )  # fmt: skip


def all_options() -> Mapping[str, Option]:
    """Every option by its name in ``Settings``, in declaration order."""
    declared: Mapping[str, Option] = Settings.__value_fields__  # type: ignore[attr-defined]
    return declared


def options_of(command: str) -> Mapping[str, Option]:
    """The options that a command takes, by name."""
    return {name: o for name, o in all_options().items() if o.flags and (o.commands == ALL or command in o.commands)}


def own_options(command: str) -> Mapping[str, Option]:
    """The options that a command takes and that are not common to all, by name."""
    return {name: o for name, o in options_of(command).items() if o.commands != ALL}


def global_options() -> Mapping[str, Option]:
    """The options that may stand before the command's name too."""
    return {name: o for name, o in all_options().items() if o.flags and o.commands == ALL}


# Keys of the dialect's [ramalama] table that no part of this version reads: known, so that nobody is warned about them.
DORMANT_KEYS = (
    "default_pi_image", "default_stack_image", "dryrun", "log_level", "rag_image", "tempdir", "tools_images",
    "user.no_missing_gpu_prompt", "provider.openai.api_key",
    "http_client.max_retries", "http_client.max_retry_delay",
    "runtimes.mlx.temp",
)  # fmt: skip


@value
class Command:
    """One command: its summary, its positional words and how many of them are needed."""

    summary: str
    positionals: str = ""  # as shown in usage
    least: int = 0
    most: int | None = 0  # None: any number
    aliases: tuple[str, ...] = ()
    starts: bool = False  # starts a server or a tool, so all of the server options apply
    passes_through: bool = False  # words after the command belong to another command line (explain)


COMMANDS: Mapping[str, Command] = {
    "run": Command("Run a model and talk to it.", "MODEL [PROMPT]...", 1, None, starts=True),
    "serve": Command("Serve a model over HTTP.", "MODEL...", 1, None, starts=True),
    "bench": Command("Measure the speed of a model.", "MODEL", 1, 1, ("benchmark",), starts=True),
    "benchmarks list": Command("List the results of bench.", "", 0, 0),
    "benchmarks show": Command("Print everything about one run of bench.", "ID", 1, 1),
    "benchmarks compare": Command("Compare the speeds of runs of bench.", "[ID]...", 0, None),
    "perplexity": Command("Measure how well a model predicts a text.", "MODEL", 1, 1, starts=True),
    "list": Command("List the models on this machine.", "", 0, 0, ("ls",)),
    "inspect": Command("Tell what a model's file says of itself.", "MODEL", 1, 1),
    "push": Command("Put a model into a registry.", "MODEL [TARGET]", 1, 2),
    "convert": Command("Make a GGUF of safetensors, or quantize one.", "SOURCE TARGET", 2, 2),
    "login": Command("Keep the password for a registry, or a hub's token.", "[REGISTRY]", 0, 1),
    "logout": Command("Forget the password for a registry.", "[REGISTRY]", 0, 1),
    "pull": Command("Fetch a model, or what is new of it.", "MODEL", 1, 1),
    "shortnames": Command("List the short names of models.", "", 0, 0),
    "rm": Command("Remove models from the store.", "[MODEL]...", 0, None),
    "df": Command("Tell what the models take on the disk.", "", 0, 0),
    "prune": Command("Remove files of the store that no model uses.", "", 0, 0),
    "fsck": Command("Check that the store is sound.", "", 0, 0),
    "tag": Command("Give a model of the store another name.", "MODEL NAME", 2, 2),
    "export": Command("Write a model into one file, for another machine.", "MODEL FILE", 2, 2),
    "import": Command("Put a model from such a file into the store.", "FILE [NAME]", 1, 2),
    "fit": Command("Tell how much memory a model needs, and whether it fits.", "MODEL", 1, 1),
    "chat": Command("Talk to a server that is running.", "[PROMPT]...", 0, None),
    "ps": Command("List this program's containers.", "", 0, 0, ("containers",)),
    "stop": Command("Stop containers.", "[NAME]...", 0, None),
    "logs": Command("Print a container's log.", "NAME", 1, 1),
    "info": Command("Print what is known about this machine.", "", 0, 0),
    "doctor": Command("Check what running models needs, and how to repair it.", "", 0, 0),
    "explain": Command("Explain every decision of a command line.", "COMMAND...", 1, None, passes_through=True),
    "config show": Command("Print the merged configuration.", "", 0, 0),
    "version": Command("Print the version.", "", 0, 0),
    "help": Command("Print help, of one command or of all.", "[COMMAND]...", 0, None),
}

# Commands of the dialect that this version refuses by name: the reason.
COMMANDS_NOT_YET: Mapping[str, str] = {
    "daemon": "the daemon is not built yet",
    "models": "listing a provider's models is not built yet",
    "rag": "RAG is not supported yet",
    "sandbox": "sandboxed agents are not built yet",
}
