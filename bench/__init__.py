"""Rivals get one thread, like ours: what is compared is work a core. This must be said before they are imported."""

import os

os.environ["POLARS_MAX_THREADS"] = "1"
