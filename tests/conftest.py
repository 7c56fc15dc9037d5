"""Property tests have no deadline, and may be slow to draw: time says how busy the machine is, not what is right.
They try the same examples each time; ``make test PYTEST_ARGS=--hypothesis-profile=random`` tries others.
"""

from __future__ import annotations

import os

from hypothesis import HealthCheck, settings

settings.register_profile("random", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.register_profile("same", settings.get_profile("random"), derandomize=True)
settings.load_profile("same")

# A session of Spark lives for seconds here, of which Java would spend a part on compiling well what runs once.
os.environ.setdefault("SPARK_SUBMIT_OPTS", "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC")
