from crosslens.planning.calibration import (
    calibrate_device as calibrate_device,
    measure_run as measure_run,
    memory_of as memory_of,
)
from crosslens.planning.doctor import EXTRAS as EXTRAS, Diagnosis as Diagnosis, diagnose as diagnose
from crosslens.planning.plan import (
    DeviceRates as DeviceRates,
    EvaluationPlan as EvaluationPlan,
    MeasuredRun as MeasuredRun,
    add_rates as add_rates,
    plan_evaluation as plan_evaluation,
    read_rates as read_rates,
)
