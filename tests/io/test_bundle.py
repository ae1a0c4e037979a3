"""The container of saved models: what survives, what is refused, and that writing is atomic."""

import json
import os
import re
import struct
import subprocess
import sys

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as npst
from safetensors.numpy import load_file, save_file

from sublearn.io import load_bundle, save_bundle

PARTS = {
    "class_name": "Thing",
    "params": {"C": 1.0, "tol": 1e-3},
    "arrays": {"w": np.arange(6.0).reshape(2, 3), "ids": np.arange(5, dtype=np.int32)},
    "attributes": {"n_iter_": 3},
}
DTYPES = ["?", "u1", "i1", "u2", "i2", "f2", "u4", "i4", "f4", "u8", "i8", "f8"]


@pytest.fixture
def path(tmp_path):
    save_bundle(tmp_path / "model.sublearn", **PARTS)
    return tmp_path / "model.sublearn"


def split(path):
    raw = path.read_bytes()
    (size,) = struct.unpack("<Q", raw[:8])
    return json.loads(raw[8 : 8 + size]), raw[8 + size :]


def join(path, header, data):
    text = header if isinstance(header, bytes) else json.dumps(header).encode()
    path.write_bytes(struct.pack("<Q", len(text)) + text + data)


def refuses(path, message, **options):
    with pytest.raises(ValueError, match=re.escape(str(path)) + ": .*" + message):
        load_bundle(path, **options)


def test_what_is_saved_is_loaded(path):
    bundle = load_bundle(path, class_name="Thing")
    assert bundle.class_name == "Thing"
    assert bundle.params == PARTS["params"]
    assert bundle.attributes == PARTS["attributes"]
    assert bundle.arrays.keys() == PARTS["arrays"].keys()
    for name, array in PARTS["arrays"].items():
        np.testing.assert_array_equal(bundle.arrays[name], array)
        assert bundle.arrays[name].dtype == array.dtype


def test_other_readers_of_safetensors_read_the_arrays(path):
    arrays = load_file(path)
    np.testing.assert_array_equal(arrays["w"], PARTS["arrays"]["w"])


def test_arrays_are_read_only_views_of_the_mapped_file(path):
    w = load_bundle(path).arrays["w"]
    owner = w
    while isinstance(owner.base, np.ndarray):
        owner = owner.base
    assert isinstance(owner, np.memmap)
    assert not w.flags.writeable
    with pytest.raises(ValueError, match="read-only"):
        w[0, 0] = 1


@pytest.mark.parametrize("order", "<>")
@pytest.mark.parametrize("code", DTYPES)
def test_every_kind_of_number_keeps_its_dtype(tmp_path, code, order):
    array = np.arange(-4, 4).astype(np.dtype(code).newbyteorder(order)).reshape(2, 4).T
    save_bundle(tmp_path / "m", class_name="T", params={}, attributes={}, arrays={"a": array})
    again = load_bundle(tmp_path / "m").arrays["a"]
    assert again.dtype == np.dtype(code)
    np.testing.assert_array_equal(again, array)


shapes = npst.array_shapes(min_dims=0, max_dims=3, min_side=0, max_side=4)
all_arrays = st.sampled_from(DTYPES).flatmap(lambda code: npst.arrays(code, shapes))


@given(st.dictionaries(st.text(max_size=5), all_arrays, max_size=4))
@settings(deadline=None, max_examples=100)
def test_arrays_of_any_shape_survive(tmp_path_factory, arrays):
    path = tmp_path_factory.mktemp("bundle") / "m"
    save_bundle(path, class_name="T", params={}, attributes={}, arrays=arrays)
    again = load_bundle(path).arrays
    assert again.keys() == arrays.keys()
    for name, array in arrays.items():
        assert (again[name].dtype, again[name].shape) == (array.dtype, array.shape)
        np.testing.assert_array_equal(again[name], array)


json_values = st.recursive(
    st.one_of(st.none(), st.booleans(), st.integers(), st.floats(allow_nan=False), st.text()),
    lambda inner: st.one_of(
        st.lists(inner, max_size=3),
        st.lists(inner, max_size=3).map(tuple),
        st.dictionaries(st.text(max_size=3), inner, max_size=3),
    ),
    max_leaves=8,
)


@given(st.dictionaries(st.text(max_size=5), json_values, max_size=4))
@settings(deadline=None, max_examples=100)
def test_params_and_attributes_survive(tmp_path_factory, values):
    path = tmp_path_factory.mktemp("bundle") / "m"
    save_bundle(path, class_name="T", params=values, attributes=values, arrays={})
    bundle = load_bundle(path)
    assert bundle.params == values
    assert bundle.attributes == values


def test_numpy_scalars_and_non_finite_floats_survive(tmp_path):
    values = {"a": np.float32(0.5), "b": np.int64(3), "c": np.bool_(True), "d": np.str_("x")}
    values |= {"e": (np.inf, -np.inf), "f": np.nan}
    save_bundle(tmp_path / "m", class_name="T", params=values, attributes={}, arrays={})
    params = load_bundle(tmp_path / "m").params
    assert np.isnan(params.pop("f"))
    assert params == {"a": 0.5, "b": 3, "c": True, "d": "x", "e": (np.inf, -np.inf)}
    assert type(params["c"]) is bool
    assert "NaN" not in split(tmp_path / "m")[0]["__metadata__"]["params"]


@pytest.mark.parametrize(
    "value", [np.random.RandomState(0), print, {1, 2}, b"bytes", np.zeros(3), float, 1j]
)
def test_refuses_a_parameter_that_is_not_plain(tmp_path, value):
    kind = type(value).__name__
    with pytest.raises(TypeError, match=rf"Thing\.params\.x\.y\[1\] must be .*got {kind}"):
        save_bundle(tmp_path / "m", **(PARTS | {"params": {"x": {"y": [0, value]}}}))
    with pytest.raises(TypeError, match=rf"Thing\.attributes\.x must be .*got {kind}"):
        save_bundle(tmp_path / "m", **(PARTS | {"attributes": {"x": value}}))
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("key", ["__tuple__", "__float__", "__mapping__"])
def test_refuses_a_key_that_stands_for_something_else(tmp_path, key):
    with pytest.raises(TypeError, match=rf"Thing\.params\.x must have other keys .*{key!r}"):
        save_bundle(tmp_path / "m", **(PARTS | {"params": {"x": {key: 1}}}))


def test_keys_that_are_no_strings_survive(tmp_path):
    values = {"x": {3: 1, None: 2, (1, "a"): {True: np.inf}, np.int64(7): "s", 2.5: [{0: 1}]}}
    save_bundle(tmp_path / "m", class_name="T", params=values, attributes=values, arrays={})
    bundle = load_bundle(tmp_path / "m")
    assert bundle.params == bundle.attributes == values
    assert {type(key) for key in bundle.params["x"]} == {int, type(None), tuple, float}


@pytest.mark.parametrize("key", [b"bytes", frozenset([1]), 1j])
def test_refuses_a_key_that_cannot_be_stored(tmp_path, key):
    with pytest.raises(TypeError, match=rf"Thing\.params\.x\[0\] must be .*{type(key).__name__}"):
        save_bundle(tmp_path / "m", **(PARTS | {"params": {"x": {key: 1}}}))


@pytest.mark.parametrize(
    "array",
    [np.array(["a"]), np.array([None]), np.zeros(2, "M8[s]"), np.zeros(2, "c16"), np.array([b"a"])],
)
def test_refuses_an_array_that_cannot_be_stored(tmp_path, array):
    with pytest.raises(TypeError, match=r"array 'a' must hold booleans, integers or floats .*got"):
        save_bundle(tmp_path / "m", **(PARTS | {"arrays": {"a": array}}))
    assert list(tmp_path.iterdir()) == []


def test_refuses_an_array_without_a_name_of_its_own(tmp_path):
    for name in ("__metadata__", 3):
        with pytest.raises(ValueError, match=f"names of arrays must be .*got {name!r}"):
            save_bundle(tmp_path / "m", **(PARTS | {"arrays": {name: np.zeros(1)}}))


def test_a_failed_write_leaves_the_old_file_and_nothing_else(path):
    before = path.read_bytes()
    with pytest.raises(TypeError):
        save_bundle(path, **(PARTS | {"arrays": {"a": np.array([None])}}))
    assert path.read_bytes() == before
    assert list(path.parent.iterdir()) == [path]


FULL_DISK = """
import resource, sys
import numpy as np
from sublearn.io import save_bundle
resource.setrlimit(resource.RLIMIT_FSIZE, (50_000, 50_000))
arrays = {"a": np.zeros(100_000)}
try:
    save_bundle(sys.argv[1], class_name="T", params={}, attributes={}, arrays=arrays)
except OSError as error:
    print(error.filename, error.strerror, sep=": ")
"""


@pytest.mark.skipif(sys.platform == "win32", reason="file sizes cannot be limited there")
def test_a_full_disk_leaves_the_old_file_and_nothing_else(path):
    before = path.read_bytes()
    command = [sys.executable, "-c", FULL_DISK, str(path)]
    out = subprocess.run(command, capture_output=True, text=True, check=True)
    assert out.stdout == f"{path}: File too large\n"
    assert path.read_bytes() == before
    assert list(path.parent.iterdir()) == [path]


def test_saving_over_an_open_model_does_not_change_it(path):
    w = load_bundle(path).arrays["w"]
    save_bundle(path, **(PARTS | {"arrays": {"w": np.zeros((2, 3))}}))
    np.testing.assert_array_equal(w, PARTS["arrays"]["w"])
    assert load_bundle(path).arrays["w"].sum() == 0


@pytest.mark.skipif(sys.platform == "win32", reason="rights and links work differently there")
def test_a_saved_file_has_the_usual_rights_and_keeps_links(tmp_path):
    (tmp_path / "usual").touch()
    (tmp_path / "link").symlink_to(tmp_path / "real")
    save_bundle(tmp_path / "link", **PARTS)
    assert (tmp_path / "link").is_symlink()
    assert (tmp_path / "real").stat().st_mode == (tmp_path / "usual").stat().st_mode
    assert load_bundle(tmp_path / "real").class_name == "Thing"


def test_refuses_to_save_into_a_folder_or_nowhere(tmp_path):
    with pytest.raises(ValueError, match="a file name is needed, got a directory"):
        save_bundle(tmp_path, **PARTS)
    with pytest.raises(FileNotFoundError):
        save_bundle(tmp_path / "none" / "m", **PARTS)


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="needs named pipes")
def test_refuses_to_put_a_file_in_the_place_of_a_pipe(tmp_path):
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(ValueError, match="a regular file is needed, got a device or pipe"):
        save_bundle(tmp_path / "pipe", **PARTS)
    assert (tmp_path / "pipe").is_fifo()
    assert [path.name for path in tmp_path.iterdir()] == ["pipe"]


def test_refuses_what_is_not_there(tmp_path):
    refuses(tmp_path, "a saved model is one file, got a directory")
    with pytest.raises(FileNotFoundError):
        load_bundle(tmp_path / "none")


def test_refuses_another_class(path):
    refuses(path, "a saved Other is needed, got a Thing", class_name="Other")


def test_refuses_every_truncation(path):
    raw = path.read_bytes()
    for size in range(len(raw)):
        path.write_bytes(raw[:size])
        refuses(path, "(not a saved model|truncated)")


def test_refuses_bytes_after_the_end(path):
    path.write_bytes(path.read_bytes() + b"\0")
    refuses(path, "the file is damaged: arrays of 68 bytes are announced, got 69")


@pytest.mark.parametrize(
    "content",
    [b"", b"PK\x03\x04 a zip file", b"\x80\x04\x95 a pickle...", b"0 1:1\n" * 9, b"\0" * 64],
)
def test_refuses_foreign_files(tmp_path, content):
    path = tmp_path / "m"
    path.write_bytes(content)
    refuses(path, r"not a saved model \(safetensors\)")


@pytest.mark.parametrize("header", [b"[1, 2]", b"3", b"\xff\xfe", b"{", b'{"a": {}, "a": {}}'])
def test_refuses_a_header_that_is_no_object(path, header):
    join(path, header, b"")
    refuses(path, "not a saved model")


@pytest.mark.parametrize("metadata", [None, {"format": "pt"}])
def test_refuses_safetensors_of_others(tmp_path, metadata):
    save_file({"a": np.zeros(2)}, tmp_path / "m", metadata=metadata)
    refuses(tmp_path / "m", "a safetensors file, but not of sublearn; got metadata")


def test_refuses_a_newer_format(path):
    header, data = split(path)
    header["__metadata__"] |= {"format_version": "2", "sublearn_version": "9.9"}
    join(path, header, data)
    refuses(path, r"saved in format 2 by sublearn 9\.9; sublearn .* reads formats up to 1")


@pytest.mark.parametrize("version", ["0", "one", "", "-1", 3.5])
def test_refuses_a_format_that_never_was(path, version):
    header, data = split(path)
    header["__metadata__"]["format_version"] = version
    join(path, header, data)
    refuses(path, "description is damaged|saved in format")


@pytest.mark.parametrize("key", ["class", "params", "attributes", "sublearn_version"])
def test_refuses_a_description_without(path, key):
    header, data = split(path)
    del header["__metadata__"][key]
    join(path, header, data)
    refuses(path, f"description is damaged, got one without {key}")


@pytest.mark.parametrize("text", ["{", "3", '{"a": {"__float__": "x"}}', '{"a": {"__tuple__": 3}}'])
@pytest.mark.parametrize("key", ["params", "attributes"])
def test_refuses_damaged_values(path, key, text):
    header, data = split(path)
    header["__metadata__"][key] = text
    join(path, header, data)
    refuses(path, f"the model's {key} are damaged")


BAD_ENTRIES = {
    "no object": 3,
    "an unknown dtype": {"dtype": "F128", "shape": [6], "data_offsets": [0, 48]},
    "no shape": {"dtype": "F64", "data_offsets": [0, 48]},
    "one offset": {"dtype": "F64", "shape": [6], "data_offsets": [0]},
    "words": {"dtype": "F64", "shape": ["x"], "data_offsets": [0, 48]},
    "a shape too large": {"dtype": "F64", "shape": [7], "data_offsets": [0, 48]},
    "a negative shape": {"dtype": "F64", "shape": [-2, -3], "data_offsets": [0, 48]},
    "a negative offset": {"dtype": "F64", "shape": [6], "data_offsets": [-8, 40]},
    "offsets behind the end": {"dtype": "F64", "shape": [6], "data_offsets": [800, 848]},
    "overlapping offsets": {"dtype": "F64", "shape": [6], "data_offsets": [8, 56]},
}


@pytest.mark.parametrize("entry", BAD_ENTRIES.values(), ids=BAD_ENTRIES.keys())
def test_refuses_an_array_with(path, entry):
    header, data = split(path)
    header["w"] = entry
    join(path, header, data)
    refuses(path, "(damaged|does not fill|truncated)")


def test_refuses_arrays_that_are_not_aligned(path):
    header, data = split(path)
    text = json.dumps(header).encode()
    join(path, text + b" " * (-len(text) % 8), data)
    assert load_bundle(path).arrays["w"].flags.aligned
    join(path, text + b" " * (-len(text) % 8 + 1), data)
    refuses(path, "the file is damaged: its arrays are not aligned")


@given(st.integers(0, 10**6), st.integers(0, 255))
@settings(deadline=None, max_examples=300)
def test_a_changed_byte_is_refused_or_changes_values_only(tmp_path_factory, position, byte):
    path = tmp_path_factory.mktemp("bundle") / "m"
    save_bundle(path, **PARTS)
    raw = bytearray(path.read_bytes())
    raw[position % len(raw)] = byte
    path.write_bytes(raw)
    try:
        bundle = load_bundle(path)
    except ValueError as error:
        refusal = str(error)
    else:
        refusal = None
    if refusal is None:
        assert sum(array.nbytes for array in bundle.arrays.values()) == 68
    else:
        assert refusal.startswith(f"{path}: ")
