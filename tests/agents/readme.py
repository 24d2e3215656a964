"""The README's agents, as they stand there."""

from __future__ import annotations

import re
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

README = Path(__file__).parents[2] / "README.md"
LONGEST = 35

RunAgent = Callable[..., Awaitable[str]]


def blocks() -> list[str]:
    """The examples that need a client, or what goes with one."""
    text = README.read_text(encoding="utf-8")
    section = text.split("## In an agent\n")[1].split("\n## ")[0]
    return re.findall(r"^```python no-run\n(.*?)^```$", section, flags=re.MULTILINE | re.DOTALL)


def agent(provider: str, tools: Any) -> dict[str, Any]:
    """Run the blocks that make up the agent for ``openai`` or ``anthropic``, and give what they define."""
    own = [code for code in blocks() if f"to_{provider}" in code or "class TokenLimiter" in code]
    namespace: dict[str, Any] = {"tools": tools}
    for code in own:
        exec(compile(code, str(README), "exec"), namespace)
    return namespace
