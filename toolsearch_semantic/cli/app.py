"""The ``toolsearch`` command as a whole: what it answers to, and what becomes of errors."""

from __future__ import annotations

import os
import sys
from typing import Any

import typer
from typer.core import TyperGroup

from toolsearch_semantic.cli.show import WarningLines, say
from toolsearch_semantic.errors import ToolSearchError

__all__ = ["app"]

_USAGE_ERROR, _INTERRUPTED, _BROKEN_PIPE = 2, 130, 1


class Commands(TyperGroup):
    """Commands whose errors are one line, whoever raised them."""

    def main(self, *args: Any, **options: Any) -> Any:
        if not options.get("standalone_mode", True):
            return super().main(*args, **options)
        options["standalone_mode"] = False
        if sys.stdout is None:  # a shell closed it: what is printed is for nobody
            sys.stdout = open(os.devnull, "w", encoding="utf-8")  # noqa: SIM115 - stays open as long as the process
        if hasattr(sys.stdout, "reconfigure"):
            sys.stdout.reconfigure(errors="backslashreplace")  # a terminal may know few characters
        try:
            with WarningLines():
                status = super().main(*args, **options)
            sys.stdout.flush()
        except (KeyboardInterrupt, typer.Abort):
            sys.exit(_INTERRUPTED)
        except BrokenPipeError:
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
            sys.exit(_BROKEN_PIPE)
        except (ToolSearchError, OSError, RecursionError) as error:
            say("error", str(error))
            sys.exit(_USAGE_ERROR)
        except Exception as error:
            if not hasattr(error, "format_message"):  # the errors of usage have no public class of their own
                raise
            command = getattr(getattr(error, "ctx", None), "command_path", "toolsearch")
            say("error", f"{error.format_message()} See: {command} --help")
            sys.exit(_USAGE_ERROR)
        sys.exit(status if isinstance(status, int) else 0)


app = typer.Typer(
    cls=Commands,
    add_completion=False,
    pretty_exceptions_enable=False,  # its tracebacks show values, and these may be secrets
    context_settings={"help_option_names": ["-h", "--help"]},
)
