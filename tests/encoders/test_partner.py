"""The default model has a partner for what is not English, whose vectors stand in the same space."""

from __future__ import annotations

import json
import os
import shutil
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from toolsearch_semantic import ModelError, ModelNotFoundError, ToolSearch
from toolsearch_semantic.encoders.bundled import bundled_folder
from toolsearch_semantic.encoders.onnx import OnnxEncoder

MINI, PARTNER = "toolsearch-mini", "toolsearch-multilingual"

TOOLS = {
    "light_turn_off": "Turn off a light in a room",
    "weather_forecast": "Get the weather forecast for a city",
    "send_email": "Send an email message to a recipient",
    "create_invoice": "Create an invoice for a customer",
    "book_table": "Reserve a table at a restaurant",
}
SAID = {
    "light_turn_off": [
        "Mach bitte das Licht im Flur aus",
        "关掉客厅的灯",
        "éteins la lumière du salon",
        "выключи свет",
    ],
    "weather_forecast": [
        "Wie wird das Wetter morgen in Berlin?",
        "明日の東京の天気予報",
        "날씨 예보 알려줘",
        "حالة الطقس غدا",
    ],
    "send_email": [
        "Schicke Anna eine E-Mail",
        "envía un correo a Ana",
        "发送一封电子邮件给老板",
        "отправь письмо Анне",
    ],
    "create_invoice": [
        "Erstelle eine Rechnung für den Kunden",
        "créer une facture pour le client",
        "请为客户开一张发票",
    ],
    "book_table": [
        "Reserviere einen Tisch im Restaurant",
        "レストランの席を予約して",
        "prenota un tavolo al ristorante",
    ],
}


@pytest.fixture(scope="module")
def mini() -> OnnxEncoder:
    return OnnxEncoder(bundled_folder(MINI))


@pytest.fixture
def both(tmp_path: Path) -> Path:
    """Copies of both folders, to be damaged."""
    for name in (MINI, PARTNER):
        shutil.copytree(bundled_folder(name), tmp_path / name)
    return tmp_path


def test_requests_in_other_languages_are_nearest_to_the_tool_that_english_describes(mini: OnnxEncoder) -> None:
    described = mini.encode_documents([f"{name}. {text}" for name, text in TOOLS.items()])
    found = {
        query: list(TOOLS)[int((described @ mini.encode_queries([query])[0]).argmax())]
        for said in SAID.values()
        for query in said
    }
    wrong = [query for tool, said in SAID.items() for query in said if found[query] != tool]
    assert len(found) == 18
    assert len(wrong) <= 3, wrong


def test_a_request_and_a_description_of_one_language_meet_as_well(mini: OnnxEncoder) -> None:
    described = mini.encode_documents(
        ["关灯: 关闭房间里的灯", "天气预报: 查询城市的天气", "날씨 조회: 도시의 날씨를 조회합니다"]
    )
    asked = mini.encode_queries(["把卧室的灯关掉", "서울 날씨 알려줘"])
    assert (described @ asked[0]).argmax() == 0
    assert (described @ asked[1]).argmax() == 2


@pytest.mark.parametrize(
    "text",
    ["refund a payment", "restart the nginx pod in staging", "get_user_by_id", "ok", "12345", "🚀"],
)
def test_english_names_and_signs_are_not_the_partners(both: Path, text: str) -> None:
    (both / PARTNER / "model.onnx").unlink()
    alone = OnnxEncoder(both / MINI).encode_queries([text])[0]
    assert alone.shape == (384,)


def test_a_batch_of_several_languages_keeps_its_order(mini: OnnxEncoder) -> None:
    texts = ["refund a payment", "关掉客厅的灯", "weather forecast", "", "Mach das Licht aus", "날씨 알려줘"] * 20
    together = mini.encode_documents(texts)
    for i, text in enumerate(texts[:6]):
        alone = mini.encode_queries([text])[0]
        np.testing.assert_allclose(together[i], alone, atol=0.03)
        np.testing.assert_allclose(together[i], together[i + 6], atol=0.02)
    assert together[1].any()
    assert not together[3].any()


def test_the_partner_is_read_with_the_first_text_that_is_its_own(both: Path) -> None:
    encoder = OnnxEncoder(both / MINI)
    (both / PARTNER / "model.onnx").write_bytes(b"no longer")
    assert encoder.encode_queries(["refund a payment"]).any()
    with pytest.raises(ModelError, match=r"toolsearch-multilingual/model\.onnx"):
        encoder.encode_queries(["关掉客厅的灯"])


def test_a_search_goes_on_by_keyword_where_the_partner_is_damaged(both: Path) -> None:
    (both / PARTNER / "model.onnx").write_bytes(b"not a graph")
    tools = [{"name": name, "description": text} for name, text in TOOLS.items()]
    search = ToolSearch(tools, encoder=both / MINI)
    assert search.search("send an email")[0].source == "hybrid"
    hit = search.search("envía un email a Ana por favor, mañana por la mañana")[0]
    assert (hit.tool.name, hit.source) == ("send_email", "lexical")


def test_without_its_partner_a_model_says_what_is_missing(both: Path) -> None:
    shutil.rmtree(both / PARTNER)
    with pytest.raises(ModelNotFoundError, match="toolsearch-multilingual"):
        OnnxEncoder(both / MINI)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"partner": None}, "go together"),
        ({"english": None}, "go together"),
        ({"partner": "../elsewhere"}, "name of a folder beside"),
        ({"english": "tokenizer.json"}, "cannot be read"),
        ({"english": "other.safetensors"}, "no checksum"),
    ],
)
def test_a_manifest_that_names_a_partner_badly_is_refused(both: Path, change: dict[str, Any], message: str) -> None:
    path = both / MINI / "toolsearch.json"
    path.write_text(json.dumps({**json.loads(path.read_text()), **change}))
    with pytest.raises(ModelError, match=message):
        OnnxEncoder(both / MINI)


def test_the_partner_is_part_of_the_fingerprint(both: Path, mini: OnnxEncoder) -> None:
    assert OnnxEncoder(both / MINI).fingerprint == mini.fingerprint
    path = both / PARTNER / "toolsearch.json"
    path.write_text(json.dumps({**json.loads(path.read_text()), "max_tokens": 32}))
    assert OnnxEncoder(both / MINI).fingerprint != mini.fingerprint


def test_many_threads_may_bring_its_first_text_at_once(both: Path, mini: OnnxEncoder) -> None:
    encoder = OnnxEncoder(both / MINI)
    expected = mini.encode_queries(["关掉客厅的灯"])
    with ThreadPoolExecutor(8) as pool:
        for rows in pool.map(lambda _: encoder.encode_queries(["关掉客厅的灯"]), range(16)):
            np.testing.assert_allclose(rows, expected, atol=1e-5)


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this platform cannot fork")
def test_a_forked_process_reads_the_partner_itself(both: Path, mini: OnnxEncoder) -> None:
    encoder = OnnxEncoder(both / MINI)
    expected = mini.encode_queries(["关掉客厅的灯"])
    child = os.fork()
    if child == 0:
        os._exit(0 if np.allclose(encoder.encode_queries(["关掉客厅的灯"]), expected, atol=1e-3) else 1)
    _, status = os.waitpid(child, 0)
    assert os.waitstatus_to_exitcode(status) == 0
