"""One evaluation: its inputs, its rankings, its run."""
