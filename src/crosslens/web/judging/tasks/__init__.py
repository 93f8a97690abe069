"""What is asked: task kinds, their labels, answers, and the order in which items are shown."""
