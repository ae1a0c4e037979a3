"""Who may ask, in which form, and what every response says to browsers; on real sockets."""

import base64
import hashlib
import json
import re
import shutil
import ssl
import subprocess
import urllib.request

import pytest

pytest.importorskip("fastapi", reason="serve needs FastAPI")
pytest.importorskip("uvicorn", reason="serve needs uvicorn")

from running_server import head, parsed, running

import sublearn
from sublearn.cli.commands.serve import _token
from sublearn.serve import create_app, serve

QUESTION = {"texts": ["word1"], "k": 1}
TOKEN = "a-token-of-sixteen-or-more"


@pytest.fixture(scope="module")
def server(tagger_file):
    with running(tagger_file, "--allow-host", "Models.Example.org") as found:
        yield found


# --- names, origins, forms ---------------------------------------------------------------------


@pytest.mark.parametrize(
    "host", ["evil.example", "127.0.0.2", "localhost.evil.example", "", "[::2]:80", "1.2.3.4:8000"]
)
def test_a_host_that_is_not_allowed_is_refused(server, host):
    status, answer = server.ask(QUESTION, host=host)
    assert status == 421
    assert "--allow-host" in answer["error"]
    assert server.request("/", host=host)[0] == 421


@pytest.mark.parametrize(
    "host", ["localhost", "LOCALHOST:8000", "127.0.0.1:1", "[::1]:80", "models.example.org:443"]
)
def test_names_of_this_machine_and_allowed_names_are_answered(server, host):
    assert server.ask(QUESTION, host=host)[0] == 200


@pytest.mark.parametrize(
    "kind", [None, "", "text/plain", "application/x-www-form-urlencoded", "multipart/form-data"]
)
def test_a_question_must_say_that_it_is_json(server, kind):
    status, answer = server.ask(QUESTION, content_type=kind)
    assert status == 415
    assert answer["error"].startswith("Content-Type must be application/json, got ")


def test_json_may_name_its_encoding_but_not_be_compressed(server):
    assert server.ask(QUESTION, content_type="Application/JSON; charset=utf-8")[0] == 200
    assert server.ask(QUESTION, content_encoding="gzip")[0] == 415


@pytest.mark.parametrize("origin", ["http://evil.example", "null", "https://localhost:3000"])
def test_a_page_of_another_site_may_not_ask(server, origin):
    assert server.ask(QUESTION, origin=origin)[0] == 403


def test_the_page_of_the_server_may_ask(server):
    assert server.ask(QUESTION, host="localhost:80", origin="http://localhost:80")[0] == 200


def test_other_sites_are_granted_nothing_before_they_ask(server):
    asks = {"origin": "http://evil.example", "access_control_request_method": "POST"}
    status, headers, _ = server.request("/predict", method="OPTIONS", **asks)
    assert status == 405
    assert not [name for name in headers if name.startswith("access-control")]


# --- what every response says ------------------------------------------------------------------


@pytest.mark.parametrize(
    ("sent", "status"),
    [
        (head("GET", "/"), 200),
        (head("GET", "/health"), 200),
        (head("GET", "/nothing"), 404),
        (head("GET", "/predict"), 405),
        (head("HEAD", "/healthz"), 200),
        (head("HEAD", "/predict"), 405),
        (head("GET", "/", host="evil"), 421),
        (head("POST", "/predict", b"{}") + b"{}", 422),
        (head("POST", "/predict", b"{}", content_type="text/plain") + b"{}", 415),
        (head("POST", "/predict", content_type="application/json", content_length=10**9), 413),
        (b"no HTTP at all\r\n\r\n", 400),
        (b"GET / HTTP/1.1\r\n\r\n", 400),
        (head("GET", "/", x="y" * 100_000), 431),
    ],
    ids=lambda value: str(value)[:40],
)
def test_every_response_has_the_headers_that_browsers_obey(server, sent, status):
    found, headers, text = parsed(server.raw(sent))
    assert found == status
    assert "default-src 'none'" in headers["content-security-policy"]
    assert "frame-ancestors 'none'" in headers["content-security-policy"]
    assert headers["x-content-type-options"] == "nosniff"
    assert headers["x-frame-options"] == "DENY"
    assert "server" not in headers
    if status >= 400 and not sent.startswith(b"HEAD"):
        assert list(json.loads(text)) == ["error"]


def test_a_failure_that_was_not_foreseen_has_them_too(server):
    """Not over the network: no question is known that fails."""
    import asyncio

    from sublearn.serve.guard import SECURITY_HEADERS, Guard, Rules
    from sublearn.serve.metrics import Metrics

    async def fails(*_):
        raise RuntimeError("secret")

    sent = []

    async def send(message):
        sent.append(message)

    scope = {"type": "http", "method": "GET", "path": "/", "headers": [(b"host", b"localhost")]}
    guard = Guard(fails, rules=Rules(hosts=(), token=None), metrics=Metrics(("/",)))
    asyncio.run(guard(scope, None, send))
    assert sent[0]["status"] == 500
    assert {name.encode() for name in SECURITY_HEADERS} <= {name for name, _ in sent[0]["headers"]}
    assert b"secret" not in sent[1]["body"]


def test_the_policy_allows_what_is_in_the_page_and_nothing_else(server):
    _, headers, page = server.request("/")
    policy = headers["content-security-policy"]
    for tag in ("script", "style"):
        (text,) = re.findall(f"<{tag}>(.*?)</{tag}>", page, re.DOTALL)
        digest = base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()
        assert f"{tag}-src 'sha256-{digest}';" in policy
    assert "unsafe" not in policy
    assert not re.search(r"\s(style|on\w+)=", page)


# --- lengths of bodies -------------------------------------------------------------------------


@pytest.mark.parametrize("length", [None, 3])
def test_a_body_in_chunks_is_refused_before_it_is_read(server, length):
    sent = head(
        "POST", "/predict", b"", transfer_encoding="chunked", content_length=length, connection=None
    )
    smuggled = head("GET", "/model")
    response = server.raw(sent + b"1\r\n{\r\n" * 20_000 + b"0\r\n\r\n" + smuggled)
    assert parsed(response)[0] == 411
    assert response.count(b"HTTP/1.1 ") == 1


def test_two_lengths_are_refused(server):
    sent = head("POST", "/predict", b"{}").replace(b"\r\n\r\n", b"\r\ncontent-length: 5\r\n\r\n")
    response = server.raw(sent + b"{}{}{}")
    assert parsed(response)[0] == 400
    assert response.count(b"HTTP/1.1 ") == 1


def test_requests_behind_each_other_get_their_answers_in_order(server):
    body = json.dumps(QUESTION).encode()
    first = head("POST", "/predict", body, connection=None) + body
    response = server.raw(first + first + head("GET", "/health"))
    assert [int(code) for code in re.findall(rb"HTTP/1\.1 (\d+)", response)] == [200, 200, 200]
    assert response.index(b"predictions") < response.index(b'"ok"')


# --- tokens and TLS ----------------------------------------------------------------------------


@pytest.fixture(scope="module")
def guarded(tagger_file, tmp_path_factory):
    """A server with a token from a file, TLS and a log, and the folder with its certificate."""
    if shutil.which("openssl") is None:
        pytest.skip("no openssl to make a certificate with")
    folder = tmp_path_factory.mktemp("tls")
    certificate, key, token = folder / "cert.pem", folder / "key.pem", folder / "token"
    make = ["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2"]
    make += ["-subj", "/CN=localhost", "-addext", "subjectAltName=DNS:localhost,IP:127.0.0.1"]
    subprocess.run([*make, "-keyout", key, "-out", certificate], check=True, capture_output=True)
    token.write_text(f"{TOKEN}\n")
    options = ["--certificate", certificate, "--key", key, "--token-file", token, "--log"]
    with running(tagger_file, *map(str, options), "--header-seconds", "2") as server:
        yield server, ssl.create_default_context(cafile=str(certificate))


def over_tls(guarded, path, body=None, **headers):
    server, context = guarded
    asked = urllib.request.Request(server.address + path, body, headers)
    try:
        with urllib.request.urlopen(asked, timeout=30, context=context) as response:
            return response.status, response.read().decode()
    except urllib.error.HTTPError as error:
        return error.code, error.read().decode()


def test_the_right_token_is_let_in_over_tls(guarded):
    assert guarded[0].address.startswith("https://")
    bearer = {"Authorization": f"Bearer {TOKEN}"}
    assert over_tls(guarded, "/model", **bearer)[0] == 200
    body = json.dumps(QUESTION).encode()
    kind = {"Content-Type": "application/json"}
    assert over_tls(guarded, "/predict", body, **kind, **bearer)[0] == 200


@pytest.mark.parametrize(
    "given",
    [None, "", "Bearer", f"Bearer {TOKEN}x", f"Bearer {TOKEN[:-1]}", f"Basic {TOKEN}", TOKEN],
)
@pytest.mark.parametrize("path", ["/model", "/metrics", "/predict", "/openapi.json", "/nothing"])
def test_every_other_token_is_refused(guarded, given, path):
    headers = {} if given is None else {"Authorization": given}
    status, text = over_tls(guarded, path, **headers)
    assert status == 401
    assert TOKEN not in text


def test_health_and_the_empty_page_need_no_token(guarded):
    assert [over_tls(guarded, path)[0] for path in ("/health", "/ready", "/")] == [200] * 3


def test_plain_http_to_a_tls_port_is_closed_and_an_unfinished_handshake_as_well(guarded):
    server, _ = guarded
    assert server.raw(head("GET", "/health")) == b""
    assert server.raw(b"\x16\x03\x01", timeout=30) == b""  # raises if it stays open


def test_the_log_does_not_show_the_token(guarded):
    server, _ = guarded
    over_tls(guarded, "/model", Authorization=f"Bearer {TOKEN}")
    server.process.terminate()
    log = server.process.stderr.read()
    assert "GET /model" in log
    assert TOKEN not in log


def test_the_token_may_be_in_a_variable(monkeypatch, tmp_path):
    monkeypatch.setenv("SUBLEARN_TOKEN", TOKEN)
    assert _token(None) == TOKEN
    (tmp_path / "token").write_text("another-of-sixteen\n")
    assert _token(tmp_path / "token") == "another-of-sixteen"


@pytest.mark.parametrize("token", ["", "short", "with a space in the middle", "ünïcödé-ünïcödé-"])
def test_tokens_that_can_be_guessed_or_not_be_sent_are_refused(token):
    with pytest.raises(ValueError, match="token must have at least 16 ASCII"):
        create_app(None, token=token)


def test_a_certificate_that_is_none_is_refused(tagger_file, tmp_path):
    wrong = tmp_path / "cert.pem"
    wrong.write_text("no certificate")
    app = create_app(sublearn.load(tagger_file))
    with pytest.raises(ValueError, match=r"cert\.pem: must be a certificate in PEM"):
        serve(app, port=0, certificate=wrong)
