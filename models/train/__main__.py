"""The recipe, one command a step: ``python -m models.train --help``.

It needs torch, transformers, scipy, onnx and onnxruntime beside the package:
``pip install torch==2.13.0 && pip install -e '.[train]'``.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console
from rich.progress import track

from toolsearch_semantic.encoders.load import load_encoder

from .fit import fit_folder, write_scoring
from .loop import Settings, train
from .mine import mine
from .pairs import PairSources, build_pairs, read_pairs, write_pairs

app = typer.Typer(add_completion=False, pretty_exceptions_enable=False, help=__doc__)

_Run = Annotated[Path, typer.Argument(metavar="RUN", help="The folder of pairs, checkpoints and log.")]
_Start = Annotated[Path, typer.Option(metavar="MODEL", help="A BERT-like model's folder, or a wheel that has one.")]
_Data = Annotated[Path, typer.Option(metavar="DIR", help="A folder of sets: tools.jsonl and queries.jsonl in each.")]
_Steps = Annotated[int, typer.Option(metavar="N", help="Steps of the whole run.")]
_Batch = Annotated[int, typer.Option(metavar="N", help="Pairs a step.")]
_Rate = Annotated[float, typer.Option(metavar="X", help="The highest learning rate.")]


def _progress(steps: Sequence[int]) -> Iterator[int]:
    yield from track(steps, description="Training", console=Console(stderr=True), disable=not sys.stderr.isatty())


@app.command()
def pairs(
    run: _Run,
    *,
    data: _Data,
    start: _Start,
    reported: Annotated[Path | None, typer.Option(help="Sets that must not be learnt from, to report on.")] = None,
    corpus: Annotated[Path | None, typer.Option(help="A set of tools without requests.")] = None,
    own: Annotated[list[Path] | None, typer.Option(help="Further requests over the corpus. Repeatable.")] = None,
    wheel: Annotated[list[Path] | None, typer.Option(help="A wheel of botocore or the like. Repeatable.")] = None,
    without: Annotated[list[str] | None, typer.Option(help="A set to pass over. Repeatable.")] = None,
    seed: int = 0,
) -> None:
    """Collect training pairs, leave out what must not be seen, and find the wrong tools that look right."""
    from .transformer import Transformer

    sources = PairSources(data, reported, corpus, tuple(own or ()), tuple(wheel or ()), frozenset(without or ()))
    model = Transformer(start)
    built = mine(build_pairs(sources, seed=seed), lambda texts: model.encode(texts, rough=True))
    write_pairs(run, built)
    print(f"{len(built.pairs)} pairs over {len(built.tools)} texts of tools: {run}")


@app.command()
def mini(
    run: _Run, *, start: _Start, steps: _Steps = 800, batch: _Batch = 128, rate: _Rate = 5e-5, seed: int = 0
) -> None:
    """Train a transformer on the run's pairs; an interrupted run goes on where it was."""
    from .transformer import Transformer

    model = Transformer(start)
    settings = replace(Settings(), steps=steps, batch=batch, learning_rate=rate, seed=seed)
    train(model, read_pairs(run), run, settings, progress=_progress)
    model.save(run / "model")
    print(f"wrote {run / 'model'}")


@app.command()
def export(
    trained: Annotated[Path, typer.Argument(metavar="MODEL", help="What 'mini' wrote.")],
    folder: Annotated[Path, typer.Argument(metavar="FOLDER", help="The model folder to write.")],
    *,
    start: Annotated[Path | None, typer.Option(metavar="MODEL", help="What the training began with.")] = None,
    share: Annotated[float, typer.Option(help="The trained weights' part, the rest being of --start.")] = 1.0,
    max_tokens: Annotated[int, typer.Option(help="Tokens of a text that are read.")] = 128,
    latin_only: Annotated[bool, typer.Option(help="Leave texts in other scripts to keyword search.")] = True,
) -> None:
    """Write a trained transformer as ONNX with eight-bit weights, averaged with what it began with where asked."""
    from .export import write_onnx_folder
    from .transformer import Transformer

    model = Transformer(trained)
    weights = model.weights()
    if start is not None:  # WiSE-FT (Wortsman et al., 2022): what training forgot of the start comes back in part
        before = Transformer(start).weights()
        weights = {name: share * value + (1.0 - share) * before[name] for name, value in weights.items()}
    write_onnx_folder(
        weights, model.heads, model.tokenizer.to_str(), folder, max_tokens=max_tokens, latin_only=latin_only
    )
    print(f"wrote {folder}")


@app.command()
def to_sentence_transformers(
    model: Annotated[Path, typer.Argument(metavar="MODEL", help="The folder of a bundled transformer.")],
    folder: Annotated[Path, typer.Argument(metavar="FOLDER", help="The folder to write.")],
) -> None:
    """Write a bundled transformer's weights as a folder that SentenceTransformer loads, and training begins with."""
    from .restore import to_sentence_transformers as restore

    restore(model, folder)
    print(f"wrote {folder}")


@app.command()
def static(
    run: _Run,
    *,
    start: Annotated[Path, typer.Option(metavar="MODEL", help="The folder of a static model.")],
    folder: Annotated[Path, typer.Option(metavar="FOLDER", help="The model folder to write.")],
    steps: _Steps = 1_500,
    batch: _Batch = 512,
    rate: _Rate = 2e-3,
    seed: int = 0,
) -> None:
    """Train a static model's table on the run's pairs."""
    from .static import StaticTable

    model = StaticTable(start)
    settings = replace(Settings(), steps=steps, batch=batch, learning_rate=rate, seed=seed, save_every=500)
    train(model, read_pairs(run), run / "static", settings, progress=_progress)
    model.write(start, folder)
    print(f"wrote {folder}")


@app.command()
def fit(
    model: Annotated[Path, typer.Argument(metavar="MODEL", help="The model folder; its manifest is changed.")],
    data: _Data,
    everything: Annotated[
        bool, typer.Option(help="Use all requests, of a model that was not trained on them.")
    ] = False,
) -> None:
    """Fit the model's scores on requests that it has not seen, and write them into its folder."""
    scoring, lexical, sets = fit_folder(load_encoder(model), data, only_held_out=not everything)
    write_scoring(model, scoring, sets)
    print(f"semantic: {scoring.semantic}")
    print(f"hybrid: {scoring.hybrid}")
    print(f"lexical, for scores.LEXICAL: {lexical}")


@app.command()
def ablate(
    model: Annotated[Path, typer.Argument(metavar="MODEL", help="A model folder.")],
    data: _Data,
    everything: Annotated[bool, typer.Option(help="Use all requests: the model was not trained on them.")] = False,
) -> None:
    """Print what each choice is worth, in mean nDCG@10 over the sets."""
    from .ablate import ablate as variants

    for kind, name, ndcg in variants(load_encoder(model), data, only_held_out=not everything):
        print(f"{kind:9} {name:32} {ndcg:.4f}", flush=True)


if __name__ == "__main__":
    app(prog_name="python -m models.train")
