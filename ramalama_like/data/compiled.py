"""Generated from this folder's .toml files by ``python -m ramalama_like.data.compile``: do not edit."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

TABLES: dict[str, dict[str, Any]] = {
    "accelerators": {
        "device_nodes": (
            "/dev/dri/renderD#",
            "/dev/dri/card#",
            "/dev/kfd",
            "/dev/dxg",
            "/dev/nvidia#",
            "/dev/nvidiactl",
            "/dev/nvidia-uvm",
            "/dev/nvidia-uvm-tools",
            "/dev/nvidia-modeset",
            "/dev/accel/accel#",
            "/dev/davinci#",
            "/dev/davinci_manager",
            "/dev/devmm_svm",
            "/dev/hisi_hdc",
            "/dev/mtgpu#",
        ),
        "vendor_order": ("nvidia", "amd", "intel", "ascend", "moore-threads", "apple-asahi"),
        "integrated_gfx": (
            "gfx801",
            "gfx902",
            "gfx909",
            "gfx90c",
            "gfx1013",
            "gfx1033",
            "gfx1035",
            "gfx1036",
            "gfx1037",
            "gfx1103",
            "gfx1150",
            "gfx1151",
            "gfx1152",
            "gfx1153",
        ),
        "aliases": {
            "intel": "sycl",
        },
        "vendors": {
            "nvidia": {
                "title": "NVIDIA card",
                "pci": "10de",
                "classes": ("03",),
                "preference": ("cuda", "vulkan"),
                "preference_why": "it is NVIDIA's own and computes faster",
                "cdi_drivers": ("nvidia",),
                "cdi_kind": "nvidia.com/gpu",
                "cdi_repair": "sudo nvidia-ctk cdi generate --output=/etc/cdi/nvidia.yaml",
                "docker_gpus": True,
            },
            "amd": {
                "title": "AMD Radeon",
                "pci": "1002",
                "classes": ("03", "12"),
                "preference": ("vulkan", "rocm"),
                "preference_why": "it runs on every Radeon, ROCm only on those that its image carries code for",
            },
            "intel": {
                "title": "Intel graphics",
                "pci": "8086",
                "classes": ("03",),
                "preference": ("vulkan", "sycl", "openvino"),
                "preference_why": "its driver knows every card, and its image is the smaller one",
                "integrated_pci": "0000:00:02.0",
            },
            "ascend": {
                "title": "Ascend NPU",
                "pci": "19e5",
                "classes": ("12",),
                "preference": ("cann",),
            },
            "moore-threads": {
                "title": "Moore Threads card",
                "pci": "1ed5",
                "classes": ("03", "12"),
                "preference": ("musa",),
            },
            "apple-asahi": {
                "title": "Apple GPU",
                "pci": "",
                "classes": (),
                "preference": ("vulkan",),
            },
        },
        "backends": {
            "cpu": {
                "title": "CPU",
                "vendors": (),
            },
            "vulkan": {
                "title": "Vulkan",
                "vendors": ("nvidia", "amd", "intel", "apple-asahi"),
                "render_node": True,
                "drivers": {
                    "nvidia": ("nvidia", "nouveau", "nova"),
                    "amd": ("amdgpu",),
                    "intel": ("i915", "xe"),
                    "apple-asahi": ("asahi",),
                },
                "docker_defaults": {
                    "NVIDIA_DRIVER_CAPABILITIES": "compute,graphics,utility",
                },
            },
            "rocm": {
                "title": "ROCm",
                "vendors": ("amd",),
                "render_node": True,
                "needs": ("/dev/kfd",),
                "native": {
                    "variable": "HIP_VISIBLE_DEVICES",
                },
                "drivers": {
                    "amd": ("amdgpu",),
                },
            },
            "cuda": {
                "title": "CUDA",
                "vendors": ("nvidia",),
                "native": {
                    "variable": "CUDA_VISIBLE_DEVICES",
                    "by_uuid": True,
                    "order": {
                        "CUDA_DEVICE_ORDER": "PCI_BUS_ID",
                    },
                },
                "drivers": {
                    "nvidia": ("nvidia",),
                },
            },
            "sycl": {
                "title": "SYCL",
                "vendors": ("intel",),
                "render_node": True,
                "drivers": {
                    "intel": ("i915", "xe"),
                },
            },
            "openvino": {
                "title": "OpenVINO",
                "vendors": ("intel",),
                "render_node": True,
                "passes": ("/dev/accel/accel#",),
                "drivers": {
                    "intel": ("i915", "xe"),
                },
                "defaults": {
                    "GGML_OPENVINO_DEVICE": "GPU",
                    "GGML_OPENVINO_STATEFUL_EXECUTION": "1",
                },
            },
            "cann": {
                "title": "CANN",
                "vendors": ("ascend",),
                "needs": ("/dev/davinci#", "/dev/davinci_manager"),
                "passes": ("/dev/devmm_svm", "/dev/hisi_hdc"),
                "per_card": "/dev/davinci#",
                "native": {
                    "variable": "ASCEND_RT_VISIBLE_DEVICES",
                },
            },
            "musa": {
                "title": "MUSA",
                "vendors": ("moore-threads",),
                "needs": ("/dev/mtgpu#",),
                "per_card": "/dev/mtgpu#",
                "docker_runtime": "mthreads",
                "docker_runtime_variable": "MTHREADS_VISIBLE_DEVICES",
                "native": {
                    "variable": "MUSA_VISIBLE_DEVICES",
                },
                "defaults": {
                    "MTHREADS_VISIBLE_DEVICES": "all",
                },
            },
            "metal": {
                "title": "Metal",
                "vendors": (),
                "system": "darwin",
                "architectures": ("arm64",),
                "no_container": "Metal works only outside of containers (--nocontainer)",
            },
        },
        "variables": {
            "CUDA_VISIBLE_DEVICES": {
                "read_by": ("cuda",),
                "vendor": "nvidia",
                "numbering": "nvidia",
            },
            "HIP_VISIBLE_DEVICES": {
                "read_by": ("rocm",),
                "vendor": "amd",
                "numbering": "hip",
            },
            "ROCR_VISIBLE_DEVICES": {
                "read_by": ("rocm",),
                "vendor": "amd",
                "numbering": "hip",
            },
            "GGML_VK_VISIBLE_DEVICES": {
                "read_by": ("vulkan",),
                "numbering": "vulkan",
            },
            "ONEAPI_DEVICE_SELECTOR": {
                "read_by": ("sycl",),
                "vendor": "intel",
                "numbering": "own",
            },
            "INTEL_VISIBLE_DEVICES": {
                "vendor": "intel",
                "numbering": "own",
            },
            "ASCEND_VISIBLE_DEVICES": {
                "read_by": ("cann",),
                "vendor": "ascend",
                "numbering": "own",
            },
            "MUSA_VISIBLE_DEVICES": {
                "read_by": ("musa",),
                "vendor": "moore-threads",
                "numbering": "own",
            },
            "MTHREADS_VISIBLE_DEVICES": {
                "read_by": ("musa",),
                "vendor": "moore-threads",
                "numbering": "own",
            },
            "ASAHI_VISIBLE_DEVICES": {
                "vendor": "apple-asahi",
                "numbering": "own",
            },
            "HSA_VISIBLE_DEVICES": {
                "vendor": "amd",
                "numbering": "own",
            },
            "HSA_OVERRIDE_GFX_VERSION": {},
            "CUDA_LAUNCH_BLOCKING": {},
            "GGML_OPENVINO_DEVICE": {},
            "GGML_OPENVINO_STATEFUL_EXECUTION": {},
        },
        "selinux": (
            {
                "device": "/dev/kfd",
                "boolean": "container_use_devices",
            },
            {
                "device": "/dev/accel",
                "boolean": "container_use_devices",
            },
            {
                "device": "/dev/davinci",
                "boolean": "container_use_devices",
            },
            {
                "device": "/dev/mtgpu",
                "boolean": "container_use_devices",
            },
            {
                "device": "nvidia.com/gpu",
                "boolean": "container_use_xserver_devices",
            },
        ),
    },
    "causes": {
        "cause": (
            {
                "text": "unknown model architecture",
                "why": "this build of llama.cpp does not know the model's architecture",
                "hint": "use a newer image with --image, or --pull always",
            },
            {
                "text": "missing tensor",
                "why": "the model file and this build of llama.cpp do not fit each other",
                "hint": "use a newer image, or get the model's file again",
            },
            {
                "text": "failed to allocate",
                "why": "there is not enough memory",
                "hint": "try a smaller --ctx-size, fewer layers with --ngl, or a smaller model",
            },
            {
                "text": "out of memory",
                "why": "there is not enough memory",
                "hint": "try a smaller --ctx-size, fewer layers with --ngl, or a smaller model",
            },
            {
                "text": "invalid argument:",
                "why": "the server does not know an argument",
                "hint": "check --runtime-args against the image's llama-server --help",
            },
            {
                "text": "couldn't bind",
                "why": "the server could not use its address",
                "hint": "choose another one with --port",
            },
            {
                "text": "address already in use",
                "why": "the port is taken",
                "hint": "choose another one with --port",
            },
            {
                "text": "port is already allocated",
                "why": "the port is taken",
                "hint": "choose another one with --port",
            },
            {
                "text": "is already in use by",
                "why": "a container of this name exists",
                "hint": "stop it with `ramalama-like stop NAME`, or choose another name with --name",
            },
            {
                "text": "Cannot connect to the Docker daemon",
                "why": "docker's daemon is not running",
                "hint": "start it (systemctl start docker), or use --engine podman",
            },
            {
                "text": "permission denied while trying to connect to the Docker daemon",
                "why": "your user may not use docker's daemon",
                "hint": "add the user to the group docker, or use --engine podman",
            },
            {
                "text": "unresolvable CDI devices",
                "why": "the CDI specification does not name this device",
                "hint": "write it anew: sudo nvidia-ctk cdi generate --output=/etc/cdi/nvidia.yaml",
            },
            {
                "text": "error gathering device information",
                "why": "a device does not exist or cannot be opened",
                "hint": "check the paths given with --device",
            },
            {
                "text": "manifest unknown",
                "why": "the registry has no such image",
                "hint": "check the image's name and tag",
            },
            {
                "text": "initializing source",
                "why": "the image is not here and could not be pulled",
                "hint": "check the network and the image's name, or choose an image that is here with --image",
            },
            {
                "text": "Unable to find image",
                "why": "the image is not here and could not be pulled",
                "hint": "check the network and the image's name, or choose an image that is here with --image",
            },
            {
                "text": "image not known",
                "why": "the image is not here",
                "hint": "let it be pulled with --pull missing, or choose another with --image",
            },
            {
                "text": "No such image",
                "why": "the image is not here",
                "hint": "let it be pulled with --pull missing, or choose another with --image",
            },
            {
                "text": "executable file `llama-server` not found",
                "why": "the image holds no llama-server",
                "hint": "choose another image with --image",
            },
            {
                "text": "executable file not found",
                "why": "the image does not hold the program",
                "hint": "choose another image with --image",
            },
            {
                "text": "failed to load model",
                "why": "the server could not load the model",
                "hint": "see the lines above",
            },
            {
                "text": "error loading model",
                "why": "the server could not load the model",
                "hint": "see the lines above",
            },
        ),
    },
    "engines": {
        "podman": {
            "oldest": "4.3",
            "assumed": "5.4",
            "keep_groups_runtimes": ("crun", "krun"),
            "runtime_order": ("crun", "runc"),
            "pull": {
                "always": "always",
                "missing": "missing",
                "never": "never",
                "newer": "newer",
            },
            "has": {
                "authfile": "1.0",
                "tls_verify": "1.0",
                "keep_groups": "3.2",
                "cdi": "4.1",
                "tmp_on_read_only": "1.0",
            },
        },
        "docker": {
            "oldest": "20.10",
            "assumed": "28.0",
            "pull": {
                "always": "always",
                "missing": "missing",
                "never": "never",
                "newer": "missing",
            },
            "has": {
                "gpus": "19.3",
                "cdi": "25.0",
                "host_gateway": "20.10",
            },
        },
        "entrypoint": (
            {
                "prefix": "ghcr.io/ggml-org/llama.cpp:server",
                "other": "the tags that begin with full hold every program",
                "words": {
                    "llama-server": "",
                },
                "instead": "ghcr.io/ggml-org/llama.cpp:full",
            },
            {
                "prefix": "ghcr.io/ggml-org/llama.cpp:full",
                "other": "the ramalama family holds every program",
                "words": {
                    "llama-server": "--server",
                    "llama-bench": "--bench",
                    "llama-perplexity": "--perplexity",
                },
            },
        ),
    },
    "health": {
        "disk": {
            "store_least_bytes": 500000000,
            "store_enough_bytes": 10000000000,
            "image_least_bytes": 4000000000,
            "image_enough_bytes": 16000000000,
        },
        "memory": {
            "least_bytes": 1000000000,
            "enough_bytes": 6000000000,
        },
        "image": {
            "old_days": 180,
        },
        "clock": {
            "earliest": "2026-11-01",
            "warn_s": 300,
            "fail_s": 86400,
        },
        "account": {
            "ids": 65536,
        },
        "install": {
            "debian": "sudo apt-get install {package}",
            "ubuntu": "sudo apt-get install {package}",
            "fedora": "sudo dnf install {package}",
            "rhel": "sudo dnf install {package}",
            "centos": "sudo dnf install {package}",
            "arch": "sudo pacman -S {package}",
            "suse": "sudo zypper install {package}",
            "opensuse": "sudo zypper install {package}",
            "alpine": "sudo apk add {package}",
            "darwin": "brew install {package}",
        },
        "packages": {
            "docker": {
                "debian": "docker.io",
                "ubuntu": "docker.io",
                "fedora": "moby-engine",
            },
            "nvidia-driver": {
                "fedora": "akmod-nvidia",
                "arch": "nvidia",
            },
            "newuidmap": {
                "debian": "uidmap",
                "ubuntu": "uidmap",
                "fedora": "shadow-utils",
                "rhel": "shadow-utils",
                "centos": "shadow-utils",
                "arch": "shadow",
                "suse": "shadow",
                "opensuse": "shadow",
                "alpine": "shadow-uidmap",
            },
        },
    },
    "images": {
        "default_family": "ramalama",
        "override_keys": {
            "GGML_VK_VISIBLE_DEVICES": "vulkan",
            "HIP_VISIBLE_DEVICES": "rocm",
            "CUDA_VISIBLE_DEVICES": "cuda",
            "INTEL_VISIBLE_DEVICES": "sycl",
            "OPENVINO_VISIBLE_DEVICES": "openvino",
            "ASCEND_VISIBLE_DEVICES": "cann",
            "MUSA_VISIBLE_DEVICES": "musa",
            "ASAHI_VISIBLE_DEVICES": "vulkan",
            "intel": "sycl",
        },
        "families": {
            "ramalama": {
                "ref": "quay.io/ramalama/{name}:{tag}",
                "tag": "0.25",
                "also": ("llama.cpp",),
                "images": {
                    "cpu": {
                        "name": "ramalama",
                        "architectures": ("amd64", "arm64"),
                        "plain": True,
                    },
                    "vulkan": {
                        "name": "ramalama",
                        "architectures": ("amd64", "arm64"),
                        "plain": True,
                    },
                    "rocm": {
                        "name": "rocm",
                        "architectures": ("amd64",),
                        "gfx": (
                            "gfx803",
                            "gfx900",
                            "gfx906",
                            "gfx908",
                            "gfx90a",
                            "gfx942",
                            "gfx1010",
                            "gfx1030",
                            "gfx1032",
                            "gfx1100",
                            "gfx1101",
                            "gfx1102",
                            "gfx1151",
                            "gfx1200",
                            "gfx1201",
                        ),
                    },
                    "cuda": {
                        "name": "cuda",
                        "architectures": ("amd64", "arm64"),
                        "contains": "CUDA 12.9",
                        "driver_minimum": "525.60.13",
                        "driver_full": "575",
                    },
                    "sycl": {
                        "name": "intel-gpu",
                        "architectures": ("amd64",),
                    },
                    "openvino": {
                        "name": "openvino",
                        "architectures": ("amd64",),
                    },
                    "cann": {
                        "name": "cann",
                        "architectures": ("amd64", "arm64"),
                    },
                    "musa": {
                        "name": "musa",
                        "architectures": ("amd64",),
                    },
                    "metal": {
                        "missing": "Metal works only outside of containers (--nocontainer)",
                    },
                },
            },
            "llama.cpp": {
                "ref": "ghcr.io/ggml-org/llama.cpp:{name}",
                "tag": "",
                "also": ("ramalama",),
                "images": {
                    "cpu": {
                        "name": "server",
                        "architectures": ("amd64", "arm64", "s390x"),
                        "plain": True,
                        "names": {
                            "s390x": "server-s390x",
                        },
                    },
                    "vulkan": {
                        "name": "server-vulkan",
                        "architectures": ("amd64", "arm64"),
                    },
                    "rocm": {
                        "name": "server-rocm",
                        "architectures": ("amd64",),
                        "contains": "ROCm 7.2",
                        "gfx": (
                            "gfx908",
                            "gfx90a",
                            "gfx942",
                            "gfx1030",
                            "gfx1100",
                            "gfx1101",
                            "gfx1102",
                            "gfx1150",
                            "gfx1151",
                            "gfx1200",
                            "gfx1201",
                        ),
                    },
                    "cuda": {
                        "name": "server-cuda",
                        "architectures": ("amd64", "arm64"),
                        "contains": "CUDA 12.8",
                        "driver_minimum": "525.60.13",
                        "driver_full": "570",
                    },
                    "sycl": {
                        "name": "server-intel",
                        "architectures": ("amd64",),
                    },
                    "openvino": {
                        "name": "server-openvino",
                        "architectures": ("amd64",),
                    },
                    "cann": {
                        "missing": "the llama.cpp project publishes no CANN image",
                    },
                    "musa": {
                        "name": "server-musa",
                        "architectures": ("amd64",),
                    },
                    "metal": {
                        "missing": "Metal works only outside of containers (--nocontainer)",
                    },
                },
            },
            "local": {
                "ref": "localhost/ramalama-like/{name}:{tag}",
                "tag": "{version}",
                "also": ("ramalama",),
                "images": {
                    "cpu": {
                        "name": "cpu",
                        "architectures": ("amd64", "arm64", "s390x", "ppc64le"),
                        "plain": True,
                    },
                    "vulkan": {
                        "name": "vulkan",
                        "architectures": ("amd64", "arm64", "s390x", "ppc64le"),
                    },
                    "rocm": {
                        "name": "rocm",
                        "architectures": ("amd64",),
                        "gfx": (
                            "gfx803",
                            "gfx900",
                            "gfx906",
                            "gfx908",
                            "gfx90a",
                            "gfx1010",
                            "gfx1030",
                            "gfx1100",
                            "gfx1101",
                            "gfx1102",
                        ),
                    },
                    "cuda": {
                        "missing": "containers/ has no recipe for CUDA",
                    },
                    "sycl": {
                        "missing": "containers/ has no recipe for SYCL",
                    },
                    "openvino": {
                        "missing": "containers/ has no recipe for OpenVINO",
                    },
                    "cann": {
                        "missing": "containers/ has no recipe for CANN",
                    },
                    "musa": {
                        "missing": "containers/ has no recipe for MUSA",
                    },
                    "metal": {
                        "missing": "Metal works only outside of containers (--nocontainer)",
                    },
                },
            },
        },
    },
}
