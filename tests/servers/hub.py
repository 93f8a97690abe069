"""A hub of datasets on a port of this machine: the part of its HTTP interface that reading a repository takes."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from http.server import BaseHTTPRequestHandler
from pathlib import Path
from typing import Any, ClassVar
from urllib.parse import unquote, urlsplit


class Hub(BaseHTTPRequestHandler):
    """Answers about one repository, ``datasets/someone/laion``; a private one asks for the token."""

    content: ClassVar[Mapping[str, bytes]] = {}
    private: ClassVar[bool] = False
    token: ClassVar[str] = "good"

    def log_message(self, *words: Any) -> None:
        pass

    def do_HEAD(self) -> None:
        self.do_GET()

    def do_POST(self) -> None:
        asked = self.rfile.read(int(self.headers["Content-Length"])).decode()
        body = json.loads(asked) if asked.startswith("{") else {}
        if "/paths-info/" in self.path:
            names = body.get("paths") or [unquote(part.split("=")[1]) for part in asked.split("&") if "paths" in part]
            entries = [entry for name in names for entry in self.entries() if entry["path"] == name]
            self.answer(200, json.dumps(entries).encode())
        else:
            self.answer(404, b"{}")

    def do_GET(self) -> None:
        path = unquote(urlsplit(self.path).path)
        if self.private and self.headers.get("Authorization") != f"Bearer {self.token}":
            self.answer(401, b'{"error": "Invalid credentials"}')
        elif "/datasets/someone/laion" not in path:
            self.answer(404, b'{"error": "Repository not found"}', {"X-Error-Code": "RepoNotFound"})
        elif "/tree/" in path:
            inside = path.partition("/tree/main")[2].strip("/")
            deep = "recursive=true" in self.path.lower()
            start = f"{inside}/" if inside else ""
            below = [entry for entry in self.entries() if entry["path"].startswith(start)]
            entries = [entry for entry in below if deep or "/" not in entry["path"].removeprefix(start)]
            missing = b'{"error": "Entry not found"}', {"X-Error-Code": "EntryNotFound"}
            self.answer(200, json.dumps(entries).encode()) if entries else self.answer(404, *missing)
        elif "/resolve/main/" in path:
            content = self.content.get(path.partition("/resolve/main/")[2])
            headers = {"ETag": '"x"', "X-Repo-Commit": "0" * 40, "X-Linked-Size": str(len(content or b""))}
            self.answer(404 if content is None else 200, content or b"", headers)
        else:
            model_card = {"id": "someone/laion", "sha": "0" * 40, "siblings": [], "private": self.private, "tags": []}
            self.answer(200, json.dumps(model_card).encode())

    def entries(self) -> list[dict[str, Any]]:
        folders = {str(parent) for name in self.content for parent in Path(name).parents} - {"."}
        files = [
            {"type": "file", "path": name, "size": len(content), "oid": f"{hash(content) & 0xFFFFFFFF:040x}"}
            for name, content in self.content.items()
        ]
        return [{"type": "directory", "path": name, "oid": "0" * 40, "size": 0} for name in sorted(folders)] + files

    def answer(self, code: int, content: bytes, headers: Mapping[str, str] | None = None) -> None:
        wanted = re.fullmatch(r"bytes=(\d+)-(\d+)", self.headers.get("Range", ""))
        if wanted and code == 200:
            start, end = int(wanted[1]), min(int(wanted[2]), len(content) - 1)
            headers = {**(headers or {}), "Content-Range": f"bytes {start}-{end}/{len(content)}"}
            code, content = 206, content[start : end + 1]
        self.send_response(code)
        for name, value in {"Content-Type": "application/json", **(headers or {})}.items():
            self.send_header(name, value)
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(content)
