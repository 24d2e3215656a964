"""Print what the choices behind the lexical score, the embedded text and the fusion are worth on the training sets.

    python models/ablate.py models/toolsearch-static ../shared/data/train

Mean nDCG@10 over the sets, up to 500 requests of each; one choice is changed at a time, the others as shipped. These
figures chose the constants of `toolsearch_semantic/indexes/lexical.py` and the form of `LogisticScore`. It takes about
two minutes.
"""

import argparse
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
from evaluate import read_jsonl
from fit_scores import Ranker, Sample, by_keyword, by_meaning, labelled_sets, mean_ndcg, read_sample

from toolsearch_semantic import Tool
from toolsearch_semantic.encoders.static import StaticEncoder
from toolsearch_semantic.indexes import lexical
from toolsearch_semantic.text import TextFields, searchable_text, text_fields

SHIPPED = dict(lexical.FIELDS)
SHIPPED_K1 = lexical.K1
PROSE_LIMIT = 300


def lexical_variants() -> dict[str, tuple[float, dict[str, lexical.FieldWeight]]]:
    """Name the variants of the lexical score: k1 and the fields."""
    variants = {"as shipped": (SHIPPED_K1, SHIPPED)}
    variants |= {f"k1 {k1}": (k1, SHIPPED) for k1 in (0.6, 0.9, 1.8, 3.0)}
    for field, weights in {
        "name": (1.0, 2.0, 5.0),
        "parameter_names": (0.0, 0.25, 1.0),
        "parameter_descriptions": (0.0, 0.15, 0.6, 1.0),
    }.items():
        for weight in weights:
            changed = {**SHIPPED, field: replace(SHIPPED[field], weight=weight)}
            variants[f"{field.replace('_', ' ')} weigh {weight}"] = (SHIPPED_K1, changed)
    for b in (0.0, 0.25, 0.5, 1.0):
        variants[f"b {b}"] = (SHIPPED_K1, {name: replace(how, b=b) for name, how in SHIPPED.items()})
    return variants


TEXTS: dict[str, Callable[[TextFields], str]] = {
    "as shipped": searchable_text,
    "without parameters": lambda fields: searchable_text(replace(fields, parameter_names="")),
    "with parameter descriptions": lambda fields: f"{searchable_text(fields)}. {fields.parameter_descriptions}",
    "description cut to 300": lambda fields: searchable_text(
        replace(fields, description=fields.description[:PROSE_LIMIT])
    ),
}

FUSIONS: dict[str, Ranker] = {
    f"{weight} x cosine + {1 - weight:.1f} x {form} of lexical": ranker
    for weight in (0.1, 0.2, 0.3, 0.4, 0.5)
    for form, ranker in {
        "value": lambda cosine, lex, w=weight: w * cosine + (1 - w) * lex,
        "root": lambda cosine, lex, w=weight: w * cosine + (1 - w) * np.sqrt(lex),
    }.items()
}


def semantic_sample(sample: Sample, folder: Path, encoder: StaticEncoder, text: Callable[[TextFields], str]) -> Sample:
    """Score a set's requests again, with another text of its tools embedded."""
    tools, requests = read_jsonl(folder / "tools.jsonl"), read_jsonl(folder / "queries.jsonl")
    if len(requests) != len(sample.relevant):
        chosen = np.random.default_rng(0).choice(len(requests), len(sample.relevant), replace=False)
        requests = [requests[i] for i in sorted(chosen)]
    fields = [text_fields(Tool(t["name"] or t["id"], t["description"] or "", t["parameters"] or {})) for t in tools]
    vectors = encoder.encode_documents([text(one) for one in fields])
    queries = encoder.encode_queries([request["query"] for request in requests])
    return replace(sample, cosines=[np.maximum(vectors @ query, 0).astype(np.float64) for query in queries])


def main() -> int:
    """Print the tables."""
    parser = argparse.ArgumentParser(description="What each choice is worth on the training sets.")
    parser.add_argument("model", type=Path, help="the folder of a static model")
    parser.add_argument("data", type=Path, help="a folder of sets, each with tools.jsonl and queries.jsonl")
    arguments = parser.parse_args()
    encoder = StaticEncoder(arguments.model)
    folders = labelled_sets(arguments.data)
    samples = [read_sample(folder, encoder) for folder in folders]
    for name, ranker in FUSIONS.items():
        print(f"fusion   {name:44} {mean_ndcg(samples, ranker):.4f}", flush=True)
    for name, text in TEXTS.items():
        changed = [semantic_sample(s, f, encoder, text) for s, f in zip(samples, folders, strict=True)]
        print(f"semantic {name:44} {mean_ndcg(changed, by_meaning):.4f}", flush=True)
    for name, (k1, fields) in lexical_variants().items():
        lexical.K1, lexical.FIELDS = k1, fields
        changed = [read_sample(folder, encoder) for folder in folders]
        print(f"lexical  {name:44} {mean_ndcg(changed, by_keyword):.4f}", flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
