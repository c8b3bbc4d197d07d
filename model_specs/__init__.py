"""Specs of the models that come with schedc, one YAML file each, made from published configs by `schedc import`."""
