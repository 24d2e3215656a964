"""Parts of the training recipe on cases that can be checked by hand."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch

ROOT = Path(__file__).parents[2]

with pytest.MonkeyPatch.context() as patch:  # the recipe is in the checkout only, which CI keeps out of sys.path
    patch.syspath_prepend(str(ROOT))
    from models.train.loop import Batch, Settings, TextModel, loss_of, train
    from models.train.mine import mine
    from models.train.pairs import Pair, Pairs
    from toolsearch_semantic.text import TextFields


def fields(name: str, description: str = "") -> TextFields:
    return TextFields(name, "", description, "", "")


def test_requests_that_nothing_answers_are_pushed_away_from_every_tool() -> None:
    batch = Batch([Pair("make me a coffee", None, (), "mcp", "a")] * 2, ["a/x"], ["x"])
    document = torch.tensor([[1.0, 0.0]])
    near, far = (loss_of(torch.tensor([query] * 2), document, batch, Settings()) for query in ([1.0, 0.0], [0.0, 1.0]))
    assert torch.isfinite(near)
    # One tool at cosine 1 against "nothing" at 0.4, and at cosine 0: -log softmax of 20 x 0.4.
    assert float(near) == pytest.approx(np.log1p(np.exp(20 * 0.6)), rel=1e-4)
    assert float(far) == pytest.approx(np.log1p(np.exp(-20 * 0.4)), rel=1e-3)


def test_wrong_tools_are_mined_by_nearness_where_ids_name_no_service() -> None:
    names = ["send_mail", "pay_tax", "play_music", "weather", "weather_week", "weather_day"]
    angles = dict(zip(names, [2.0, 2.1, 2.2, 0.0, 0.4, 0.2], strict=True))
    pairs = Pairs([Pair("weather", "weather", (), "apis")], {name: fields(name) for name in names})

    def encode(texts: object) -> np.ndarray[tuple[int, ...], np.dtype[np.float32]]:
        turned = np.array([angles[text.replace(" ", "_")] for text in texts])  # type: ignore[attr-defined]
        return np.stack([np.cos(turned), np.sin(turned)], axis=1).astype(np.float32)

    [pair] = mine(pairs, encode).pairs
    assert pair.hard[0] == "weather_week"  # weather_day is so near that it may be right as well
    assert "weather" not in pair.hard


class Tiny(TextModel):
    """A letter count through one layer."""

    def __init__(self) -> None:
        super().__init__()
        torch.manual_seed(0)
        self.layer = torch.nn.Linear(26, 4)

    def forward(self, texts: object, tokens: int) -> torch.Tensor:
        counts = torch.tensor([[float(text.count(chr(97 + i))) for i in range(26)] for text in texts])  # type: ignore[attr-defined]
        return torch.nn.functional.normalize(self.layer(counts), dim=-1)


def test_a_run_that_was_killed_after_its_weights_were_written_goes_on_at_their_step(tmp_path: Path) -> None:
    tools = {f"t{i}": fields(word) for i, word in enumerate(["refund", "weather", "mail", "invoice"])}
    pairs = Pairs([Pair(f"please {f.name}", key, (), "apis") for key, f in tools.items()], tools)
    settings = replace(Settings(), steps=4, batch=4, save_every=2)

    whole, halted = Tiny(), Tiny()
    train(whole, pairs, tmp_path / "whole", settings, progress=iter)
    with pytest.raises(KeyboardInterrupt):
        train(halted, pairs, tmp_path / "halted", settings, progress=stop_at(3))
    again = Tiny()
    train(again, pairs, tmp_path / "halted", settings, progress=iter)
    torch.testing.assert_close(again.layer.weight, whole.layer.weight)
    steps = [json.loads(line)["step"] for line in (tmp_path / "halted" / "log.jsonl").read_text().splitlines()]
    assert steps == [0, 1, 2, 2, 3]  # the step after the checkpoint is done again
    with pytest.raises(ValueError, match="holds a run with settings"):
        train(Tiny(), pairs, tmp_path / "halted", replace(settings, seed=1), progress=iter)


def stop_at(step: int):  # type: ignore[no-untyped-def]
    def steps(wanted):  # type: ignore[no-untyped-def]
        for one in wanted:
            if one == step:
                raise KeyboardInterrupt
            yield one

    return steps
