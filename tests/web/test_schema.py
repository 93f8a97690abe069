"""The JSON interface does what its schema says, whatever it is asked: no error of the server."""

from __future__ import annotations

from pathlib import Path

import pytest
from fastapi.testclient import TestClient
from hypothesis import HealthCheck, Phase, given, settings

from tests.web.conftest import client_of

schemathesis = pytest.importorskip("schemathesis", reason="pip install 'crosslens[test]'")

HOST = "127.0.0.1:8000"


def test_the_schema_names_every_answer(client: TestClient) -> None:
    schema = client.get("/api/openapi.json").json()
    api = {
        f"{path}{'' if method == 'get' else f' ({method})'}": operation
        for path, methods in schema["paths"].items()
        for method, operation in methods.items()
        if path.startswith("/api/")
    }
    assert {"/api/runs", "/api/runs/{run}/queries", "/api/runs/{run}/query", "/api/datasets/{dataset}"} <= set(api)
    for path, operation in api.items():
        content = operation["responses"]["200"]["content"]
        assert all(answer["schema"] for answer in content.values()), path
        assert operation["responses"]["422"]["content"]["application/json"]["schema"]["$ref"].endswith("/Problem")


def ask(folder: Path, cache: Path, examples: int, paths: str = "") -> None:
    """Generated requests to every operation whose path ends so; half of them for runs that are there."""
    client = client_of(folder, cache)
    schema = schemathesis.openapi.from_asgi("/api/openapi.json", client.app, headers={"Host": HOST})
    existing = {
        "run": ["model-a", "model-b", "broken"],
        "dataset": [client.get("/api/runs").json()["runs"][0]["dataset"]],
        "id": ["img1", "img1#0"],
        "direction": ["t2i", "i2t"],
    }
    for operation in (result.ok() for result in schema.get_all_operations()):
        if operation.path.endswith("/explanation") or not operation.path.endswith(paths):
            continue  # the first loads a parser

        @settings(
            max_examples=examples, deadline=None, derandomize=True, database=None,
            phases=[Phase.explicit, Phase.generate], suppress_health_check=list(HealthCheck),
        )  # fmt: skip
        def check(case: object) -> None:
            for part in ("path_parameters", "query"):
                values = getattr(case, part) or {}
                for name in values:
                    # Every other case asks for something that is there, or nothing but 404 is tested.
                    if name in existing and len(str(values[name])) % 2 == 0:
                        values[name] = existing[name][len(str(values[name])) % len(existing[name])]
            response = case.call(headers={"Host": HOST})  # type: ignore[attr-defined]
            assert response.status_code < 500, (case, response.text)
            case.validate_response(  # type: ignore[attr-defined]
                response,
                checks=[
                    schemathesis.checks.not_a_server_error,
                    schemathesis.checks.response_schema_conformance,
                ],
            )

        given(case=operation.as_strategy())(check)()


def test_a_sample(runs_folder: Path, tmp_path: Path) -> None:
    ask(runs_folder, tmp_path, 5, "/queries")


@pytest.mark.slow
def test_everything(runs_folder: Path, tmp_path: Path) -> None:
    ask(runs_folder, tmp_path, 60)
