"""Property tests have no deadline: how long an example takes says how busy the machine is, not whether it is right."""

from hypothesis import settings

settings.register_profile("untimed", deadline=None)
settings.load_profile("untimed")
