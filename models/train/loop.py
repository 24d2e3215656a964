"""Training: contrast with the batch, with hard negatives, and with nothing at all."""

from __future__ import annotations

import json
import math
import time
from abc import ABC, abstractmethod
from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

import numpy as np
import torch
from safetensors import safe_open
from safetensors.torch import load_file, save_file

from .pairs import Pair, Pairs, document_text

__all__ = ["MAX_TOKENS", "QUERY_TOKENS", "Settings", "TextModel", "train"]

MAX_TOKENS = 96
"""Tokens of a tool's text that are learnt from; few tools have more."""

QUERY_TOKENS = 64

STATE = "state.json"
TENSORS = "checkpoint.safetensors"
LOG = "log.jsonl"


@dataclass(frozen=True, slots=True)
class Settings:
    """What a run does; the defaults made the shipped model."""

    steps: int = 1_000
    batch: int = 128
    learning_rate: float = 5e-5
    warm_up: float = 0.08
    weight_decay: float = 0.01
    scale: float = 20.0
    nothing: float = 0.4
    backwards: float = 0.5
    texts_share: float = 0.35
    mcp_share: float = 1.5
    save_every: int = 50
    seed: int = 0


class TextModel(torch.nn.Module, ABC):
    """What can be trained here: texts to unit vectors."""

    @abstractmethod
    def forward(self, texts: Sequence[str], tokens: int) -> torch.Tensor:
        """Encode n texts, cut to so many tokens: shape (n, d), unit rows."""


class Batches:
    """Chooses the pairs of each step: all of one pool, with one hard negative each; the same for a seed and a step."""

    def __init__(self, pairs: Pairs, settings: Settings) -> None:
        self._pairs = pairs
        self._settings = settings
        self._pools: dict[str, list[Pair]] = defaultdict(list)
        for pair in pairs.pairs:
            self._pools[pair.batch].append(pair)
        weights = np.array([len(pool) * self._weight(name) for name, pool in self._pools.items()])
        self._chances = weights / weights.sum()

    def _weight(self, pool: str) -> float:
        if pool.startswith("texts of"):
            return self._settings.texts_share
        return self._settings.mcp_share if pool == "mcp" else 1.0

    def at(self, step: int) -> Batch:
        """Choose a step's batch."""
        chance = np.random.default_rng([self._settings.seed, step])
        pool = list(self._pools.values())[chance.choice(len(self._pools), p=self._chances)]
        size = min(self._settings.batch, len(pool))
        chosen = [pool[i] for i in chance.choice(len(pool), size, replace=False)]
        tools = [pair.tool for pair in chosen if pair.tool]
        tools += [pair.hard[chance.integers(len(pair.hard))] for pair in chosen if pair.hard]
        tools = list(dict.fromkeys(tools))
        texts = [document_text(self._pairs.tools[tool], chance) for tool in tools]
        return Batch(chosen, tools, texts)


@dataclass(frozen=True, slots=True)
class Batch:
    """Pairs, the tools that they are told apart by, and these tools' texts."""

    pairs: list[Pair]
    tools: list[str]
    texts: list[str]

    def targets(self) -> torch.Tensor:
        """Give the column of each pair's tool, or one past the last for none: shape (pairs,)."""
        columns = {tool: column for column, tool in enumerate(self.tools)}
        return torch.tensor([columns[pair.tool] if pair.tool else len(self.tools) for pair in self.pairs])

    def passed_over(self) -> torch.Tensor:
        """Mark tools that are right for a query though not its target: shape (pairs, tools).

        Right are those that it names, those that another pair in the batch names for the same query, and those whose
        text is the target's.
        """
        right: dict[str, set[str]] = defaultdict(set)
        for pair in self.pairs:
            right[pair.query].update((pair.tool, *pair.also) if pair.tool else ())
        text_of = dict(zip(self.tools, self.texts, strict=True))
        marks = torch.zeros(len(self.pairs), len(self.tools), dtype=torch.bool)
        for row, pair in enumerate(self.pairs):
            said = text_of.get(pair.tool or "")
            for column, tool in enumerate(self.tools):
                if tool != pair.tool and (tool in right[pair.query] or text_of[tool] == said):
                    marks[row, column] = True
        return marks


def loss_of(queries: torch.Tensor, documents: torch.Tensor, batch: Batch, settings: Settings) -> torch.Tensor:
    """Compute InfoNCE (van den Oord et al., 2018) both ways, with "nothing" as one more answer.

    A query must be nearer to its tool than to every other tool of the batch, and nearer than the cosine
    ``nothing``; a query that nothing answers must be farther than that from all. So a cosine means the same for
    every query. Backwards, a tool must be nearer to its query than to others.
    """
    targets, passed_over = batch.targets(), batch.passed_over()
    cosines = queries @ documents.T
    nothing = torch.full((len(queries), 1), settings.nothing)
    logits = settings.scale * torch.cat([cosines.masked_fill(passed_over, -1.0), nothing], dim=1)
    forwards = torch.nn.functional.cross_entropy(logits, targets)
    answered = targets < len(batch.tools)
    if not answered.any():
        return forwards
    # For a tool, other queries for which it is right as well are passed over, and so is the same query again.
    own = targets[answered]
    back = cosines[:, own].T  # (answered, pairs)
    column = torch.arange(len(batch.pairs))[answered]
    also_right = passed_over[:, own].T | (targets.unsqueeze(0) == own.unsqueeze(1))
    also_right[torch.arange(len(column)), column] = False
    backwards = torch.nn.functional.cross_entropy(settings.scale * back.masked_fill(also_right, -1.0), column)
    return forwards + settings.backwards * backwards


def rate_at(step: int, settings: Settings) -> float:
    """Give the learning rate: a linear rise, then half a cosine down to 0."""
    rise = max(1, round(settings.warm_up * settings.steps))
    if step < rise:
        return settings.learning_rate * (step + 1) / rise
    return settings.learning_rate * 0.5 * (1 + math.cos(math.pi * (step - rise) / max(1, settings.steps - rise)))


def train(
    model: TextModel,
    pairs: Pairs,
    folder: Path,
    settings: Settings,
    *,
    progress: Callable[[Sequence[int]], Iterator[int]],
) -> None:
    """Train a model in place, from the last checkpoint in the folder where there is one.

    Args:
        model: What to begin with.
        pairs: What to learn, with hard negatives.
        folder: Where checkpoints and the log go.
        settings: A run that goes on must have the same as before.
        progress: Wraps the steps, as a progress bar does.

    Raises:
        ValueError: The folder holds a run with other settings.
    """
    folder.mkdir(parents=True, exist_ok=True)
    torch.manual_seed(settings.seed)
    optimiser = torch.optim.AdamW(model.parameters(), weight_decay=settings.weight_decay)
    first = restore(folder, model, optimiser, settings)
    batches = Batches(pairs, settings)
    with (folder / LOG).open("a", encoding="utf-8") as log:
        for step in progress(range(first, settings.steps)):
            begun = time.perf_counter()
            batch = batches.at(step)
            for group in optimiser.param_groups:
                group["lr"] = rate_at(step, settings)
            queries = model([pair.query for pair in batch.pairs], QUERY_TOKENS)
            loss = loss_of(queries, model(batch.texts, MAX_TOKENS), batch, settings)
            optimiser.zero_grad()
            loss.backward()  # type: ignore[no-untyped-call]
            torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
            optimiser.step()
            record = {
                "step": step,
                "pool": batch.pairs[0].batch,
                "loss": round(float(loss.detach()), 4),
                "seconds": round(time.perf_counter() - begun, 2),
            }
            log.write(json.dumps(record) + "\n")
            log.flush()
            if (step + 1) % settings.save_every == 0 or step + 1 == settings.steps:
                save(folder, model, optimiser, settings, step + 1)


def save(folder: Path, model: TextModel, optimiser: torch.optim.Optimizer, settings: Settings, step: int) -> None:
    """Write a checkpoint beside the last one, then put it in its place."""
    path = folder / STATE
    if not path.is_file():
        path.with_suffix(".part").write_text(json.dumps({"settings": asdict(settings)}), encoding="utf-8")
        path.with_suffix(".part").replace(path)
    tensors = {f"model.{name}": value.contiguous() for name, value in model.state_dict().items()}
    names = {parameter: name for name, parameter in model.named_parameters()}
    for parameter, state in optimiser.state.items():
        for part in ("exp_avg", "exp_avg_sq"):
            tensors[f"{part}.{names[parameter]}"] = state[part]
    save_file(tensors, folder / f"{TENSORS}.part", metadata={"step": str(step)})
    (folder / f"{TENSORS}.part").replace(folder / TENSORS)


def restore(folder: Path, model: TextModel, optimiser: torch.optim.Optimizer, settings: Settings) -> int:
    """Load the last checkpoint, if there is one, and give the step to go on with."""
    if not (folder / STATE).is_file():
        return 0
    settings_before = json.loads((folder / STATE).read_text(encoding="utf-8"))["settings"]
    if settings_before != asdict(settings):
        raise ValueError(f"{folder} holds a run with settings {settings_before}; give another folder or the same ones")
    if not (folder / TENSORS).is_file():
        return 0
    # The step is in the same file as the weights: whoever is killed between two files must not mix two steps.
    with safe_open(folder / TENSORS, framework="pt") as checkpoint:
        step = int(checkpoint.metadata()["step"])
    tensors = load_file(folder / TENSORS)
    parts = {name.removeprefix("model."): value for name, value in tensors.items() if name.startswith("model.")}
    model.load_state_dict(parts)
    for name, parameter in model.named_parameters():
        if f"exp_avg.{name}" in tensors:
            optimiser.state[parameter] = {
                "step": torch.tensor(float(step)),
                "exp_avg": tensors[f"exp_avg.{name}"],
                "exp_avg_sq": tensors[f"exp_avg_sq.{name}"],
            }
    return step
