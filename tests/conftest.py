"""Settings that every test shares."""

import pytest
from hypothesis import HealthCheck, settings

# How fast a shared machine is at the moment is no property of the code.
settings.register_profile("infernix", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("infernix")


@pytest.fixture(scope="session")
def warmed_kernels() -> None:
    """For tests that look at all of standard error, where a first compilation of the kernels would be announced."""
    from infernix.matching import warm_kernels

    warm_kernels()
