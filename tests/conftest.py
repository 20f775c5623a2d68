"""What every test can use."""

from __future__ import annotations

import os

import pytest
from hypothesis import HealthCheck, settings
from tests_support import HashingEncoder

pytest_plugins = ["graphret.testing.neo4j_server.fixtures"]

os.environ.setdefault("HF_HUB_OFFLINE", "1")
os.environ.setdefault("TOKENIZERS_PARALLELISM", "false")

settings.register_profile("graphret", deadline=None, suppress_health_check=[HealthCheck.too_slow], derandomize=True)
settings.load_profile("graphret")


@pytest.fixture
def encoder() -> HashingEncoder:
    return HashingEncoder()
