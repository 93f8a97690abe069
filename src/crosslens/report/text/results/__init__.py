"""What people decide by: audits, and requirements that a model fulfils or not."""
