"""Settings that every test shares."""

from hypothesis import HealthCheck, settings

# How fast a shared machine is at the moment is no property of the code.
settings.register_profile("infernix", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("infernix")
