"""API descriptions that PyPI packages carry, as tools: botocore (AWS) and google-api-python-client, both Apache-2.0."""

from __future__ import annotations

import gzip
import html
import json
import random
import re
import zipfile
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from toolsearch_semantic import Tool
from toolsearch_semantic.text import TextFields, text_fields

__all__ = ["PER_SERVICE", "read_api_docs"]

PER_SERVICE = 14
"""Operations that are taken of one API."""

_SHORTEST = 25  # characters of a description worth learning from
_PARAMETERS = 8


def _plain(markup: str) -> str:
    return " ".join(html.unescape(re.sub(r"<[^>]+>", " ", markup)).split())


def _aws(wheel: zipfile.ZipFile) -> Iterator[tuple[str, list[tuple[str, str, list[str]]]]]:
    """Give each service, in its newest version, with its operations: name, description, parameter names."""
    newest: dict[str, str] = {}
    for name in sorted(wheel.namelist()):
        match = re.fullmatch(r"botocore/data/([^/]+)/[^/]+/service-2\.json\.gz", name)
        if match:
            newest[match[1]] = name
    for service, name in newest.items():
        model = json.loads(gzip.decompress(wheel.read(name)))
        title = model["metadata"].get("serviceId", service)
        yield (
            title,
            [
                (
                    operation["name"],
                    _plain(operation.get("documentation", "")),
                    list(model["shapes"].get(operation.get("input", {}).get("shape", ""), {}).get("members", {})),
                )
                for operation in model["operations"].values()
            ],
        )


def _google(wheel: zipfile.ZipFile) -> Iterator[tuple[str, list[tuple[str, str, list[str]]]]]:
    """Give each API, in its newest version, with its methods."""
    newest: dict[str, str] = {}
    for name in sorted(wheel.namelist()):
        match = re.fullmatch(r"googleapiclient/discovery_cache/documents/([^./]+)\.[^/]+\.json", name)
        if match:
            newest[match[1]] = name
    for api, name in newest.items():
        document = json.loads(wheel.read(name))
        yield document.get("title", api), list(_methods(document))


def _methods(node: Mapping[str, Any]) -> Iterator[tuple[str, str, list[str]]]:
    for method in node.get("methods", {}).values():
        words = method["id"].split(".")
        yield "_".join(words[-2:]), _plain(method.get("description", "")), list(method.get("parameters", {}))
    for child in node.get("resources", {}).values():
        yield from _methods(child)


def read_api_docs(wheel: Path, *, seed: int) -> dict[str, TextFields]:
    """Read up to ``PER_SERVICE`` operations of every API in a wheel of botocore or google-api-python-client.

    Raises:
        ValueError: The wheel is of another package.
    """
    readers = {"botocore": _aws, "google_api_python_client": _google}
    reader = readers.get(wheel.name.partition("-")[0])
    if reader is None:
        raise ValueError(f"{wheel.name!r} is not a wheel of botocore or google-api-python-client")
    chance = random.Random(seed)
    tools: dict[str, TextFields] = {}
    with zipfile.ZipFile(wheel) as archive:
        for service, operations in reader(archive):
            described = [one for one in operations if len(one[1]) >= _SHORTEST]
            for name, description, parameters in chance.sample(described, min(PER_SERVICE, len(described))):
                schema = {"properties": {parameter: {} for parameter in parameters[:_PARAMETERS]}}
                tools[f"{service}/{name}"] = text_fields(Tool(name, description, schema, namespace=service))
    return tools
