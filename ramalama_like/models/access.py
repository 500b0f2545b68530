"""How hubs and registries are reached: one value that settings make, and that every source is handed."""

from __future__ import annotations

from ramalama_like.value import value

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

# The variables that mean something to a hub, a registry, or a library that talks to one. A user's own stores are
# found by some of them too.
VARIABLES = (
    "HTTP_PROXY", "http_proxy", "HTTPS_PROXY", "https_proxy", "ALL_PROXY", "all_proxy", "NO_PROXY", "no_proxy",
    "SSL_CERT_FILE", "SSL_CERT_DIR", "REQUESTS_CA_BUNDLE", "CURL_CA_BUNDLE",
    "HF_ENDPOINT", "HF_HOME", "HF_HUB_CACHE", "HUGGINGFACE_HUB_CACHE", "HF_TOKEN", "HUGGING_FACE_HUB_TOKEN",
    "HF_TOKEN_PATH", "HF_HUB_OFFLINE", "HF_HUB_DISABLE_IMPLICIT_TOKEN",
    "MODELSCOPE_CACHE", "MODELSCOPE_DOMAIN", "MODELSCOPE_API_TOKEN", "OLLAMA_MODELS", "LLAMA_CACHE",
    "LLAMA_ARG_MODELS_DIR", "REGISTRY_AUTH_FILE", "DOCKER_CONFIG", "DOCKER_AUTH_CONFIG", "XDG_RUNTIME_DIR",
    "XDG_CACHE_HOME", "XDG_DATA_HOME", "XDG_CONFIG_HOME",
)  # fmt: skip


@value
class Access:
    """The user's wishes and rights about networks. Tokens are never shown: ``repr`` leaves them out."""

    offline: bool = False  # nothing may be asked for
    verify: bool = True  # certificates
    authfile: str = ""  # credentials for registries; empty: where the engines keep theirs
    hf_endpoint: str = "https://huggingface.co"  # addresses without a slash at their end
    hf_token: str = ""
    ms_endpoint: str = "https://modelscope.cn"
    ollama_registry: str = "https://registry.ollama.ai"
    home: str = ""
    variables: Mapping[str, str] = {}  # those of VARIABLES that are set

    def __repr__(self) -> str:
        return f"Access(offline={self.offline}, verify={self.verify}, hf_endpoint={self.hf_endpoint!r})"
