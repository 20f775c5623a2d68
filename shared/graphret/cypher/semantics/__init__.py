"""What a query means: its variables and where they are seen, its aggregations, and the
kinds of its values.
"""
