"""Text of trainings."""
