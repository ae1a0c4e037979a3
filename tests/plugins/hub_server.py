"""A small Hub on this machine: as much of its HTTP interface as huggingface_hub needs to push a
folder and to download a file. Each commit keeps all files of the repository."""

import base64
import hashlib
import json
import re
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

_COMMIT = re.compile(r"/api/models/(.+?)/(preupload|commit)/(.+)")
_FILE = re.compile(r"/(.+?/.+?)/resolve/(.+?)/(.+)")


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def do_POST(self):
        body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
        if self.path == "/api/repos/create":
            wanted = json.loads(body)
            name = f"{wanted.get('organization') or 'me'}/{wanted['name']}"
            self.server.repos.setdefault(name, [])
            self._json({"url": f"{self.server.address}/{name}"})
            return
        if self.path == "/api/validate-yaml":
            self._json({"errors": [], "warnings": []})
            return
        repo, what, _ = _COMMIT.fullmatch(self.path).groups()
        if what == "preupload":
            files = json.loads(body)["files"]
            self._json({"files": [{"path": one["path"], "uploadMode": "regular",
                                   "shouldIgnore": False} for one in files]})  # fmt: skip
            return
        lines = [json.loads(line) for line in body.splitlines()]
        files = {one["value"]["path"]: base64.b64decode(one["value"]["content"])
                 for one in lines if one["key"] == "file"}  # fmt: skip
        commits = self.server.repos[repo]
        oid = hashlib.sha1(body).hexdigest()
        commits.append((oid, {**(commits[-1][1] if commits else {}), **files}))
        self._json({"commitUrl": f"{self.server.address}/{repo}/commit/{oid}", "commitOid": oid})

    def do_GET(self):
        found = _FILE.fullmatch(self.path)
        commits = self.server.repos.get(found[1], []) if found else []
        commits = [one for one in commits if found[2] in ("main", one[0])]
        if not commits or found[3] not in commits[-1][1]:
            self._send(404, b"", {"X-Error-Code": "EntryNotFound"})
            return
        oid, files = commits[-1]
        content = files[found[3]]
        tag = {"ETag": f'"{hashlib.sha1(content).hexdigest()}"', "X-Repo-Commit": oid}
        self._send(200, content, tag)

    do_HEAD = do_GET

    def _json(self, value):
        self._send(200, json.dumps(value).encode(), {"Content-Type": "application/json"})

    def _send(self, status, content, headers):
        self.send_response(status)
        for name, value in {**headers, "Content-Length": str(len(content))}.items():
            self.send_header(name, value)
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(content)

    def log_message(self, *_):
        pass


class Hub(ThreadingHTTPServer):
    """Runs while it is a context."""

    daemon_threads = True

    def __init__(self):
        super().__init__(("127.0.0.1", 0), Handler)
        self.repos = {}
        self.address = f"http://127.0.0.1:{self.server_port}"
        self._thread = threading.Thread(target=self.serve_forever, args=(0.01,))

    def __enter__(self):
        self._thread.start()
        return self

    def __exit__(self, *_):
        self.shutdown()
        self._thread.join()
        self.server_close()
