"""The database: joins pgwire, planner and txn.

Arrow takes its memory from the system's allocator, which returns what is large at once
(``engine.base.accounts``); Arrow's own keeps hundreds of megabytes for later, which nobody could be told from
what statements have. It has to be said before Arrow is loaded.
"""

import os

os.environ.setdefault("ARROW_DEFAULT_MEMORY_POOL", "system")
