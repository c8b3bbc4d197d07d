"""YAML in and out: numbers as in YAML 1.2 (`1e-5` is a number), duplicate keys refused, deterministic output."""

import re
from typing import Any

import yaml


class YamlError(Exception):
    """The text is not the YAML we take; the message begins with its place, `line 3, column 5: …`."""

    def __init__(self, mark: yaml.Mark | None, what: str) -> None:
        place = "" if mark is None else f"line {mark.line + 1}, column {mark.column + 1}: "
        super().__init__(f"{place}{what}")


class _Loader(yaml.SafeLoader):
    def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> dict[Any, Any]:
        seen: set[str] = set()
        for key, _ in node.value:
            if isinstance(key, yaml.ScalarNode) and key.value in seen:
                raise YamlError(key.start_mark, f"duplicate key {key.value!r}")
            seen.add(str(key.value))
        return super().construct_mapping(node, deep)


class _Dumper(yaml.SafeDumper):
    def ignore_aliases(self, data: Any) -> bool:
        return True


# The dumper quotes what the loader would take for a number.
for _reader_or_writer in (_Loader, _Dumper):
    _reader_or_writer.add_implicit_resolver(
        "tag:yaml.org,2002:float", re.compile(r"^[-+]?(\d+\.\d*|\.\d+|\d+)([eE][-+]?\d+)?$"), list("-+0123456789.")
    )


def parse_yaml(text: str) -> Any:
    """The document as plain Python data. Raises YamlError with line and column."""
    try:
        return yaml.load(text, _Loader)
    except yaml.MarkedYAMLError as error:
        raise YamlError(error.problem_mark, error.problem or str(error)) from None
    except RecursionError:
        raise YamlError(None, "nested too deeply") from None
    except ValueError as error:  # a number of more digits than Python reads
        raise YamlError(None, str(error).partition(";")[0]) from None
    except yaml.reader.ReaderError as error:
        raise YamlError(None, f"character {error.position} cannot stand in YAML ({error.reason})") from None


def format_yaml(data: Any) -> str:
    """Keys in the order given, innermost collections on one line."""
    return yaml.dump(data, Dumper=_Dumper, sort_keys=False, default_flow_style=None, width=110, allow_unicode=True)
