"""HTTPS on the control plane's address, a thread per connection."""

from __future__ import annotations

import ssl
import threading
from pathlib import Path
from typing import TYPE_CHECKING, Any

from fabbbr.sandbox import names

if TYPE_CHECKING:
    from _typeshed.wsgi import WSGIApplication

HTTPS_PORT = 443


def serve(application: WSGIApplication, certificate: Path) -> None:
    """Answer from now on, in the background, until the process ends."""
    from werkzeug.serving import ThreadedWSGIServer, WSGIRequestHandler

    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate)

    class Server(ThreadedWSGIServer):
        daemon_threads = True
        request_queue_size = 128

        def get_request(self) -> tuple[Any, Any]:
            # Who connects and says nothing (fablib does, to see that we are there) must not hold up others:
            # hands are shaken in the connection's own thread.
            connection, address = self.socket.accept()
            return (
                context.wrap_socket(connection, server_side=True, do_handshake_on_connect=False),
                address,
            )

    class Handler(WSGIRequestHandler):
        protocol_version = "HTTP/1.1"

        def log(self, *_: object) -> None:
            """The journal has it all."""

    server = Server(names.CONTROL_ADDRESS, HTTPS_PORT, application, Handler)
    threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 3600}, daemon=True).start()
