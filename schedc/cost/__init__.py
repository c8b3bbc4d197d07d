"""How long a program takes on one device, without the device."""
