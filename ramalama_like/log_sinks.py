"""What people see of a server's or an engine's log, line by line."""

from __future__ import annotations

from ramalama_like import ui

TYPE_CHECKING = False
if TYPE_CHECKING:
    from ramalama_like.server_log import OwnLevel


def show_log(line: str) -> None:
    """A log sink that shows everything."""
    ui.say(ui.spelled(line))


class OwnLog:
    """A log sink that shows what the server prints by itself, and not the report that this program asked it for."""

    def __init__(self) -> None:
        self._level: OwnLevel | None = None

    def __call__(self, line: str) -> None:
        """Show the line, or not."""
        if self._level is None:  # loaded with the first line, while the engine is at work
            from ramalama_like.server_log import OwnLevel

            self._level = OwnLevel()
        if self._level.shows(line):
            show_log(line)


def show_progress_of_pull(line: str) -> None:
    """A log sink that shows what an engine tells about fetching an image, and nothing else."""
    beginnings = ("Trying to pull", "Getting image", "Copying ", "Writing manifest", "Unable to find image",
                  "Pulling ", "Status: ", "Resolving ")  # fmt: skip
    if line.startswith(beginnings) or line.endswith((": Pull complete", ": Pulling from")):
        ui.say(ui.one_line(line))
