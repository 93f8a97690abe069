"""What comes from elsewhere and must do no harm: code that files name, and text that is printed."""
