"""The scripts of examples/, run and timed."""
