"""Machines that describe themselves by a device tree, and vendors' files that name a release."""

from __future__ import annotations

from ramalama_like.probe.tree import to_number
from ramalama_like.value import value

TYPE_CHECKING = False
if TYPE_CHECKING:
    from ramalama_like.probe.tree import Tree

JETSON_RELEASE = "etc/nv_tegra_release"
UNKNOWN = "unknown"
ASCEND_VERSION = "usr/local/Ascend/driver/version.info"


@value
class Board:
    """What a device tree says; empty on machines without one."""

    model: str = ""  # NVIDIA Jetson AGX Orin Developer Kit
    compatible: tuple[str, ...] = ()  # most special first: apple,j293 apple,t8103 apple,arm-platform

    @property
    def is_apple(self) -> bool:
        """Whether Linux runs on Apple's own processor, which is what Asahi Linux does."""
        return "apple,arm-platform" in self.compatible


def probe_board(tree: Tree) -> Board:
    """The device tree's own words. Its texts end with a null byte."""
    if not tree.exists("proc/device-tree"):
        return Board()
    return Board(
        (tree.read("proc/device-tree/model") or "").rstrip("\0\n").strip(),
        tuple(word for word in (tree.read("proc/device-tree/compatible") or "").split("\0") if word.strip()),
    )


def probe_jetson(tree: Tree, board: Board) -> str:
    """The release of Jetson Linux: 36.4.3 for ``# R36 (release), REVISION: 4.3, ...``; empty on other machines.

    Where only the device tree tells, or the file is malformed, it is ``unknown``.
    """
    text = tree.read(JETSON_RELEASE)
    if text is None:
        # Other distributions for these boards have no such file, and neither do containers.
        is_tegra = any(word.startswith("nvidia,tegra") for word in board.compatible)
        return UNKNOWN if is_tegra or tree.exists(JETSON_RELEASE) else ""
    first = text.partition("\n")[0]
    major = first.removeprefix("#").strip().partition(" ")[0].removeprefix("R")
    minor = first.partition("REVISION:")[2].partition(",")[0].strip()
    parts = [major, *minor.split(".")]
    if all(to_number(part) is not None for part in parts):
        return ".".join(parts)
    tree.note(JETSON_RELEASE, "names no release")
    return UNKNOWN


def probe_ascend_driver(tree: Tree) -> str:
    """The version of Huawei's driver for Ascend, such as 24.1.rc1; empty where it is not installed."""
    text = tree.read(ASCEND_VERSION)
    if text is None:
        return ""
    for line in text.splitlines():
        key, _, given = line.partition("=")
        if key.strip().lower() == "version" and given.strip():
            return given.strip()
    tree.note(ASCEND_VERSION, "names no version")
    return ""
