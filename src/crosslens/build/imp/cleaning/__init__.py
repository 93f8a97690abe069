"""Web titles become captions: every repair is named, and so is the reason for every caption that is dropped."""
