from crosslens.report.audits import audit as audit, audit_with_report as audit_with_report, calibrate as calibrate
from crosslens.report.document.page import (
    Report as Report,
    WrittenReport as WrittenReport,
    write_report as write_report,
)
from crosslens.report.export import (
    EXPORTS as EXPORTS,
    Files as Files,
    export_formats as export_formats,
    render_drop_table as render_drop_table,
    render_export as render_export,
    write_changed as write_changed,
    write_export as write_export,
    write_named_export as write_named_export,
)
from crosslens.report.export.benchmarks import holds_results as holds_results, read_results as read_results
from crosslens.report.export.fiftyone import write_fiftyone as write_fiftyone
from crosslens.report.forms.files import check_ending as check_ending
from crosslens.report.forms.page import chart_html as chart_html, section_html as section_html
from crosslens.report.forms.pictures import EmbeddedImage as EmbeddedImage
from crosslens.report.forms.theme import LEVEL_COLOURS as LEVEL_COLOURS, SECTION_STYLE as SECTION_STYLE
from crosslens.report.inputs import ReportInputs as ReportInputs, is_audit as is_audit, report_inputs as report_inputs
from crosslens.report.tracking import (
    TrackedAt as TrackedAt,
    log_to_mlflow as log_to_mlflow,
    log_to_wandb as log_to_wandb,
)
