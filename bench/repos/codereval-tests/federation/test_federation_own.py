# mypy: ignore-errors
"""Tests of our own for federation 0.23.1; its own need a network and packages without wheels.

Expectations: the docstrings, the protocols they name, and the package. Nothing here reaches a network.
"""

import datetime as dt
import json
from base64 import b64encode
from types import SimpleNamespace

import pytest
import requests
from Crypto.Hash import SHA256
from Crypto.PublicKey import RSA
from Crypto.Signature import PKCS1_v1_5
from dateutil.tz import tzoffset
from federation.entities.diaspora import mappers
from federation.entities.diaspora.utils import format_dt
from federation.hostmeta.generators import get_nodeinfo_well_known_document
from federation.protocols.diaspora import protocol as diaspora_protocol
from federation.protocols.diaspora.signatures import verify_relayable_signature
from federation.protocols.matrix import protocol as matrix_protocol
from federation.utils import diaspora, network, text
from lxml import etree
from requests.exceptions import ConnectionError as NoConnection
from requests.structures import CaseInsensitiveDict

ENVELOPE = '<me:env xmlns:me="http://salmon-protocol.org/ns/magic-env"><me:data>x</me:data></me:env>'


def request(body):
    return SimpleNamespace(body=body)


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        (ENVELOPE, True),
        (ENVELOPE.encode(), True),
        ('{"encrypted_magic_envelope": "x", "aes_key": "y"}', True),
        (b'{"encrypted_magic_envelope": "x"}', True),
        ("<env>x</env>", False),
        (f"<other>{ENVELOPE}</other>", False),
        ('{"events": []}', False),
        ("not XML & no JSON", False),
        ("", False),
        (b"\xff\xfe", False),
        (None, False),
        ("5", False),
    ],
)
def test_diaspora_requests(body, expected):
    assert diaspora_protocol.identify_request(request(body)) is expected


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        ('{"events": []}', True),
        (b'{"events": [1], "x": 2}', True),
        ('{"event": []}', False),
        ("{}", False),
        (ENVELOPE, False),
        ("", False),
        (None, False),
        ("5", False),
    ],
)
def test_matrix_requests(body, expected):
    assert matrix_protocol.identify_request(request(body)) is expected


@pytest.mark.parametrize(
    ("moment", "expected"),
    [
        (dt.datetime(2022, 8, 19, 12, 5, 6, tzinfo=dt.UTC), "2022-08-19T12:05:06Z"),
        (dt.datetime(2022, 8, 19, 12, 5, 6, 999, tzinfo=tzoffset(None, 7200)), "2022-08-19T10:05:06Z"),
        (dt.datetime(2022, 1, 1, 0, 0, 0, tzinfo=tzoffset(None, 60)), "2021-12-31T23:59:00Z"),
    ],
)
def test_format_dt(moment, expected):
    assert format_dt(moment) == expected


@pytest.mark.parametrize(
    ("given", "tags"),
    [
        ("", set()),
        ("no tags", set()),
        ("#One and #two, (#three) #one!", {"one", "two", "three"}),
        ("a #b/#c d", {"b", "c"}),
        ("# #! ##x", {"x"}),
        ("a#b", set()),
        ("<p>#tag</p><br>#other<br>", {"tag", "other"}),
        ("<span>#marked</span>", {"marked"}),
        ("    #indented\n#not", {"not"}),
        ("```\n#code\n```\n#text", {"text"}),
        ("#a$b #c'd #é", {"é"}),
    ],
)
def test_find_tags(given, tags):
    assert text.find_tags(given) == (tags, given)


def test_find_tags_replaces():
    found, made = text.find_tags("see #One, #two\n    #three", replacer=lambda tag: f"[{tag}]")
    assert found == {"one", "two"}
    assert made == "see [One], [two]\n    #three"
    assert text.find_tags("<p>#a</p><br>b", replacer=str.upper) == ({"a"}, "<p>A</p><br>b")
    assert text.find_tags("plain", replacer=str.upper) == (set(), "plain")
    assert text.find_tags("```\n#x\n```\n#y", replacer=lambda tag: "Z") == ({"y"}, "```\n#x\n```\nZ")


def test_find_tags_when_the_replacer_fails():
    def fails(tag):
        raise ValueError(tag)

    assert text.find_tags("a #b", replacer=fails) == ({"b"}, "a #b")


def _links(markup):
    return {
        (link.get("href"), link.text, link.get("target"), link.get("rel"))
        for link in etree.fromstring(f"<x>{markup}</x>").iter("a")
    }


def test_process_text_links():
    assert _links(text.process_text_links("see https://example.org/a?b=1 here")) == {
        ("https://example.org/a?b=1", "https://example.org/a?b=1", "_blank", "nofollow")
    }
    assert _links(text.process_text_links('<a href="https://example.org">x</a>')) == {
        ("https://example.org", "x", "_blank", "nofollow")
    }


def test_process_text_links_leaves_alone():
    for given in ["plain", "<code>https://example.org</code>", "me@example.org", '<a href="/tag/x/">#x</a>']:
        assert text.process_text_links(given) == given


@pytest.mark.parametrize(
    ("tag", "expected"),
    [("tag", True), ("tag_1-2", True), ("é", True), ("", False), (None, False), ("a,b", False), ("a#", False)],
)
def test_tags_that_are_accepted(tag, expected):
    assert text.test_tag(tag) is expected


@pytest.mark.parametrize("character", text.ILLEGAL_TAG_CHARS)
def test_tags_with_a_character_that_is_not_allowed(character):
    assert text.test_tag(f"a{character}b") is False


def test_xml_children():
    node = etree.fromstring("<x><a>1</a><b/><c>3<d>4</d></c><a>5</a></x>")
    assert mappers.xml_children_as_dict(node) == {"a": "5", "b": None, "c": "3"}
    assert mappers.xml_children_as_dict(etree.fromstring("<x>text</x>")) == {}


def test_sender_and_entity():
    assert mappers.check_sender_and_entity_handle_match("a@x", "a@x") is True
    for one, two in [("a@x", "b@x"), ("a@x", "A@x"), ("a@x", None), ("", "a@x")]:
        assert mappers.check_sender_and_entity_handle_match(one, two) is False


@pytest.mark.parametrize(
    ("arguments", "href"),
    [
        (("https://example.org",), "https://example.org/nodeinfo/1.0"),
        (("https://example.org", "/info"), "https://example.org/info"),
        (("https://example.org", ""), "https://example.org/nodeinfo/1.0"),
    ],
)
def test_nodeinfo_document(arguments, href):
    rel = "http://nodeinfo.diaspora.software/ns/schema/1.0"
    assert get_nodeinfo_well_known_document(*arguments) == {"links": [{"rel": rel, "href": href}]}


KEY = RSA.generate(1024)


def _signed(content):
    return b64encode(PKCS1_v1_5.new(KEY).sign(SHA256.new(content.encode()))).decode()


def test_relayable_signature():
    public = KEY.publickey().export_key()
    node = etree.fromstring(
        "<comment><guid>g</guid><text>é</text><author_signature>s</author_signature>"
        "<author>a@x</author><parent_author_signature>p</parent_author_signature></comment>"
    )
    assert verify_relayable_signature(public, node, _signed("g;é;a@x"))
    assert verify_relayable_signature(public.decode(), node, _signed("g;é;a@x").encode())
    for other in ["g;é;s;a@x;p", "é;g;a@x", "", "g;é;b@x"]:
        assert not verify_relayable_signature(public, node, _signed(other))
    assert not verify_relayable_signature(RSA.generate(1024).publickey().export_key(), node, _signed("g;é;a@x"))


HCARD = "http://microformats.org/profile/hcard"


def _xrd(*links):
    inner = "".join(f'<Link rel="{rel}" {name}="{value}"/>' for rel, name, value in links)
    return f'<XRD xmlns="http://docs.oasis-open.org/ns/xri/xrd-1.0">{inner}</XRD>'


@pytest.mark.parametrize(
    ("document", "url"),
    [
        (json.dumps({"links": [{"rel": "x", "href": "no"}, {"rel": HCARD, "href": "https://h"}]}), "https://h"),
        (json.dumps({"links": [{"rel": HCARD, "href": "first"}, {"rel": HCARD, "href": "second"}]}), "first"),
        (_xrd(("x", "href", "no"), (HCARD, "href", "https://h")), "https://h"),
        (json.dumps({"links": []}), None),
        (json.dumps({}), None),
        ("neither", None),
        ("<broken", None),
    ],
)
def test_webfinger_document(document, url):
    assert diaspora.parse_diaspora_webfinger(document) == {"hcard_url": url}


class Fetched:
    """Stands for the network: answers by path, and keeps what was asked."""

    def __init__(self, **answers):
        self.answers, self.asked = answers, []

    def __call__(self, url=None, host=None, path="/", **more):
        self.asked.append((url, host, path))
        for part, answer in self.answers.items():
            if part in f"{url}{path}":
                return answer
        return None, None, NoConnection("no answer")


def test_host_meta(monkeypatch):
    fetched = Fetched(host=(_xrd(("lrdd", "template", "https://x/{uri}")), 200, None))
    monkeypatch.setattr(diaspora, "fetch_document", fetched)
    found = diaspora.retrieve_diaspora_host_meta("example.org")
    assert found.find_link(rels="lrdd").template == "https://x/{uri}"
    assert fetched.asked == [(None, "example.org", "/.well-known/host-meta")]
    monkeypatch.setattr(diaspora, "fetch_document", Fetched())
    assert diaspora.retrieve_diaspora_host_meta("example.org") is None


def test_webfinger_is_retrieved(monkeypatch):
    asked = []

    def retrieve(handle):
        asked.append(handle)
        return json.dumps({"links": [{"rel": HCARD, "href": "https://h"}]})

    monkeypatch.setattr(diaspora, "try_retrieve_webfinger_document", retrieve)
    monkeypatch.setattr(diaspora, "fetch_document", Fetched())
    assert diaspora.retrieve_and_parse_diaspora_webfinger("a@example.org") == {"hcard_url": "https://h"}
    assert asked == ["a@example.org"]


def test_older_webfinger_is_retrieved(monkeypatch):
    meta = _xrd(("lrdd", "template", "https://old/finger?q={uri}"))
    fetched = Fetched(host=(meta, 200, None), finger=(_xrd((HCARD, "href", "https://h")), 200, None))
    monkeypatch.setattr(diaspora, "try_retrieve_webfinger_document", lambda handle: None)
    monkeypatch.setattr(diaspora, "fetch_document", fetched)
    assert diaspora.retrieve_and_parse_diaspora_webfinger("a@example.org") == {"hcard_url": "https://h"}
    assert fetched.asked[0] == (None, "example.org", "/.well-known/host-meta")
    assert fetched.asked[1][0] == "https://old/finger?q=a%40example.org"
    for answers in ({}, {"host": (meta, 200, None)}):
        monkeypatch.setattr(diaspora, "fetch_document", Fetched(**answers))
        assert diaspora.retrieve_and_parse_diaspora_webfinger("a@example.org") is None


def test_webfinger_document_is_tried(monkeypatch):
    fetched = Fetched(webfinger=("the document", 200, None))
    monkeypatch.setattr(network, "fetch_document", fetched)
    assert network.try_retrieve_webfinger_document("a@example.org") == "the document"
    assert fetched.asked == [(None, "example.org", "/.well-known/webfinger?resource=acct:a%40example.org")]
    monkeypatch.setattr(network, "fetch_document", Fetched())
    assert network.try_retrieve_webfinger_document("a@example.org") is None


@pytest.mark.parametrize("handle", ["no handle", "", None, 5])
def test_webfinger_document_of_what_is_no_handle(monkeypatch, handle):
    fetched = Fetched(webfinger=("the document", 200, None))
    monkeypatch.setattr(network, "fetch_document", fetched)
    assert network.try_retrieve_webfinger_document(handle) is None
    assert fetched.asked == []


def test_content_type(monkeypatch):
    asked = []

    def head(url, **more):
        asked.append(url)
        headers = {"Content-Type": "image/png"} if "png" in url else {}
        return SimpleNamespace(headers=CaseInsensitiveDict(headers), status_code=200, ok=True)

    monkeypatch.setattr(network.session, "head", head)
    monkeypatch.setattr(requests, "head", head)
    assert network.fetch_content_type("https://x/a.png") == "image/png"
    assert asked == ["https://x/a.png"]


@pytest.fixture
def sent(monkeypatch):
    held = []
    for method in ("post", "put"):

        def send(url, *args, name=method, **kwargs):
            held.append((name, url, args, kwargs))
            return SimpleNamespace(status_code=202)

        monkeypatch.setattr(requests, method, send)
    return held


def test_send_document(sent):
    assert network.send_document("https://x/in", {"a": 1}) == (202, None)
    [(method, url, args, kwargs)] = sent
    assert (method, url, args) == ("post", "https://x/in", ())
    assert (kwargs["data"], kwargs["timeout"]) == ({"a": 1}, 10)


def test_send_document_with_more(sent):
    headers = {"X-Other": "y"}
    network.send_document("https://x/in", b"data", 3, "put", "positional", headers=headers, verify=False)
    [(method, _, args, kwargs)] = sent
    assert (method, args) == ("put", ("positional",))
    assert (kwargs["data"], kwargs["timeout"], kwargs["verify"]) == (b"data", 3, False)
    assert kwargs["headers"]["X-Other"] == "y"


def test_send_document_that_fails(monkeypatch):
    error = NoConnection("no")

    def fails(*args, **kwargs):
        raise error

    monkeypatch.setattr(requests, "post", fails)
    assert network.send_document("https://x/in", b"") == (None, error)
