from crosslens.engine.engine import (
    Engine as Engine,
    EngineOptions as EngineOptions,
    LocalEngine as LocalEngine,
    current_engine as current_engine,
    torch_device as torch_device,
    torch_devices as torch_devices,
    use_engine as use_engine,
)
from crosslens.engine.long_work import (
    Progress as Progress,
    SilentProgress as SilentProgress,
    duration as duration,
    in_threads as in_threads,
    note_resumed as note_resumed,
    one_blas_thread as one_blas_thread,
    shown_progress as shown_progress,
    stage as stage,
    wait_for_all as wait_for_all,
)
from crosslens.engine.ray_engine import missing_on_node as missing_on_node
