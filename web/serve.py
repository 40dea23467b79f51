"""Serve the built book as a web host would: compressed, and to this machine alone.

python -m web.serve [--port 8000] [FOLDER]
"""

from __future__ import annotations

import argparse
import functools
import gzip
import sys
import threading
from contextlib import contextmanager
from http import HTTPStatus
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from io import BytesIO
from pathlib import Path

SITE = Path("_build/html")
TEXT = ("text/", "application/json", "image/svg+xml", "application/wasm")


class Compressing(SimpleHTTPRequestHandler):
    """The files of one folder, with gzip where it helps and the browser can read it."""

    protocol_version = "HTTP/1.1"
    extensions_map = SimpleHTTPRequestHandler.extensions_map | {
        ".js": "text/javascript",
        ".mjs": "text/javascript",
        ".ipynb": "application/json",
        ".map": "application/json",
        ".svg": "image/svg+xml",
        ".wasm": "application/wasm",
        ".woff": "font/woff",
        ".woff2": "font/woff2",
    }

    def send_head(self):
        path = Path(self.translate_path(self.path))
        kind = self.guess_type(str(path))
        accepts = "gzip" in self.headers.get("Accept-Encoding", "")
        if not (accepts and path.is_file() and kind.startswith(TEXT)):
            return super().send_head()
        body = compressed(path, path.stat().st_mtime_ns)
        self.send_response(HTTPStatus.OK)
        self.send_header("Content-Type", f"{kind}; charset=utf-8" if "text/" in kind else kind)
        self.send_header("Content-Encoding", "gzip")
        self.send_header("Content-Length", str(len(body)))
        self.send_header("Vary", "Accept-Encoding")
        self.end_headers()
        return BytesIO(body)

    def log_message(self, *_):
        """Say nothing: a page makes dozens of requests."""


class Server(ThreadingHTTPServer):
    """One that says nothing when a browser has left in the middle of an answer."""

    def handle_error(self, request, client_address):
        if not isinstance(sys.exception(), ConnectionError):
            super().handle_error(request, client_address)


@functools.lru_cache(maxsize=512)
def compressed(path: Path, changed: int) -> bytes:
    """The file, gzipped; kept until it changes."""
    return gzip.compress(path.read_bytes(), compresslevel=6)


def server(folder: Path = SITE, port: int = 0) -> ThreadingHTTPServer:
    """A server of this folder on 127.0.0.1; port 0 takes one that is free."""
    handler = functools.partial(Compressing, directory=str(folder))
    return Server(("127.0.0.1", port), handler)


@contextmanager
def serving(folder: Path = SITE):
    """Serve the folder in the background; gives the address, without a slash at its end."""
    httpd = server(folder)
    thread = threading.Thread(target=httpd.serve_forever, daemon=True)
    thread.start()
    try:
        yield f"http://127.0.0.1:{httpd.server_port}"
    finally:
        httpd.shutdown()
        httpd.server_close()


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m web.serve", description=__doc__.split("\n")[0])
    parser.add_argument("folder", nargs="?", type=Path, default=SITE)
    parser.add_argument("--port", type=int, default=8000)
    options = parser.parse_args(arguments)
    if not (options.folder / "index.html").is_file():
        print(f"{options.folder}/index.html is not there. Build the book: make", file=sys.stderr)
        return 2
    try:
        httpd = server(options.folder, options.port)
    except OSError as error:
        print(f"port {options.port}: {error.strerror}. Try another: --port 8001", file=sys.stderr)
        return 2
    print(f"Reading at http://127.0.0.1:{httpd.server_port}, Ctrl-C to stop", flush=True)
    try:
        httpd.serve_forever()
    except KeyboardInterrupt:
        return 0
    finally:
        httpd.server_close()


if __name__ == "__main__":
    sys.exit(main())
