"""Google's storage on a port of this machine, run by the Python of the servers: the emulator with several threads."""

from __future__ import annotations

import sys
from http.server import ThreadingHTTPServer

import gcp_storage_emulator.server as emulator

emulator.server.HTTPServer = ThreadingHTTPServer  # with one thread, a connection that is kept open blocks all others
emulator.create_server("127.0.0.1", int(sys.argv[1]), in_memory=True, default_bucket="bucket").run()
