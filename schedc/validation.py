"""Plain data → a pydantic model, or one line for each fault, each with its key path, all at once."""

from collections.abc import Iterator
from copy import deepcopy
from typing import Any, TypeVar

from pydantic import BaseModel, TypeAdapter, ValidationError
from pydantic_core import ErrorDetails

M = TypeVar("M", bound=BaseModel)
Steps = tuple[str | int, ...]


def validate(model: type[M], data: Any) -> tuple[M | None, list[str]]:
    """The model and no faults, or None and lines such as `layers[0].repeat: must be more than 0, not -1`.

    pydantic checks a part as a whole only when all of its keys are good. So bad keys are taken out and the
    rest is checked again, and where that leaves a part incomplete, the part is taken out, until nothing new
    turns up.
    """
    data = deepcopy(data)
    faults: dict[Steps, str] = {}
    taken_out: set[Steps] = set()
    while True:
        try:
            result = model.model_validate(data)
        except ValidationError as error:
            found = [fault for detail in error.errors(include_url=False) for fault in _faults(detail, data)]
        else:
            if not faults:
                return result, []
            break
        new = {steps: text for steps, text in found if steps not in faults and steps not in taken_out}
        faults |= new
        removed = {steps for steps in new if _remove(data, steps)}
        removed = removed or {steps[:-1] for steps, _ in found if _remove(data, steps[:-1])}
        if not removed:
            break
        taken_out |= removed
    return None, [f"{_path(steps)}: {text}" if steps else text for steps, text in faults.items()]


def fault_of(kind: Any, value: Any) -> str | None:
    """What is wrong with a value that is to be of a type, as it is and not made one; None if nothing is."""
    try:
        TypeAdapter(kind).validate_python(value, strict=True)
    except ValidationError as error:
        detail = error.errors(include_url=False)[0]
        return _message(detail["type"], detail.get("ctx", {}), detail["msg"]).format(_show(detail["input"]))
    return None


def _faults(detail: ErrorDetails, data: Any) -> Iterator[tuple[Steps, str]]:
    steps = _real_steps(detail["loc"], data)
    context = detail.get("ctx", {})
    match detail["type"]:
        case "unknown_keys" | "part_problems":
            for field, message in context["problems"]:
                yield (*steps, *([field] if field else [])), message
        case "union_tag_invalid":
            yield (*steps, "kind"), f"must be {_either(context['expected_tags'])}, not {_show(context['tag'])}"
        case "union_tag_not_found":
            yield (*steps, "kind"), "missing"
        case "too_short" if detail["input"]:
            pass  # pydantic counts only the good entries, and the bad ones have lines of their own
        case "value_error":
            yield steps, str(context["error"])
        case kind:
            yield steps, _message(kind, context, detail["msg"]).format(_show(detail["input"]))


def _message(kind: str, context: dict[str, Any], fallback: str) -> str:
    match kind:
        case "missing":
            return "missing"
        case "int_type" | "int_from_float":
            return "must be a whole number, not {}"
        case "float_type":
            return "must be a number, not {}"
        case "bool_type":
            return "must be true or false, not {}"
        case "string_type":
            return "must be text, not {}"
        case "tuple_type" | "is_instance_of" | "sequence_str":
            return "must be a list, not {}"
        case "model_type" | "model_attributes_type" | "dict_type":
            return "must be a mapping of keys, not {}"
        case "string_pattern_mismatch":
            return f"must match {context['pattern']}, not {{}}"
        case "literal_error":
            return f"must be {context['expected']}, not {{}}"
        case "greater_than":
            return f"must be more than {context['gt']:g}, not {{}}"
        case "greater_than_equal":
            return f"must be at least {context['ge']:g}, not {{}}"
        case "less_than_equal":
            return f"must be at most {context['le']:g}, not {{}}"
        case "finite_number":
            return "must be a finite number, not {}"
        case "too_short" | "string_too_short":
            return "must not be empty"
        case _:
            return fallback.replace("{", "{{").replace("}", "}}")


def _real_steps(loc: Steps, data: Any) -> Steps:
    """`loc` without the tags that pydantic puts in for members of a union."""
    steps: list[str | int] = []
    for step in loc:
        if isinstance(data, dict):
            if step not in data and data.get("kind") == step:
                continue
            data = data.get(step)
        elif isinstance(data, list) and isinstance(step, int) and step < len(data):
            data = data[step]
        steps.append(step)
    return tuple(steps)


def _remove(data: Any, steps: Steps) -> bool:
    """Take the value at `steps` out of `data`, where it is the value of a key."""
    for step in steps[:-1]:
        if isinstance(data, dict) and step not in data:
            return False
        if not isinstance(data, dict | list):
            return False
        data = data[step]  # type: ignore[index]
    if not steps or not isinstance(data, dict):
        return False
    for key in list(data):
        if str(key) == str(steps[-1]):
            del data[key]
            return True
    return False


def _path(steps: Steps) -> str:
    text = ""
    for step in steps:
        text += f"[{step}]" if isinstance(step, int) else f".{step}" if text else str(step)
    return text


def _either(expected_tags: str) -> str:
    tags = expected_tags.split(", ")
    return tags[0] if len(tags) == 1 else f"{', '.join(tags[:-1])} or {tags[-1]}"


def _show(value: Any) -> str:
    if value is None:
        return "null"
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, dict):
        return "a mapping"
    if isinstance(value, list | tuple):
        return "a list"
    text = repr(value)
    return text if len(text) <= 60 else f"{text[:57]}…"
