# mypy: ignore-errors
"""Stands in for python-xrd, of which the index has no wheel: what federation imports of it, written anew.

It reads links of an XRD document (OASIS, Extensible Resource Descriptor 1.0); writing one is not needed here.
"""

from xml.dom import minidom


class Link:
    """A link of a document: its attributes, None where it has none."""

    def __init__(self, rel=None, type_=None, href=None, template=None):
        """Take the attributes."""
        self.rel, self.type, self.href, self.template = rel, type_, href, template


class Element:
    """A named element and its text."""

    def __init__(self, name, value):
        """Take both."""
        self.name, self.value = name, value


class XRD:
    """A document: its links and other elements."""

    def __init__(self):
        """Begin an empty one."""
        self.links, self.elements = [], []

    @classmethod
    def parse_xrd(cls, text):
        """Return the document of a text; what is no XML raises `xml.parsers.expat.ExpatError`."""
        made = cls()
        for node in minidom.parseString(text).getElementsByTagName("Link"):
            rel, type_, href, template = (
                node.getAttribute(name) if node.hasAttribute(name) else None
                for name in ("rel", "type", "href", "template")
            )
            made.links.append(Link(rel, type_, href, template))
        return made

    def find_link(self, rels):
        """Return the first link of a relation, or of the first of several that has one; None if none has."""
        for rel in [rels] if isinstance(rels, str) else rels:
            for link in self.links:
                if link.rel == rel:
                    return link
        return None
