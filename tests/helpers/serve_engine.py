"""A replacement for the process that `serve` starts: `python serve_engine.py FOLDER`.

Writes its job to ``given-PID.json`` and answers with the prompt's last word. Files in FOLDER change this: ``stay``
prevents the start, ``die`` and ``die-once`` end the process at a request, ``hang`` delays an answer, ``noisy`` fills
the log.
"""

import json
import os
import sys
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

FOLDER = Path(sys.argv[1])


class Handler(BaseHTTPRequestHandler):
    def do_POST(self) -> None:
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        if (FOLDER / "die").exists():
            os._exit(3)
        if (FOLDER / "die-once").exists():
            (FOLDER / "die-once").unlink()
            os._exit(3)
        if (FOLDER / "hang").exists():
            threading.Event().wait(60)
        good = self.headers["Authorization"] == f"Bearer {GIVEN['key']}"
        text = body["prompt"].split()[-1]
        usage = {"prompt_tokens": 40, "completion_tokens": 1}
        choice = {"index": 0, "text": text, "finish_reason": "stop"}
        data = json.dumps({"model": body["model"], "choices": [choice], "usage": usage}).encode()
        self.send_response(200 if good else 401)
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    def log_message(self, *_: object) -> None:
        pass


GIVEN = json.loads(sys.stdin.readline())
(FOLDER / f"given-{os.getpid()}.json").write_text(json.dumps({**GIVEN, "environment": dict(os.environ)}))
if (FOLDER / "noisy").exists():
    sys.stderr.write("noise " * 300_000)
if (FOLDER / "stay").exists():
    sys.exit((FOLDER / "stay").read_text())
server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
threading.Thread(target=server.serve_forever, daemon=True).start()
print(f"http://127.0.0.1:{server.server_port}", flush=True)
sys.stdin.read()
os._exit(0)
