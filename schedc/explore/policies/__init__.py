"""Policies that try many plans: by the same interface as those of schedc/schedule/policies, found when asked for."""
