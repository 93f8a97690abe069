"""The pages of a project's owner: results, people, disagreements, correlations, models, items in and out."""
