from crosslens.audits.demo import Demo as Demo, require_model as require_model
from crosslens.audits.requirement_grammar import Requirement as Requirement, parse_requirement as parse_requirement
from crosslens.audits.requirements import (
    CheckedModel as CheckedModel,
    RequirementCheck as RequirementCheck,
    RequirementResult as RequirementResult,
    Sources as Sources,
    check_requirements as check_requirements,
    github_annotations as github_annotations,
    read_checked as read_checked,
    read_requirements as read_requirements,
)
from crosslens.audits.results import (
    AUDIT_DATASETS as AUDIT_DATASETS,
    Audit as Audit,
    AuditFolder as AuditFolder,
    StageResult as StageResult,
    load_audit as load_audit,
)
from crosslens.audits.running import Display as Display, run_audit as run_audit
from crosslens.audits.sensitivity import (
    NoticedDefect as NoticedDefect,
    Sensitivity as Sensitivity,
    calibrate as calibrate,
    stored_sensitivities as stored_sensitivities,
)
from crosslens.audits.sources import (
    AuditRequest as AuditRequest,
    DatasetSource as DatasetSource,
    subject_of_run as subject_of_run,
)
from crosslens.audits.stage import (
    Condition as Condition,
    StageOutput as StageOutput,
    StageWork as StageWork,
    all_stages as all_stages,
    audit_stage as audit_stage,
    stages_that_answer as stages_that_answer,
)
from crosslens.audits.stages import findings_of_runs as findings_of_runs
