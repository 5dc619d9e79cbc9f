"""The geospatial task: samples, grids and rocks of a survey area."""
