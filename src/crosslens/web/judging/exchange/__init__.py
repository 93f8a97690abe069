"""Items into a project (failures, pairs, lists, sheets), judgements out of it (tables, Label Studio, qrels)."""
