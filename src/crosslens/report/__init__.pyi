from crosslens.report.added_columns import (
    ColumnTable as ColumnTable,
    add_columns as add_columns,
    read_columns as read_columns,
)
from crosslens.report.audits import (
    audit as audit,
    audit_stages as audit_stages,
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
from crosslens.report.export.leaderboards import leaderboard_latex as leaderboard_latex
from crosslens.report.export.tables import (
    comparison_latex as comparison_latex,
    grid_latex as grid_latex,
    grid_markdown as grid_markdown,
    render_drop_table as render_drop_table,
)
from crosslens.report.forms.files import check_ending as check_ending
from crosslens.report.forms.page import chart_html as chart_html, section_html as section_html
from crosslens.report.galleries import (
    Gallery as Gallery,
    GalleryItem as GalleryItem,
    GalleryList as GalleryList,
    GalleryQuery as GalleryQuery,
    retrieval_gallery as retrieval_gallery,
)
from crosslens.report.group_chart import GroupChart as GroupChart, chart as chart
from crosslens.report.grouped_results import (
    GroupedTable as GroupedTable,
    compare_groups as compare_groups,
    drops_by as drops_by,
    failures_by as failures_by,
    grouped_comparison_text as grouped_comparison_text,
)
from crosslens.report.groups import (
    column_of as column_of,
    group_members as group_members,
    group_metrics as group_metrics,
    group_names as group_names,
    groupable_metrics as groupable_metrics,
)
from crosslens.report.pages.gallery import gallery_page as gallery_page
from crosslens.report.pages.leaderboard import leaderboard_page as leaderboard_page
from crosslens.report.pages.pictures import EmbeddedImage as EmbeddedImage
from crosslens.report.pages.run_changes import run_changes_page as run_changes_page
from crosslens.report.runs_side_by_side import side_by_side as side_by_side
from crosslens.report.text.runs import terminal_bars as terminal_bars
from crosslens.report.tracking.content import TrackedAt as TrackedAt, TrackedRun as TrackedRun, tracked as tracked
from crosslens.report.tracking.to_mlflow import log_to_mlflow as log_to_mlflow
from crosslens.report.tracking.to_wandb import log_to_wandb as log_to_wandb
