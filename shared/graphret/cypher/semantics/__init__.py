"""What a query means: its variables and their scopes, aggregations and value kinds."""
