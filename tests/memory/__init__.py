"""What pyengine keeps of names that are gone: ``python -m tests.memory``."""
