"""Small settings that a search is tried on."""

from schedc.cli.options import ScheduleOptions
from schedc.cost.machine import Machine
from schedc.explore.setting import Setting
from schedc.spec.load import load_spec


def setting(model: str, devices: int = 1, context: int = 1024, rows: int = 1) -> Setting:
    request = ScheduleOptions(devices=devices, context=context).request(load_spec(model), rows)
    return Setting(request.spec, request.shape, request.target, Machine.of(request.target))
