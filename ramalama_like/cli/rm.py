"""``rm``: take names out of the store, and the files that no other name uses. Files used in place are left alone."""

from __future__ import annotations

from ramalama_like import ui
from ramalama_like.errors import UsageError, ValueProblem
from ramalama_like.launch import Outline, show_if_dry
from ramalama_like.models.names import size_text
from ramalama_like.models.store import Damaged
from ramalama_like.stored import open_store, removal_lines

TYPE_CHECKING = False
if TYPE_CHECKING:
    from ramalama_like.request import Request
    from ramalama_like.stored import Opened


def execute(request: Request) -> int:
    """Run the command; its exit code. Raises AppError, after everything that could be removed is gone."""
    opened = open_store(request)
    names, problems = _chosen(request, opened)
    if show_if_dry(request, _outline(opened, names)):
        _raise(problems)
        return 0
    freed = opened.store.remove_all(names)
    if opened.loaded.settings.json.value:
        import json

        ui.write(json.dumps([{"name": name, "freed": size} for name, size in freed.items()], indent=2) + "\n")
    else:
        for name, size in freed.items():
            ui.write(f"{ui.one_line(name)}\n")
            ui.say(f"{ui.one_line(name)}: freed {size_text(size)}")
    if freed and any(isinstance(each, Damaged) for each in opened.store.records()):
        ui.say("Note: an entry of the store is damaged, so files that it may use were kept: see ramalama-like fsck")
    _raise(problems)
    return 0


def outline(request: Request) -> Outline:
    """What the command would do. Raises AppError."""
    opened = open_store(request)
    names, problems = _chosen(request, opened)
    _raise(problems)
    return _outline(opened, names)


def _outline(opened: Opened, names: list[str]) -> Outline:
    return Outline(opened.loaded, None, removal_lines([each.path for each in opened.store.find_freed(names)]), "files")


def _chosen(request: Request, opened: Opened) -> tuple[list[str], list[ValueProblem]]:
    """The names that are meant, each once, and what is wrong with the others."""
    asked = opened.loaded.settings
    if bool(request.arguments) == asked.all.value:
        raise UsageError("rm needs the name of a model or --all, and not both",
                         "see the names with: ramalama-like list", exit_code=22)  # fmt: skip
    if asked.all.value:
        return [each.name for each in opened.store.records()], []
    known, names, problems = opened.names(), [], []
    for text in request.arguments:
        try:
            names.append(known.find(text))
        except ValueProblem as problem:
            if not asked.ignore.value:
                problems.append(problem)
    return list(dict.fromkeys(names)), problems


def _raise(problems: list[ValueProblem]) -> None:
    """One error for all, in one line."""
    if len(problems) > 1:
        raise ValueProblem("; ".join(problem.message for problem in problems), problems[0].hint)
    if problems:
        raise problems[0]
