"""Who takes part: accounts, passwords, sessions, invitation links."""
