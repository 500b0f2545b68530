"""``fsck``: check the store, down to every byte of its files."""

from __future__ import annotations

from ramalama_like import ui
from ramalama_like.launch import Outline, show_if_dry
from ramalama_like.models.fsck import DAMAGED_BLOB, DAMAGED_RECORD, check_store, repair_store
from ramalama_like.models.names import size_text
from ramalama_like.stored import open_store, removal_lines
from ramalama_like.value import to_plain

TYPE_CHECKING = False
if TYPE_CHECKING:
    from ramalama_like.models.fsck import Finding
    from ramalama_like.request import Request
    from ramalama_like.stored import Opened


def execute(request: Request) -> int:
    """Run the command; its exit code: 1 where something is wrong and was not repaired. Raises AppError."""
    opened = open_store(request)
    asked = opened.loaded.settings
    findings = _check(opened)
    if asked.dryrun.value:
        show_if_dry(request, _outline(opened, findings))
        return 0
    for warning in opened.loaded.warnings:
        ui.warn(warning)
    repaired = repair_store(opened.store, findings) if asked.repair.value else []
    if asked.json.value:
        import json

        plain = [{**vars(each), "wrong": each.is_wrong, "repaired": each in repaired} for each in findings]
        ui.write(json.dumps(to_plain(plain), indent=2) + "\n")
    else:
        _tell(findings, repaired)
    left = [each for each in findings if each.is_wrong and each not in repaired]
    if not left:
        ui.say("The store is sound." if not repaired else "Repaired: pull again what lacks files.")
    return 1 if left else 0


def outline(request: Request) -> Outline:
    """What the command would do. Raises AppError."""
    opened = open_store(request)
    return _outline(opened, _check(opened) if opened.loaded.settings.repair.value else [])


def _check(opened: Opened) -> list[Finding]:
    return check_store(opened.store, contents=not opened.loaded.settings.quick.value)


def _outline(opened: Opened, findings: list[Finding]) -> Outline:
    repairs = opened.loaded.settings.repair.value
    paths = [each.path for each in findings if repairs and each.kind in (DAMAGED_RECORD, DAMAGED_BLOB)]
    return Outline(opened.loaded, None, removal_lines(paths), "files")


def _tell(findings: list[Finding], repaired: list[Finding]) -> None:
    for each in findings:
        size = f" ({size_text(each.size_bytes)})" if each.size_bytes else ""
        ui.write(f"{each.kind}: {ui.one_line(each.path)}: {ui.one_line(each.text)}{size}\n")
        if each.models:
            ui.write(f"    of {ui.one_line(', '.join(each.models))}\n")
        if each in repaired:
            ui.write("    removed\n")
        elif each.remedy:
            ui.write(f"    repair: {ui.one_line(each.remedy)}\n")
