"""Schedules of hand-written kernels that others published: as data, as proven programs, priced by measured cycles."""
