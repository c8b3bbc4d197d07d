"""Answers to why: why a schedule is as long as it is, why a model does not fit, why a transfer cannot start earlier."""
