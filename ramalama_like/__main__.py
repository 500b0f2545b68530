# PYTHON_ARGCOMPLETE_OK
"""``python -m ramalama_like`` and the installed command ``ramalama-like``."""

from __future__ import annotations

import sys


def main() -> int:
    """Run the command line of this process; its exit code. ``version`` alone is answered before anything else."""
    if sys.stdout and sys.argv[1:] in (["version"], ["--version"], ["-v"]):
        from ramalama_like import __version__

        sys.stdout.write(f"ramalama-like version {__version__}\n")
        return 0
    from ramalama_like.main import run_argv

    return run_argv(sys.argv[1:])


def end() -> None:
    """``main`` for the installed script. Nothing is registered for the end of the interpreter, so it is not taken
    apart piece by piece, which would take as long as its start."""
    import os

    code = main()
    for stream in (sys.stdout, sys.stderr):
        if stream:  # None where the descriptor was closed
            stream.flush()
    os._exit(code)


if __name__ == "__main__":
    sys.exit(main())
