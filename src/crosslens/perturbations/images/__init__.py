"""Images changed on purpose: blurred, covered, cropped, each in five severities."""
