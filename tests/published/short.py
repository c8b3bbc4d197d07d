"""A published Kimi K3 with fewer layers, of every kind."""

from schedc.published.form import PublishedSchedule, Run

SHORT = (Run(repeat=1, pattern=("dense",)), Run(repeat=1, pattern=("kda", "kda", "mla", "kda", "mla", "mla")))


def shortened(schedule: PublishedSchedule) -> PublishedSchedule:
    """Seven layers: every kind, and every kind behind every other."""
    return schedule.model_copy(update={"layers": SHORT})
