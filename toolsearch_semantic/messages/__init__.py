"""Finding tool calls, their results and user turns in any provider's conversation; ``read`` is the door."""
