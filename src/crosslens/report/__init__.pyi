from crosslens.report.audits import (
    audit as audit,
    audit_with_report as audit_with_report,
    write_audit_report as write_audit_report,
)
from crosslens.report.charts.theme import (
    CHART_STYLE as CHART_STYLE,
    LEVEL_COLOURS as LEVEL_COLOURS,
    THEME_STYLE as THEME_STYLE,
)
from crosslens.report.document.collect import is_audit as is_audit, report_inputs as report_inputs
from crosslens.report.document.files import WrittenReport as WrittenReport, write_report as write_report
from crosslens.report.document.inputs import ReportInputs as ReportInputs
from crosslens.report.document.page import Report as Report, report_page as report_page
from crosslens.report.export.files import (
    EXPORTS as EXPORTS,
    Files as Files,
    render_export as render_export,
    write_export as write_export,
    write_named_export as write_named_export,
)
from crosslens.report.export.tables import render_drop_table as render_drop_table
from crosslens.report.forms.files import check_ending as check_ending
from crosslens.report.forms.page import chart_html as chart_html, section_html as section_html
from crosslens.report.pages.pictures import EmbeddedImage as EmbeddedImage
from crosslens.report.tracking.content import TrackedAt as TrackedAt, TrackedRun as TrackedRun, tracked as tracked
from crosslens.report.tracking.to_mlflow import log_to_mlflow as log_to_mlflow
from crosslens.report.tracking.to_wandb import log_to_wandb as log_to_wandb
