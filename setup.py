"""The top-level folders are one package: `ir/` is `schedc.ir`, and so on. All else is in pyproject.toml."""

from setuptools import find_packages, setup

FOLDERS = {
    "schedc": "schedc",
    "schedc.ir": "ir",
    "schedc.backends": "backends",
    "schedc.model_specs": "model_specs",
}

setup(
    package_dir=FOLDERS,
    packages=[
        name
        for package, folder in FOLDERS.items()
        for name in (package, *(f"{package}.{sub}" for sub in find_packages(folder)))
    ],
)
