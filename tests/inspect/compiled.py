"""Models compiled once for the tests that look at traces, maps and pages of them."""

from functools import cache

from schedc.cli.options import ScheduleOptions
from schedc.inspect.seen import Seen, seen
from schedc.inspect.subject import Subject, of_request
from schedc.spec.load import load_spec

MODELS = {"smollm2-135m": ScheduleOptions(), "kimi-k3-mini": ScheduleOptions(devices=4)}


@cache
def subject(model: str) -> Subject:
    return of_request(MODELS[model].request(load_spec(model)))


@cache
def seen_model(model: str) -> Seen:
    return seen(subject(model))
