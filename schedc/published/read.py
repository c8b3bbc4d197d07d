"""Read a published schedule by its name, or from a YAML file."""

from pathlib import Path
from typing import Any

from schedc.errors import UserError
from schedc.files import parsed, read_text
from schedc.names import nearest
from schedc.published.form import PublishedSchedule
from schedc.yaml_text import parse_yaml

_FOLDER = Path(__file__).with_name("schedules")


def list_published() -> list[str]:
    """Names of the schedules that come with schedc, sorted."""
    return sorted(path.stem for path in _FOLDER.glob("*.yaml"))


def load_published(name: str) -> PublishedSchedule:
    """A name of `list_published`, or a file. Raises UserError for what is not there, SpecError with every fault."""
    return parse_published(_text(name), name)


def schedule_data(name: str) -> dict[str, Any]:
    """The plain data of a schedule that comes with schedc."""
    data: dict[str, Any] = parse_yaml(_text(name))
    return data


def _text(name: str) -> str:
    if "/" in name or name.endswith((".yaml", ".yml")):
        path = Path(name)
    elif name in list_published():
        path = _FOLDER / f"{name}.yaml"
    else:
        close = nearest(name, list_published()) or list_published()
        raise UserError(f"no published schedule {name!r}; there are: {', '.join(close)}; or give a file, ./{name}.yaml")
    return read_text(path)


def parse_published(text: str, source: str) -> PublishedSchedule:
    return parsed(PublishedSchedule, text, source)
