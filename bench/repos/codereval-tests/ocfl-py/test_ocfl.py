# mypy: ignore-errors
"""Tests of our own for ocfl-py 1.3.0, whose sdist has none.

Expectations: the docstrings, the error codes of the OCFL specification, and the package. Every OCFL object
is made here.
"""

import hashlib
import json

import fs
import pytest
from ocfl.dispositor import Dispositor
from ocfl.inventory_validator import InventoryValidator, get_logical_path_map
from ocfl.object_utils import find_path_type, next_version
from ocfl.store import Store
from ocfl.validator import Validator


def digest(text, algorithm="sha512"):
    return hashlib.new(algorithm, text.encode()).hexdigest()


ONE, TWO, THREE = (digest(text) for text in ("one", "two", "three"))


def version(state, **more):
    return {
        "created": "2020-01-01T00:00:00Z",
        "message": "m",
        "user": {"name": "U", "address": "mailto:u@example.org"},
        "state": state,
        **more,
    }


def inventory(**more):
    return {
        "id": "info:x",
        "type": "https://ocfl.io/1.0/spec/#inventory",
        "digestAlgorithm": "sha512",
        "head": "v2",
        "manifest": {ONE: ["v1/content/a"], TWO: ["v2/content/b", "v2/content/c"]},
        "versions": {"v1": version({ONE: ["a"]}), "v2": version({ONE: ["a", "d/a"], TWO: ["b"]})},
        **more,
    }


def validated(held, extract=False, **options):
    validator = InventoryValidator(where="root", **options)
    validator.validate(held, extract_spec_version=extract)
    return validator


def codes(validator):
    return set(validator.log.codes)


def test_logical_path_map():
    held = inventory()
    assert get_logical_path_map(held, "v1") == {"a": {"v1/content/a"}}
    assert get_logical_path_map(held, "v2") == {
        "a": {"v1/content/a"},
        "d/a": {"v1/content/a"},
        "b": {"v2/content/b", "v2/content/c"},
    }
    held["versions"]["v1"]["state"] = {THREE: ["e"], TWO: ["f"]}
    assert get_logical_path_map(held, "v1") == {"f": {"v2/content/b", "v2/content/c"}}


def test_inventory_without_faults():
    validator = validated(inventory())
    assert codes(validator) == set()
    assert validator.id == "info:x"
    assert validator.all_versions == ["v1", "v2"]
    assert validator.head == "v2"
    assert validator.digest_algorithm == "sha512"
    assert validator.content_directory == "content"
    assert set(validator.manifest_files) == {"v1/content/a", "v2/content/b", "v2/content/c"}
    assert validator.inventory == inventory()


@pytest.mark.parametrize(
    ("changed", "expected"),
    [
        ({"id": ""}, {"E037a"}),
        ({"id": 5}, {"E037a"}),
        ({"id": "no uri"}, {"W005"}),
        ({"type": 5}, {"E999"}),
        ({"type": "https://ocfl.io/1.1/spec/#inventory"}, {"E038a"}),
        ({"digestAlgorithm": "md5"}, {"E039"}),
        ({"contentDirectory": "a/b"}, {"E017"}),
        ({"contentDirectory": 5}, {"E017"}),
        ({"contentDirectory": ".."}, {"E018"}),
        ({"contentDirectory": "."}, {"E018"}),
        ({"head": "v1"}, {"E040"}),
        ({"fixity": []}, {"E056a"}),
        ({"fixity": {}}, set()),
        ({"manifest": {ONE: ["v1/content/a"]}}, {"E050a", "E050f"}),
        ({"manifest": {**inventory()["manifest"], THREE: ["v1/content/e"]}}, {"E107"}),
    ],
)
def test_inventory_with_a_fault(changed, expected):
    assert codes(validated(inventory(**changed))) == expected


@pytest.mark.parametrize(
    ("key", "expected"),
    [("id", "E036a"), ("type", "E036b"), ("digestAlgorithm", "E036c"), ("head", "E036d")],
)
def test_inventory_that_lacks_a_key(key, expected):
    held = inventory()
    del held[key]
    assert expected in codes(validated(held))


def test_inventory_without_versions():
    held = inventory(fixity=5)
    del held["versions"]
    assert codes(validated(held)) == {"E041b"}


def test_inventory_with_another_content_directory_and_head():
    held = inventory(contentDirectory="data", manifest={ONE: ["v1/data/a"], TWO: ["v2/data/b"]})
    validator = validated(held)
    assert codes(validator) == set()
    assert validator.content_directory == "data"


def test_inventory_with_sha256_is_warned_of():
    one = digest("one", "sha256")
    held = inventory(
        digestAlgorithm="sha256",
        head="v1",
        manifest={one: ["v1/content/a"]},
        versions={"v1": version({one: ["a"]})},
    )
    validator = validated(held)
    assert codes(validator) == {"W004"}
    assert (validator.log.num_errors, validator.log.num_warnings) == (0, 1)
    assert validator.digest_algorithm == "sha256"


def test_lax_inventories_may_use_any_digest():
    held = inventory(digestAlgorithm="md5", manifest={"x": ["v1/content/a"]}, head="v1")
    held["versions"] = {"v1": version({"x": ["a"]})}
    validator = validated(held, lax_digests=True)
    assert validator.digest_algorithm == "md5"
    assert "E039" not in codes(validator)


def test_inventory_tells_its_specification():
    newer = inventory(type="https://ocfl.io/1.1/spec/#inventory")
    validator = validated(newer, extract=True)
    assert codes(validator) == set()
    assert validator.spec_version == "1.1"
    assert codes(validated(inventory(type="https://ocfl.io/9.9/spec/#inventory"), extract=True)) == {"E038c"}
    assert codes(validated(inventory(type="something"), extract=True)) == {"E038b"}
    assert validated(inventory(type="something"), extract=True).spec_version == "1.0"
    assert codes(validated(newer, spec_version="1.1")) == set()


def test_digests_present_and_used():
    for files, used, expected in [
        ({"f": "a", "g": "b"}, ["a", "b", "a"], set()),
        ({"f": "a"}, ["a", "b"], {"E050a"}),
        ({"f": "a", "g": "b"}, ["a"], {"E107"}),
        ({"f": "a"}, ["b"], {"E050a", "E107"}),
        ({}, [], set()),
    ]:
        validator = InventoryValidator()
        validator.check_digests_present_and_used(files, used)
        assert codes(validator) == expected
        assert validator.log.num_errors == len(expected)


def test_digests_that_are_missing_are_named_in_order():
    validator = InventoryValidator()
    validator.check_digests_present_and_used({"f": "a"}, ["c", "b", "a"])
    assert "b, c" in str(validator.log)


FILES = ["v1/content/a", "v1/content/b"]
MD5 = digest("one", "md5")


@pytest.mark.parametrize(
    ("fixity", "expected"),
    [
        ({}, set()),
        ({"md5": {}}, set()),
        ({"md5": {MD5: FILES}}, set()),
        ({"md5": {MD5: []}, "sha1": {digest("one", "sha1"): FILES[:1]}}, set()),
        ([], {"E056a"}),
        ("md5", {"E056a"}),
        ({"odd": {}}, {"E056b"}),
        ({"md5": []}, {"E057a"}),
        ({"md5": {"odd": FILES}}, {"E057b"}),
        ({"md5": {MD5: FILES[0]}}, {"E057c"}),
        ({"md5": {MD5: ["v1/content/c"]}}, {"E057d"}),
        ({"md5": {MD5: FILES, MD5.upper(): FILES}}, {"E097"}),
        ({"odd": {}, "md5": {MD5: ["x"]}}, {"E056b", "E057d"}),
    ],
)
def test_fixity(fixity, expected):
    validator = InventoryValidator(where="root")
    validator.validate_fixity(fixity, dict.fromkeys(FILES, "d"))
    assert codes(validator) == expected
    assert validator.log.num_errors == len(expected)


def test_fixity_of_newer_and_lax_inventories():
    newer = InventoryValidator(spec_version="1.1")
    newer.validate_fixity([], {})
    assert codes(newer) == {"E111"}
    lax = InventoryValidator(lax_digests=True)
    lax.validate_fixity({"odd": {"anything": FILES, "ANYTHING": FILES}}, dict.fromkeys(FILES, "d"))
    assert codes(lax) == set()
    lax.validate_fixity({"odd": {"anything": ["x"]}}, dict.fromkeys(FILES, "d"))
    assert codes(lax) == {"E057d"}


def _prior(**more):
    return inventory(head="v1", manifest={ONE: ["v1/content/a"]}, versions={"v1": version({ONE: ["a"]})}, **more)


def _compared(prior, current=None):
    first, second = validated(prior), validated(current or inventory())
    assert codes(first) | codes(second) == set()
    second.validate_as_prior_version(first)
    return codes(second)


def test_prior_version():
    assert _compared(_prior()) == set()


def test_prior_version_must_be_earlier():
    assert _compared(inventory()) == {"E066a"}
    later = inventory(head="v3", versions={**inventory()["versions"], "v3": version({ONE: ["a"]})})
    assert _compared(later) == {"E066a"}


def test_prior_version_must_have_the_same_files():
    prior = _prior()
    prior["versions"]["v1"]["state"] = {ONE: ["a", "z"]}
    assert "E066b" in _compared(prior)
    fewer = inventory()
    fewer["versions"]["v1"]["state"] = {ONE: ["a", "z"]}
    assert "E066b" in _compared(_prior(), fewer)


def test_prior_version_must_have_the_same_content():
    prior = _prior()
    prior["manifest"] = {ONE: ["v1/content/a", "v1/content/other"]}
    assert _compared(prior) == {"E066c"}
    more = inventory()
    more["manifest"] = {ONE: ["v1/content/a", "v2/content/a"], TWO: ["v2/content/b"]}
    assert _compared(_prior(), more) == set()


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("created", "2021-01-01T00:00:00Z"),
        ("message", "other"),
        ("user", {"name": "V", "address": "mailto:v@example.org"}),
    ],
)
def test_prior_version_of_other_metadata_is_warned_of(key, value):
    prior = _prior()
    prior["versions"]["v1"][key] = value
    assert _compared(prior) == {"W011"}


@pytest.mark.parametrize(
    ("given", "expected"),
    [("v1", "v2"), ("v9", "v10"), ("v99", "v100"), ("v01", "v02"), ("v009", "v010"), ("v00098", "v00099")],
)
def test_next_version(given, expected):
    assert next_version(given) == expected


@pytest.mark.parametrize("given", ["", "v", "1", "v1.0", "V1", "v-1", "vv1"])
def test_next_version_of_what_is_none(given):
    with pytest.raises(Exception, match=r".*"):
        next_version(given)


@pytest.mark.parametrize("given", ["v09", "v0999"])
def test_next_version_does_not_overflow(given):
    # The package fails while it words the message: any exception but no answer.
    with pytest.raises(Exception, match=r".+"):
        next_version(given)


def test_is_valid_accepts_everything():
    for identifier in ["", "a", "info:x/y", None]:
        assert Dispositor().is_valid(identifier) is True


@pytest.fixture
def folder(tmp_path):
    def write(place, **files):
        here = tmp_path / place
        here.mkdir(parents=True, exist_ok=True)
        for name, text in files.items():
            (here / name).write_text(text)
        return str(here)

    return write


@pytest.mark.parametrize(
    ("names", "expected"),
    [
        (["0=ocfl_1.0"], "root"),
        (["0=ocfl_object_1.0"], "object"),
        (["0=ocfl_object_1.1"], "object"),
        (["0=ocfl_23.4"], "root"),
        (["0=a_first", "0=ocfl_object_1.0"], "object"),
    ],
)
def test_path_type(folder, names, expected):
    assert find_path_type(folder("x", **dict.fromkeys(names, "text"))) == expected


def test_path_type_of_a_file(folder):
    here = folder("x", inventory="{}")
    assert find_path_type(f"{here}/inventory") == "file"


def test_path_type_explains(folder, tmp_path):
    known = {"root", "object", "file"}
    empty = find_path_type(folder("empty"))
    missing = find_path_type(str(tmp_path / "missing"))
    deeper = find_path_type(str(tmp_path / "missing" / "deeper"))
    other = find_path_type(folder("other", **{"0=something": "x"}))
    again = find_path_type(folder("again", **{"0=ocfl_object_1": "x", "0=xocfl_1.0": "x"}))
    assert not {empty, missing, deeper, other, again} & known
    assert "does not exist" in missing
    assert "declaration" in empty
    assert "something" in other
    assert "nor can parent" in deeper
    assert "ocfl_object_1" in again


def test_initialize_store(tmp_path):
    root = tmp_path / "root"
    Store(root=str(root)).initialize()
    assert {each.name: each.read_text() for each in root.iterdir()} == {"0=ocfl_1.0": "ocfl_1.0\n"}


def test_initialize_store_with_a_layout(tmp_path):
    root = tmp_path / "root"
    store = Store(root=str(root), disposition="identity")
    store.initialize()
    assert {each.name for each in root.iterdir()} == {"0=ocfl_1.0", "ocfl_layout.json"}
    layout = json.loads((root / "ocfl_layout.json").read_text())
    assert layout["extension"] == "identity"
    assert set(layout) == {"extension", "description"}
    assert store.root_fs.exists("0=ocfl_1.0")


def test_initialize_store_leaves_what_is_there(tmp_path):
    with pytest.raises(Exception, match=r".*"):
        Store(root=str(tmp_path)).initialize()
    assert list(tmp_path.iterdir()) == []


def _object(**changes):
    """Write a whole OCFL object in memory, then what is changed; None removes a file."""
    made = fs.open_fs("mem://")
    held = json.dumps({**inventory(manifest={ONE: ["v1/content/a"], TWO: ["v2/content/b"]}), **changes.pop("held", {})})
    first = json.dumps({**_prior(), **changes.pop("first", {})})
    made.makedirs("v1/content")
    made.makedirs("v2/content")
    files = {
        "0=ocfl_object_1.0": "ocfl_object_1.0\n",
        "inventory.json": held,
        "inventory.json.sha512": digest(held) + " inventory.json\n",
        "v1/content/a": "one",
        "v2/content/b": "two",
        "v1/inventory.json": first,
        "v1/inventory.json.sha512": digest(first) + " inventory.json\n",
        "v2/inventory.json": held,
        "v2/inventory.json.sha512": digest(held) + " inventory.json\n",
    }
    for name, text in {**files, **changes.pop("files", {})}.items():
        if text is not None:
            made.writetext(name, text)
    return made


def test_valid_object():
    validator = Validator()
    assert validator.validate(_object()) is True
    assert validator.log.codes == {}
    assert (validator.id, validator.spec_version) == ("info:x", "1.0")
    assert (validator.digest_algorithm, validator.content_directory) == ("sha512", "content")
    assert validator.root_inv_validator.all_versions == ["v1", "v2"]


@pytest.mark.parametrize(
    ("files", "expected"),
    [
        ({"0=ocfl_object_1.0": None}, "E003a"),
        ({"0=ocfl_object_1.0": "other\n"}, "E007"),
        ({"0=ocfl_object_1.0": None, "0=odd": "odd\n"}, "E006"),
        ({"0=ocfl_object_1.0": None, "0=odd": "odd\n"}, "E003c"),
        ({"0=ocfl_object_1.1": "ocfl_object_1.1\n"}, "E003b"),
        ({"inventory.json": None}, "E063"),
        ({"inventory.json.sha512": None}, "E058a"),
        ({"inventory.json.sha512": digest("x") + " inventory.json\n"}, "E060"),
        ({"v1/content/a": "changed"}, "E092a"),
        ({"v1/content/a": None}, "E092b"),
        ({"v1/content/more": "x"}, "E023a"),
        ({"stray": "x"}, "E001a"),
    ],
)
def test_object_with_a_fault(files, expected):
    validator = Validator()
    assert validator.validate(_object(files=files)) is False
    assert expected in validator.log.codes


def test_object_with_warnings_is_valid():
    validator = Validator()
    assert validator.validate(_object(files={"v1/inventory.json": None, "v1/inventory.json.sha512": None})) is True
    assert set(validator.log.codes) == {"W010"}


def test_object_of_two_declarations_counts_as_the_newer():
    validator = Validator()
    held = {"type": "https://ocfl.io/1.1/spec/#inventory"}
    assert not validator.validate(_object(held=held, files={"0=ocfl_object_1.1": "ocfl_object_1.1\n"}))
    assert validator.spec_version == "1.1"
    assert "E003b" in validator.log.codes


def test_object_by_path(tmp_path):
    fs.copy.copy_fs(_object(), str(tmp_path))
    assert Validator().validate(str(tmp_path)) is True
    (tmp_path / "inventory.json").unlink()
    assert Validator().validate(str(tmp_path)) is False
    missing = Validator()
    assert missing.validate(str(tmp_path / "missing")) is False
    assert "E003e" in missing.log.codes


def test_a_validator_can_be_used_again():
    validator = Validator(check_digests=False)
    assert validator.validate(_object(files={"v1/content/a": "changed"})) is True
    assert validator.validate(_object(held={"id": "info:y"}, first={"id": "info:y"})) is True
    assert validator.id == "info:y"


def test_object_whose_versions_disagree():
    validator = Validator()
    assert not validator.validate(_object(first={"id": "info:other"}))
    assert "E037b" in validator.log.codes
    other = Validator()
    assert not other.validate(_object(files={"v2/inventory.json": "{}"}))
    assert "E064" in other.log.codes


@pytest.fixture
def store(tmp_path):
    root = tmp_path / "root"
    made = Store(root=str(root), disposition="identity")
    made.initialize()
    for name, changes in {"good": {}, "bad": {"files": {"v1/content/a": "changed"}}, "fine": {}}.items():
        _copied(root / name, changes)
    made.open_root_fs()
    return made


def _copied(place, changes):
    place.mkdir()
    fs.copy.copy_fs(_object(**changes), str(place))


def test_hierarchy(store, capsys):
    assert store.validate_hierarchy() == (3, 2)
    out = capsys.readouterr().out
    assert "[[bad]]" in out.replace("[[/bad]]", "[[bad]]")
    assert "E092a" in out
    assert "good" not in out


def test_hierarchy_without_digests_or_objects(store, capsys):
    assert store.validate_hierarchy(check_digests=False) == (3, 3)
    assert store.validate_hierarchy(validate_objects=False) == (0, 0)
    assert capsys.readouterr().out == ""


def test_hierarchy_with_warnings(store, tmp_path, capsys):
    for name in ("inventory.json", "inventory.json.sha512"):
        (tmp_path / "root" / "good" / "v1" / name).unlink()
    assert store.validate_hierarchy() == (3, 2)
    assert "W010" not in capsys.readouterr().out
    assert store.validate_hierarchy(show_warnings=True) == (3, 2)
    assert "W010" in capsys.readouterr().out


def test_hierarchy_of_an_empty_store(tmp_path):
    made = Store(root=str(tmp_path / "empty"))
    made.initialize()
    assert made.validate_hierarchy() == (0, 0)
