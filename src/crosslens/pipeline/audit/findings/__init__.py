"""What results say, in plain sentences: pure functions of the payloads of stages."""
