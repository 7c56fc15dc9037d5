from typing import final

@final
class Rounds: ...
