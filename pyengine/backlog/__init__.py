"""Finding out who got what, what waits, and why."""

from pyengine._engine.moved import import_by_earlier_names
from pyengine.backlog.moved import MODULES

import_by_earlier_names(__name__, MODULES)
