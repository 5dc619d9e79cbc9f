"""General statistics: intervals, resampling, hierarchical models, ratings, tables and figures; no experiment."""
