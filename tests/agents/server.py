"""A model that follows a script, behind the HTTP of OpenAI's Chat Completions and of Anthropic's Messages."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

Body = dict[str, Any]


@dataclass(frozen=True)
class Say:
    """The model's last word."""

    text: str


class Calls:
    """The model calls tools, several at once where several are given as (name, arguments)."""

    def __init__(self, *calls: tuple[str, Any], text: str | None = None) -> None:
        self.calls = calls
        self.text = text


Reply = Say | Calls


@dataclass
class ScriptedModel:
    """Answers each request with the next line of its script; what reaches it is checked and kept."""

    script: list[Reply]
    requests: list[Body] = field(default_factory=list)
    paths: list[str] = field(default_factory=list)
    url: str = ""

    def answer(self, path: str, headers: Any, body: Body) -> Body:
        """Give a response of the provider's shape."""
        turn = len(self.requests)
        self.requests.append(body)
        self.paths.append(path)
        assert turn < len(self.script), "The script is at its end."
        if path == "/v1/chat/completions":
            assert headers["authorization"] == "Bearer x"
            check_openai(body)
            return openai_response(self.script[turn], turn, body["model"])
        assert path == "/v1/messages", path
        assert "x" in (headers["x-api-key"], (headers["authorization"] or "").removeprefix("Bearer "))  # by version
        check_anthropic(body)
        return anthropic_response(self.script[turn], turn, body["model"])

    def tools(self, turn: int) -> list[Body]:
        """The tools of a request, in order, as plain functions whatever the provider."""
        return [tool.get("function", tool) for tool in self.requests[turn]["tools"]]

    def names(self, turn: int) -> list[str]:
        """The names of the tools of a request, in order."""
        return [tool["name"] for tool in self.tools(turn)]

    def system(self, turn: int) -> str:
        """The system text of a request."""
        body = self.requests[turn]
        text = body["system"] if "system" in body else body["messages"][0]["content"]
        assert isinstance(text, str)
        return text

    def results(self, turn: int) -> dict[str, Any]:
        """The tool results in a request by the ids that they answer, in order, parsed."""
        return {call_id: json.loads(content) for call_id, content, _ in results_in(self.requests[turn])}

    def errors(self, turn: int) -> set[str]:
        """The ids whose results are marked as errors (Anthropic alone marks them)."""
        return {call_id for call_id, _, is_error in results_in(self.requests[turn]) if is_error}


@contextmanager
def serving(*script: Reply) -> Iterator[ScriptedModel]:
    """Serve a scripted model on a free port of this machine; what its checks raised is raised at the end."""
    model = ScriptedModel(list(script))
    failures: list[Exception] = []

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_POST(self) -> None:
            raw = self.rfile.read(int(self.headers["content-length"]))
            try:
                status, response = 200, model.answer(self.path, self.headers, json.loads(raw))
            except Exception as error:
                failures.append(error)
                status, response = 400, {"error": {"message": repr(error), "type": "invalid_request_error"}}
            written = json.dumps(response).encode()
            self.send_response(status)
            self.send_header("content-type", "application/json")
            self.send_header("content-length", str(len(written)))
            self.end_headers()
            self.wfile.write(written)

        def log_message(self, format: str, *args: Any) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True)
    thread.start()
    model.url = f"http://127.0.0.1:{server.server_port}"
    try:
        yield model
    except Exception:
        if failures:
            raise failures[0] from None
        raise
    finally:
        server.shutdown()
        server.server_close()
        thread.join(timeout=5)
    assert not failures
    assert len(model.requests) == len(model.script)


def results_in(body: Body) -> list[tuple[str, str, bool]]:
    found = []
    for message in body["messages"]:
        if message["role"] == "tool":
            found.append((message["tool_call_id"], message["content"], False))
        elif message["role"] == "user" and isinstance(message["content"], list):
            for block in message["content"]:
                if block["type"] == "tool_result":
                    found.append((block["tool_use_id"], block["content"], block["is_error"]))
    return found


def check_openai(body: Body) -> None:
    """Refuse what OpenAI refuses: each call is answered at once, and only calls are."""
    assert body["messages"][0]["role"] == "system"
    assert all(tool["type"] == "function" and set(tool) == {"type", "function"} for tool in body["tools"])
    open_ids: list[str] = []
    for message in body["messages"][1:]:
        if message["role"] == "tool":
            assert message["tool_call_id"] in open_ids
            assert isinstance(message["content"], str)
            open_ids.remove(message["tool_call_id"])
            continue
        assert not open_ids, f"unanswered: {open_ids}"
        assert message["role"] in {"user", "assistant"}
        open_ids = [call["id"] for call in message.get("tool_calls") or ()]
    assert not open_ids
    check_names([tool["function"]["name"] for tool in body["tools"]])


def check_anthropic(body: Body) -> None:
    """Refuse what Anthropic refuses: the user begins, and results stand in the message after their calls."""
    assert body["max_tokens"] > 0
    assert body["messages"][0]["role"] == "user"
    asked: list[str] = []
    for message in body["messages"]:
        content = message["content"] if isinstance(message["content"], list) else []
        answered = [block["tool_use_id"] for block in content if block["type"] == "tool_result"]
        assert answered == asked, f"{asked} were called, {answered} answered"
        assert not answered or message["role"] == "user"
        asked = [block["id"] for block in content if block["type"] == "tool_use"]
        assert not asked or message["role"] == "assistant"
    assert not asked
    assert all(tool["input_schema"]["type"] == "object" for tool in body["tools"])
    check_names([tool["name"] for tool in body["tools"]])


def check_names(names: list[str]) -> None:
    assert len(set(names)) == len(names)
    assert all(name.replace("_", "").replace("-", "").isalnum() and len(name) <= 64 for name in names)


def openai_response(reply: Reply, turn: int, model: str) -> Body:
    message: Body = {"role": "assistant", "content": reply.text, "refusal": None, "annotations": []}
    if isinstance(reply, Calls):
        message["tool_calls"] = [
            {"id": f"call_{turn}_{i}", "type": "function", "function": {"name": name, "arguments": text_of(arguments)}}
            for i, (name, arguments) in enumerate(reply.calls)
        ]
    reason = "stop" if isinstance(reply, Say) else "tool_calls"
    return {
        "id": f"chatcmpl-{turn}",
        "object": "chat.completion",
        "created": 1,
        "model": model,
        "choices": [{"index": 0, "message": message, "finish_reason": reason, "logprobs": None}],
        "usage": {"prompt_tokens": 1, "completion_tokens": 1, "total_tokens": 2},
    }


def anthropic_response(reply: Reply, turn: int, model: str) -> Body:
    content: list[Body] = [{"type": "text", "text": reply.text}] if reply.text else []
    if isinstance(reply, Calls):
        content += [
            {"type": "tool_use", "id": f"call_{turn}_{i}", "name": name, "input": arguments}
            for i, (name, arguments) in enumerate(reply.calls)
        ]
    return {
        "id": f"msg_{turn}",
        "type": "message",
        "role": "assistant",
        "model": model,
        "content": content,
        "stop_reason": "end_turn" if isinstance(reply, Say) else "tool_use",
        "stop_sequence": None,
        "usage": {"input_tokens": 1, "output_tokens": 1},
    }


def text_of(arguments: Any) -> str:
    return arguments if isinstance(arguments, str) else json.dumps(arguments)
