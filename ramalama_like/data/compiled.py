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
        "vendor_order": (
            "nvidia",
            "amd",
            "intel",
            "ascend",
            "moore-threads",
            "apple-asahi",
            "apple",
        ),
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
                "node": "/dev/davinci#",
            },
            "moore-threads": {
                "title": "Moore Threads card",
                "pci": "1ed5",
                "classes": ("03", "12"),
                "preference": ("musa",),
                "node": "/dev/mtgpu#",
            },
            "apple-asahi": {
                "title": "Apple GPU",
                "pci": "",
                "classes": (),
                "preference": ("vulkan",),
            },
            "apple": {
                "title": "Apple GPU",
                "pci": "",
                "classes": (),
                "preference": ("vulkan",),
                "engines": ("podman",),
                "virtual_nodes": ("/dev/dri",),
                "engine_reason": "{engine} does not pass the GPU on; a podman machine on libkrun would, --nocontainer would use Metal",
                "driver_reason": "the podman machine's provider is {driver}; libkrun would give the GPU, --nocontainer would use Metal",
            },
        },
        "unseen": {
            "wsl": "WSL shows Windows' cards only as /dev/dxg, which reaches containers for NVIDIA's cards alone, by a CDI spec",
            "in_container": "this runs inside a container, where the machine's cards may be hidden",
        },
        "backends": {
            "cpu": {
                "title": "CPU",
                "vendors": (),
            },
            "vulkan": {
                "title": "Vulkan",
                "vendors": ("nvidia", "amd", "intel", "apple-asahi", "apple"),
                "render_node": True,
                "drivers": {
                    "nvidia": ("nvidia", "nouveau", "nova"),
                    "amd": ("amdgpu",),
                    "intel": ("i915", "xe"),
                    "apple-asahi": ("asahi",),
                    "apple": ("libkrun",),
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
                "npu_defaults": {
                    "GGML_OPENVINO_DEVICE": "NPU",
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
                "text": "check_tensor_dims:",
                "why": "the model file and this build of llama.cpp do not fit each other",
                "hint": "use a newer image, or get the model's file again",
            },
            {
                "text": "model is corrupted or incomplete",
                "why": "the model file is damaged or not complete",
                "hint": "get the model's file again",
            },
            {
                "text": "failed to initialize chat template",
                "why": "the chat template has a fault",
                "hint": "choose another with --runtime-args '--chat-template NAME', or --runtime-args --no-jinja",
            },
            {
                "text": "the supplied chat template is not supported",
                "why": "the chat template that was asked for has a fault",
                "hint": "choose another with --runtime-args '--chat-template NAME'",
            },
            {
                "text": "failed to parse chat template",
                "why": "the chat template has a fault",
                "hint": "choose another with --runtime-args '--chat-template NAME', or --runtime-args --no-jinja",
            },
            {
                "text": "ErrorOutOfDeviceMemory",
                "why": "there is not enough memory on the GPU",
                "hint": "try a smaller --ctx-size, fewer layers with --ngl, or a smaller model",
            },
            {
                "text": "cudaMalloc failed: out of memory",
                "why": "there is not enough memory on the GPU",
                "hint": "try a smaller --ctx-size, fewer layers with --ngl, or a smaller model",
            },
            {
                "text": "ErrorOutOfHostMemory",
                "why": "there is not enough memory",
                "hint": "try a smaller --ctx-size or a smaller model",
            },
            {
                "text": "insufficient memory (attempted to allocate",
                "why": "there is not enough memory",
                "hint": "try a smaller --ctx-size or a smaller model",
            },
            {
                "text": "failed to allocate buffer",
                "why": "there is not enough memory",
                "hint": "try a smaller --ctx-size, fewer layers with --ngl, or a smaller model",
            },
            {
                "text": "CUDA driver version is insufficient for CUDA runtime version",
                "why": "the NVIDIA driver is older than the image's CUDA",
                "hint": "update the driver, or choose an image with an older CUDA with --image, or --backend vulkan",
                "gpu": "also",
            },
            {
                "text": "system has unsupported display driver / cuda driver combination",
                "why": "the NVIDIA driver's kernel part and its libraries are of different versions",
                "hint": "restart after the driver's update, and write the CDI specification anew",
                "gpu": "also",
            },
            {
                "text": "no kernel image is available for execution on the device",
                "why": "the image was built without support for this GPU's architecture",
                "hint": "choose another image with --image, or --backend vulkan",
                "gpu": "also",
            },
            {
                "text": "invalid device function",
                "why": "the image was built without support for this GPU's architecture",
                "hint": "choose another image with --image, or --backend vulkan",
                "gpu": "also",
            },
            {
                "text": "TensileLibrary.dat",
                "why": "the image's rocBLAS has no kernels for this GPU's architecture",
                "hint": "choose another image with --image, or --backend vulkan",
                "gpu": "also",
            },
            {
                "text": "Could not initialize Tensile host: No devices found",
                "why": "ROCm found no GPU that it may open",
                "hint": "check who may open /dev/kfd and /dev/dri/renderD*: see `ramalama-like explain`",
                "gpu": "also",
            },
            {
                "text": "/dev/kfd read-write: Permission denied",
                "why": "/dev/kfd may not be opened",
                "hint": "add your user to the group that owns it (often render), and see `ramalama-like explain`",
                "gpu": "also",
            },
            {
                "text": "/dev/kfd: Permission denied",
                "why": "/dev/kfd may not be opened",
                "hint": "add your user to the group that owns it (often render), and see `ramalama-like explain`",
                "gpu": "also",
            },
            {
                "text": "failed to open /dev/dri/",
                "why": "the GPU's node in /dev/dri may not be opened",
                "hint": "add your user to the group that owns it (often render), and see `ramalama-like explain`",
                "gpu": "also",
            },
            {
                "text": "no ROCm-capable device is detected",
                "why": "ROCm found no GPU that it can use and may open",
                "hint": "check /dev/kfd and /dev/dri/renderD* with `ramalama-like explain`, or try --backend vulkan",
                "gpu": "also",
            },
            {
                "text": "no CUDA-capable device is detected",
                "why": "CUDA found no GPU",
                "hint": "check the driver with nvidia-smi, and the CDI specification with nvidia-ctk cdi list",
                "gpu": "also",
            },
            {
                "text": "ggml_cuda_init: failed to initialize",
                "why": "the GPU's driver could not be used",
                "hint": "see the lines of ggml_cuda_init in its log with --debug",
                "gpu": "only",
            },
            {
                "text": "ErrorIncompatibleDriver",
                "why": "the image holds no Vulkan driver that works here",
                "hint": "choose another image with --image",
                "gpu": "also",
            },
            {
                "text": "ErrorDeviceLost",
                "why": "the GPU was reset by its driver",
                "hint": "see the kernel's messages with dmesg; a smaller --ctx-size or an older or newer image may help",
            },
            {
                "text": "libcuda.so.1: cannot open shared object file",
                "why": "the NVIDIA driver's libraries did not reach the container",
                "hint": "write the CDI specification anew: sudo nvidia-ctk cdi generate --output=/etc/cdi/nvidia.yaml",
                "gpu": "also",
            },
            {
                "text": "libvulkan.so.1: cannot open shared object file",
                "why": "the image lacks Vulkan's loader",
                "hint": "choose another image with --image",
                "gpu": "also",
            },
            {
                "text": "libamdhip64.so",
                "why": "the image lacks ROCm's libraries",
                "hint": "choose another image with --image",
                "gpu": "also",
            },
            {
                "text": "error while loading shared libraries",
                "why": "the program lacks a library in this image",
                "hint": "choose another image with --image, or --pull always",
            },
            {
                "text": "invalid device: ",
                "why": "the server has no device of the name that was asked for",
                "hint": "check --runtime-args, and see what is passed with `ramalama-like explain`",
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
                "text": "exec format error",
                "why": "the image or the engine's init program is not for this machine's processor",
                "hint": "choose an image for this architecture with --image, or reinstall podman's catatonit",
            },
            {
                "text": "container-init binary not found on the host",
                "why": "podman lacks the small init program catatonit",
                "hint": "install it: the package is named catatonit or podman-catatonit",
            },
            {
                "text": "lookup init binary",
                "why": "podman lacks the small init program catatonit",
                "hint": "install it: the package is named catatonit or podman-catatonit",
            },
            {
                "text": "exec pid1",
                "why": "the container's init program could not start the server",
                "hint": "choose another image with --image, or reinstall podman's catatonit",
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
                "text": "Range of CPUs is from",
                "why": "the machine of docker's daemon has fewer processors than --cpus allows",
                "hint": "give a smaller --cpus, or leave it out",
            },
            {
                "text": "requested cgroup controller",
                "why": "this user may not limit that resource: systemd has not delegated its controller",
                "hint": "let root run: systemctl edit user@.service with Delegate=yes, or leave --cpus and --memory out",
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
                "text": "Error: stat /dev/",
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
                "exit_codes": (132,),
                "why": "the program uses instructions that this processor does not have (SIGILL)",
                "hint": "choose an image for older processors with --image",
            },
            {
                "text": "Illegal instruction",
                "why": "the program uses instructions that this processor does not have (SIGILL)",
                "hint": "choose an image for older processors with --image",
            },
            {
                "text": "(SIGILL)",
                "why": "the program uses instructions that this processor does not have",
                "hint": "use a container engine, whose images serve every processor",
            },
            {
                "text": "ggml_vulkan: No devices found",
                "why": "the image's Vulkan drivers found no GPU",
                "hint": "see what is passed with `ramalama-like explain`, or choose another image with --image",
                "gpu": "only",
            },
            {
                "text": "no usable GPU found",
                "why": "the server found no GPU that it can use",
                "hint": "see what is passed with `ramalama-like explain`, or choose another image with --image",
                "gpu": "only",
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
    "proof": {
        "host_beginnings": ("CPU", "BLAS", "AMX", "ACCEL"),
        "host_endings": ("_Host",),
        "software": ("llvmpipe", "lavapipe", "softpipe", "swiftshader"),
        "own_level": (
            "initializing ...",
            "load_model: loading model",
            "init: loading model",
            "init: llama threadpool init",
            "load_model: initializing, n_slots",
            "model loaded",
            "listening on",
            "selected slot by",
            "| processing task",
            " print_timing: ",
            " release: id ",
            "cleaning up before exit",
        ),
        "complete": ("listening on", "model loaded"),
        "loaded_as": {
            "vulkan": "Vulkan",
            "cuda": "CUDA",
            "rocm": "ROCm",
            "sycl": "SYCL",
            "cann": "CANN",
            "musa": "MUSA",
        },
    },
}
